// SPDX-License-Identifier: Apache-2.0
// Products whose depth is divided among CTAs, and products of bytes, compared with double
// precision; planted faults.
#include <map>
#include <memory>

#include "ptx/testing/hopper.h"

namespace cutegen::ptx {
namespace {

struct DepthProduct {
  HopperData a, b, out, parts, ready;
  HopperProgram program;
};
using DepthPtr = std::unique_ptr<DepthProduct>;

// a: m x k, b: n x k. The parameters are the maps of a and b, what `bind` returns, then integers.
using DepthBind = std::function<std::vector<Bytes8>(DepthProduct&, Sim&, uint64_t out)>;

DepthPtr depth_product(const char* entry, int m, int n, int k, LaunchConfig config, bool bytes,
                       DepthBind bind, std::vector<int> sizes) {
  auto p = std::make_unique<DepthProduct>();
  const size_t elements_a = size_t(m) * size_t(k), elements_b = size_t(n) * size_t(k);
  p->a = bytes ? HopperData::bytes_of(elements_a, 1) : HopperData::bf16s(elements_a, 1);
  p->b = bytes ? HopperData::bytes_of(elements_b, 2) : HopperData::bf16s(elements_b, 2);
  p->out = HopperData::empty(size_t(m) * size_t(n) * 4);
  p->parts = HopperData::empty(size_t(config.grid[0]) * 64 * 64 * 4);
  p->ready = HopperData::empty(size_t(config.grid[0]) * 4);
  p->program.file = "depth.ptx", p->program.entry = entry, p->program.config = config;
  p->program.out = &p->out.bytes;
  DepthProduct* data = p.get();
  p->program.bind = [=](Sim& sim) {
    HopperMap a{.columns = uint64_t(k), .rows = uint64_t(m), .pitch = uint64_t(k) * 2}, b = a;
    if (bytes) a.type = b.type = TensorType::u8, a.pitch = b.pitch = uint64_t(k);
    if (bytes) a.box_columns = b.box_columns = 128;
    b.rows = uint64_t(n);
    std::fill(data->ready.bytes.begin(), data->ready.bytes.end(), std::byte{0});
    std::vector<Bytes8> args{
        a.at(sim.memory.add("a", std::span(data->a.bytes), Access::read_only)),
        b.at(sim.memory.add("b", std::span(data->b.bytes), Access::read_only))};
    const uint64_t out = sim.memory.add("out", std::span(data->out.bytes), Access::read_write);
    for (Bytes8& more : bind(*data, sim, out)) args.push_back(std::move(more));
    for (int size : sizes) args.push_back(arg(size));
    return args;
  };
  for (int y = 0; y < m; ++y)
    for (int x = 0; x < n; ++x) {
      double sum = 0, size = 0;
      for (int i = 0; i < k; ++i) {
        const double term = p->a.values[size_t(y * k + i)] * p->b.values[size_t(x * k + i)];
        sum += term, size += std::abs(term);
      }
      p->program.truth.push_back(sum), p->program.bound.push_back(bytes ? 0 : 1e-6 * size);
    }
  return p;
}

LaunchConfig tiles_of(int m, int n, int64_t z = 1, int64_t cluster = 1) {
  return {.grid = {(n + 63) / 64, (m + 63) / 64, z},
          .block = {160, 1, 1},
          .cluster = {1, 1, cluster},
          .shared_bytes = 0,
          .cooperative = false};
}

DepthPtr stream_k(int m, int n, int k, int ctas) {
  return depth_product(
      "gemm_stream_k", m, n, k,
      {.grid = {ctas, 1, 1},
       .block = {160, 1, 1},
       .cluster = {1, 1, 1},
       .shared_bytes = 0,
       .cooperative = false},
      false,
      [](DepthProduct& p, Sim& sim, uint64_t out) {
        return std::vector<Bytes8>{
            arg(out), arg(sim.memory.add("parts", std::span(p.parts.bytes), Access::read_write)),
            arg(sim.memory.add("ready", std::span(p.ready.bytes), Access::read_write))};
      },
      {m, n, k});
}

DepthPtr reduced(int m, int n, int k, int z) {
  return depth_product("gemm_reduce", m, n, k, tiles_of(m, n, z), false,
                       [m, n](DepthProduct&, Sim&, uint64_t out) {
                         return std::vector<Bytes8>{HopperMap{.type = TensorType::f32,
                                                              .columns = uint64_t(n),
                                                              .rows = uint64_t(m),
                                                              .pitch = uint64_t(n) * 4,
                                                              .box_columns = 32,
                                                              .swizzle = 0}
                                                        .at(out)};
                       },
                       {k});
}

DepthPtr plain_depth(const char* entry, int m, int n, int k, LaunchConfig config, bool bytes) {
  return depth_product(
      entry, m, n, k, config, bytes,
      [](DepthProduct&, Sim&, uint64_t out) { return std::vector<Bytes8>{arg(out)}; }, {m, n, k});
}

DepthPtr pairs(int m, int n, int k) {
  return plain_depth("gemm_pairs", m, n, k, tiles_of(m, n, 2, 2), false);
}

DepthPtr bytes_product(int m, int n, int k) {
  return plain_depth("gemm_bytes", m, n, k, tiles_of(m, n), true);
}

std::vector<DepthPtr> depth_programs() {
  std::vector<DepthPtr> all;
  all.push_back(stream_k(136, 72, 328, 5));
  all.push_back(reduced(72, 136, 328, 3));
  all.push_back(pairs(72, 136, 328));
  all.push_back(bytes_product(72, 72, 592));
  return all;
}

TEST(HopperDepth, EqualsDoublePrecision) {
  for (const DepthPtr& p : depth_programs())
    EXPECT_EQ(outcome(p->program, 0), "") << p->program.entry;
  // One tile for several CTAs, then several tiles for one.
  EXPECT_EQ(outcome(stream_k(64, 64, 1024, 7)->program, 0), "");
  EXPECT_EQ(outcome(stream_k(200, 136, 128, 2)->program, 0), "");
  EXPECT_EQ(outcome(reduced(64, 64, 64, 2)->program, 0), "");
  EXPECT_EQ(outcome(pairs(64, 64, 64)->program, 0), "");
}

TEST(HopperDepth, PlantedFaultsAreFound) {
  const std::map<std::string, std::vector<HopperFault>> faults = {
      {"gemm_stream_k",
       {{1, "global_race"},
        {2, "global_race"},
        {4, "wrong values"},
        {5, "global_race"},
        {6, "wrong values"}}},
      {"gemm_reduce",
       {{1, "missing_proxy_fence"},
        {2, "shared_race"},
        {3, "global_race"},
        {4, "wrong values"},
        {5, "wrong values"},
        {6, "async_copy_pending"}}},
      {"gemm_pairs",
       {{1, "shared_race"},
        {2, "exited_cta"},
        {3, "uninitialised"},
        {4, "wrong values"},
        {5, "bad_cluster_rank"},
        {6, "shared_race"}}},
      {"gemm_bytes",
       {{1, "wrong values"}, {2, "shared_race"}, {3, "wrong values"}, {4, "wrong values"}}}};
  for (const DepthPtr& p : depth_programs())
    for (const HopperFault& f : faults.at(p->program.entry))
      EXPECT_EQ(outcome(p->program, f.number), f.found) << p->program.entry << " " << f.number;
  EXPECT_EQ(outcome(stream_k(64, 64, 1024, 7)->program, 3), "wrong values");
}

}  // namespace
}  // namespace cutegen::ptx
