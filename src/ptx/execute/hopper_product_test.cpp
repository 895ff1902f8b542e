// SPDX-License-Identifier: Apache-2.0
// Hopper products with operands from registers, compared with double precision; planted faults.
#include <map>
#include <memory>

#include "ptx/testing/hopper.h"

namespace cutegen::ptx {
namespace {

struct Data {
  HopperData a, b, c, out;
  HopperProgram program;
};
using DataPtr = std::unique_ptr<Data>;

DataPtr begin(const char* entry, int64_t x, int64_t y, int64_t block, size_t out) {
  auto p = std::make_unique<Data>();
  p->out = HopperData::empty(out * 4);
  p->program.file = "products.ptx", p->program.entry = entry, p->program.out = &p->out.bytes;
  p->program.config = {.grid = {x, y, 1},
                       .block = {block, 1, 1},
                       .cluster = {1, 1, 1},
                       .shared_bytes = 0,
                       .cooperative = false};
  return p;
}

uint64_t add(Sim& sim, HopperData& d, Access access = Access::read_only) {
  return sim.memory.add("data", std::span(d.bytes), access);
}

DataPtr attention(int queries, int keys) {
  auto p = begin("attention", (queries + 63) / 64, 1, 160, size_t(queries) * 64);
  p->a = HopperData::bf16s(size_t(queries) * 64, 1, 2);
  p->b = HopperData::bf16s(size_t(keys) * 64, 2, 2), p->c = HopperData::bf16s(size_t(keys) * 64, 3);
  Data* d = p.get();
  p->program.bind = [d, queries, keys](Sim& sim) {
    HopperMap map{.columns = 64, .rows = uint64_t(keys), .pitch = 128}, of_q = map;
    of_q.rows = uint64_t(queries);
    return std::vector<Bytes8>{of_q.at(add(sim, d->a)),
                               map.at(add(sim, d->b)),
                               map.at(add(sim, d->c)),
                               arg(add(sim, d->out, Access::read_write)),
                               arg(queries),
                               arg(keys)};
  };
  for (int y = 0; y < queries; ++y) {
    std::vector<double> score(size_t(keys), 0.0), sum(64, 0.0);
    double most = -1e30, total = 0;
    for (int k = 0; k < keys; ++k) {
      for (int i = 0; i < 64; ++i)
        score[size_t(k)] += p->a.values[size_t(y * 64 + i)] * p->b.values[size_t(k * 64 + i)] / 8;
      most = std::max(most, score[size_t(k)]);
    }
    for (int k = 0; k < keys; ++k) {
      const double weight = std::exp(score[size_t(k)] - most);
      total += weight;
      for (int i = 0; i < 64; ++i) sum[size_t(i)] += weight * p->c.values[size_t(k * 64 + i)];
    }
    for (int i = 0; i < 64; ++i)  // weights are rounded to bf16
      p->program.truth.push_back(sum[size_t(i)] / total), p->program.bound.push_back(0x1p-8);
  }
  return p;
}

// a: m x k, in global memory. b: n x k, read through a tensor map.
DataPtr typed_product(const char* entry, int m, int n, int k, bool mixed, double relative) {
  auto p = begin(entry, (n + 63) / 64, (m + 63) / 64, mixed ? 160 : 128, size_t(m) * size_t(n));
  p->a = mixed ? HopperData::bytes_of(size_t(m) * size_t(k), 4)
               : HopperData::floats(size_t(m) * size_t(k), 4);
  p->b = mixed ? HopperData::bf16s(size_t(n) * size_t(k), 5)
               : HopperData::floats(size_t(n) * size_t(k), 5);
  Data* d = p.get();
  p->program.bind = [d, m, n, k, mixed](Sim& sim) {
    HopperMap map{.columns = uint64_t(k), .rows = uint64_t(n), .pitch = uint64_t(k) * 2};
    if (!mixed) map.type = TensorType::f32, map.pitch *= 2, map.box_columns = 32;
    return std::vector<Bytes8>{arg(add(sim, d->a)),
                               map.at(add(sim, d->b)),
                               arg(add(sim, d->out, Access::read_write)),
                               arg(m),
                               arg(n),
                               arg(k)};
  };
  for (int y = 0; y < m; ++y) {
    for (int x = 0; x < n; ++x) {
      double sum = 0, size = 0;
      for (int i = 0; i < k; ++i) {
        const double term = p->a.values[size_t(y * k + i)] * p->b.values[size_t(x * k + i)];
        sum += term, size += std::abs(term);
      }
      p->program.truth.push_back(sum), p->program.bound.push_back(relative * size);
    }
  }
  return p;
}

std::vector<DataPtr> product_programs() {
  std::vector<DataPtr> all;
  all.push_back(attention(100, 211));
  all.push_back(typed_product("gemm_mixed", 75, 72, 200, true, 1e-6));
  all.push_back(typed_product("gemm_tf32x3", 75, 72, 140, false, 2e-6));
  return all;
}

TEST(HopperProducts, EqualDoublePrecision) {
  for (const DataPtr& p : product_programs())
    EXPECT_EQ(outcome(p->program, 0), "") << p->program.entry;
  EXPECT_EQ(outcome(attention(3, 5)->program, 0), "");
}

TEST(HopperProducts, PlantedFaultsAreFound) {
  const std::map<std::string, std::vector<HopperFault>> faults = {
      {"attention",
       {{1, "wgmma_pending"},
        {2, "out_of_bounds"},
        {3, "wrong values"},
        {4, "missing_wgmma_fence"},
        {5, "wrong values"},
        {6, "async_copy_pending"},
        {7, "bad_mbarrier"},
        {8, "wgmma_pending"}}},
      {"gemm_mixed",
       {{1, "wrong values"},
        {2, "wgmma_pending"},
        {3, "missing_wgmma_fence"},
        {4, "wrong values"}}},
      {"gemm_tf32x3",
       {{1, "wrong values"},
        {2, "missing_proxy_fence"},
        {3, "wgmma_operand_overwritten"},
        {4, "wgmma_operand_overwritten"},
        {5, "wrong values"}}}};
  for (const DataPtr& p : product_programs()) {
    for (const HopperFault& f : faults.at(p->program.entry))
      EXPECT_EQ(outcome(p->program, f.number), f.found) << p->program.entry << " " << f.number;
  }
}

}  // namespace
}  // namespace cutegen::ptx
