// SPDX-License-Identifier: Apache-2.0
// Hopper programs over rows and in clusters, compared with double precision; planted faults.
#include <map>
#include <memory>

#include "ptx/testing/hopper.h"

namespace cutegen::ptx {
namespace {

struct Rows {
  HopperData x, v, out;
  HopperProgram program;
};
using RowsPtr = std::unique_ptr<Rows>;

LaunchConfig rows_config(int64_t x, int64_t y, int64_t block, int64_t cluster = 1) {
  return {.grid = {x, y, 1},
          .block = {block, 1, 1},
          .cluster = {cluster, 1, 1},
          .shared_bytes = 0,
          .cooperative = false};
}

// The parameters are x, v if it is given, the output, then integers.
RowsPtr rows(const char* entry, LaunchConfig c, HopperData x, HopperData v, size_t out,
             std::vector<int> sizes) {
  auto p = std::make_unique<Rows>();
  p->x = std::move(x), p->v = std::move(v), p->out = HopperData::empty(out * 4);
  p->program.file = "rows.ptx", p->program.entry = entry, p->program.config = c;
  p->program.out = &p->out.bytes;
  Rows* data = p.get();
  p->program.bind = [data, sizes](Sim& sim) {
    std::vector<Bytes8> args;
    for (HopperData* d : {&data->x, &data->v}) {
      if (!d->bytes.empty())
        args.push_back(arg(sim.memory.add("in", std::span(d->bytes), Access::read_only)));
    }
    args.push_back(arg(sim.memory.add("out", std::span(data->out.bytes), Access::read_write)));
    for (int size : sizes) args.push_back(arg(size));
    return args;
  };
  return p;
}

void expect_value(Rows& p, double value, double bound) {
  p.program.truth.push_back(value), p.program.bound.push_back(bound);
}

RowsPtr softmax(int n, int columns, int ctas) {
  auto p = rows("cluster_softmax", rows_config(n * ctas, 1, 128, ctas),
                HopperData::floats(size_t(n * columns), 3, 20), {}, size_t(n * columns), {columns});
  for (int y = 0; y < n; ++y) {
    const double* x = &p->x.values[size_t(y * columns)];
    double most = -1e30, sum = 0;
    for (int i = 0; i < columns; ++i) most = std::max(most, x[i]);
    for (int i = 0; i < columns; ++i) sum += std::exp(x[i] - most);
    for (int i = 0; i < columns; ++i) {
      const double value = std::exp(x[i] - most) / sum;
      expect_value(*p, value, 1e-5 * value + 1e-30);
    }
  }
  return p;
}

RowsPtr norm(int n, int columns, int ctas) {
  auto p = rows("persistent_norm", rows_config(ctas, 1, 128),
                HopperData::floats(size_t(n * columns), 4), {}, size_t(n * columns), {n, columns});
  for (int y = 0; y < n; ++y) {
    const double* x = &p->x.values[size_t(y * columns)];
    double sum = 0;
    for (int i = 0; i < columns; ++i) sum += x[i] * x[i];
    for (int i = 0; i < columns; ++i)
      expect_value(*p, x[i] / std::sqrt(sum / columns + 1e-5), 1e-5);
  }
  return p;
}

RowsPtr sums(int n, int columns) {
  auto p = rows("tma_sums", rows_config((columns + 63) / 64, (n + 31) / 32, 64),
                HopperData::floats(size_t(n * columns), 5), {}, size_t(columns), {});
  Rows* data = p.get();
  p->program.bind = [data, n, columns](Sim& sim) {
    const uint64_t x = sim.memory.add("x", std::span(data->x.bytes), Access::read_only);
    const uint64_t out = sim.memory.add("out", std::span(data->out.bytes), Access::read_write);
    const HopperMap map{.type = TensorType::f32,
                        .columns = uint64_t(columns),
                        .rows = 1,
                        .pitch = uint64_t(columns) * 4,
                        .box_columns = 64,
                        .box_rows = 1,
                        .swizzle = 0};
    return std::vector<Bytes8>{arg(x), map.at(out), arg(n), arg(columns)};
  };
  for (int i = 0; i < columns; ++i) {
    double sum = 0;
    for (int y = 0; y < n; ++y) sum += p->x.values[size_t(y * columns + i)];
    expect_value(*p, sum, 1e-4);
  }
  return p;
}

RowsPtr ring(int clusters, int ctas) {
  auto p = rows("ring_sum", rows_config(clusters * ctas, 1, 64, ctas),
                HopperData::floats(size_t(clusters * ctas * 64), 6), {},
                size_t(clusters * ctas * 64), {});
  for (int c = 0; c < clusters * ctas; ++c) {
    for (int i = 0; i < 64; ++i) {
      double sum = 0;
      for (int k = 0; k < ctas; ++k) sum += p->x.values[size_t((c / ctas * ctas + k) * 64 + i)];
      expect_value(*p, sum, 1e-5);
    }
  }
  return p;
}

RowsPtr histogram(int n, int ctas) {
  HopperData x;
  for (int i = 0; i < n; ++i) x.push(i * i % 61, i * i % 61);
  auto p = rows("cluster_histogram", rows_config(ctas, 1, 64, ctas), std::move(x), {}, 64, {n});
  for (int k = 0; k < 64; ++k) {
    double count = 0;
    for (double v : p->x.values) count += v == k;
    expect_value(*p, count, 0);
  }
  return p;
}

RowsPtr gemv(int n, int columns) {
  auto p = rows("async_gemv", rows_config((n + 3) / 4, 1, 160),
                HopperData::floats(size_t(n * columns), 7), HopperData::floats(size_t(columns), 8),
                size_t(n), {n, columns});
  for (int y = 0; y < n; ++y) {
    double sum = 0;
    for (int i = 0; i < columns; ++i)
      sum += p->x.values[size_t(y * columns + i)] * p->v.values[size_t(i)];
    expect_value(*p, sum, 1e-4);
  }
  return p;
}

std::vector<RowsPtr> rows_programs() {
  std::vector<RowsPtr> all;
  all.push_back(softmax(3, 1996, 4));
  all.push_back(norm(7, 332, 2));
  all.push_back(sums(75, 200));
  all.push_back(ring(2, 4));
  all.push_back(histogram(1001, 3));
  all.push_back(gemv(7, 640));
  return all;
}

TEST(HopperRows, EqualDoublePrecision) {
  for (const RowsPtr& p : rows_programs())
    EXPECT_EQ(outcome(p->program, 0), "") << p->program.entry;
  EXPECT_EQ(outcome(softmax(2, 8000, 8)->program, 0), "");
  EXPECT_EQ(outcome(softmax(5, 36, 2)->program, 0), "");
  EXPECT_EQ(outcome(ring(1, 8)->program, 0), "");
}

TEST(HopperRows, PlantedFaultsAreFound) {
  const std::map<std::string, std::vector<HopperFault>> faults = {
      {"cluster_softmax",
       {{1, "shared_race"},
        {2, "shared_race"},
        {3, "exited_cta"},
        {4, "missing_proxy_fence"},
        {5, "deadlock"},
        {6, "bad_cluster_rank"},
        {7, "wrong values"},
        {8, "async_copy_pending"}}},
      {"persistent_norm",
       {{1, "shared_race"},
        {2, "async_copy_pending"},
        {3, "async_copy_pending"},
        {4, "missing_proxy_fence"},
        {5, "deadlock"}}},
      {"tma_sums",
       {{1, "missing_proxy_fence"},
        {2, "uninitialised"},
        {3, "global_race"},
        {4, "wrong values"},
        {5, "misaligned"}}},
      {"ring_sum",
       {{1, "bad_bulk_copy"},
        {2, "async_copy_pending"},
        {3, "bad_mbarrier"},
        {4, "async_copy_pending"},
        {5, "async_copy_pending"}}},
      {"cluster_histogram",
       {{1, "async_copy_pending"}, {2, "async_copy_pending"}, {3, "async_copy_pending"}}},
      {"async_gemv",
       {{1, "async_copy_pending"}, {2, "async_copy_pending"}, {3, "deadlock"}, {4, "deadlock"}}}};
  for (const RowsPtr& p : rows_programs()) {
    for (const HopperFault& f : faults.at(p->program.entry))
      EXPECT_EQ(outcome(p->program, f.number), f.found) << p->program.entry << " " << f.number;
  }
}

// The second step may begin before the first one has ended, so it must wait for the first.
std::string chain(int fault) {
  const int n = 1000;
  std::vector<float> x(n), between(n), out(n);
  for (int i = 0; i < n; ++i) x[size_t(i)] = float(i % 37) / 8;
  const Module m = golden("hopper/rows.ptx");
  Sim sim;
  const Bytes8 a = sim.input("x", x), b = sim.output("between", between),
               c = sim.output("out", out);
  sim.run(m, "chain_square", 4, 256, {a, b, arg(n), arg(fault)});
  LaunchConfig second = rows_config(4, 1, 256);
  second.overlaps = true;
  auto r = launch(sim.context, sim.memory, m, "chain_sum", second, {b, c, arg(n), arg(fault)},
                  sim.options);
  if (!r) return r.error().text();
  if (r->finding) return r->finding->kind;
  for (int i = 0; i < n; ++i) {
    const double p = x[size_t(i)], q = x[size_t((i + 1) % n)];
    if (out[size_t(i)] != p * p + q * q) return "wrong values";
  }
  return "";
}

TEST(HopperRows, AChainOfStepsWaits) {
  EXPECT_EQ(chain(0), "");
  EXPECT_EQ(chain(1), "pdl_race");
  EXPECT_EQ(chain(2), "pdl_race");
  EXPECT_EQ(chain(3), "wrong values");
}

}  // namespace
}  // namespace cutegen::ptx
