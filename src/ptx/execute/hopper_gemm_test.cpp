// SPDX-License-Identifier: Apache-2.0
// Matrix products with tensor copies and wgmma, compared with double precision; planted faults.
#include <map>
#include <memory>

#include "ptx/testing/hopper.h"

namespace cutegen::ptx {
namespace {

struct Shape {
  int m, n, k;
};

// The data of a product. The HopperProgram refers to it.
struct Product {
  HopperData a, b, out;
  HopperProgram program;
};

// a(row, k), b(row, k): the index of an operand's element in memory.
template <class A, class B>
void set_truth(Product& p, Shape s, double relative, A a, B b) {
  for (int y = 0; y < s.m; ++y) {
    for (int x = 0; x < s.n; ++x) {
      double sum = 0, size = 0;
      for (int k = 0; k < s.k; ++k) {
        const double term = p.a.values[a(y, k)] * p.b.values[b(x, k)];
        sum += term, size += std::abs(term);
      }
      p.program.truth.push_back(sum);
      p.program.bound.push_back(relative * size + 1e-30);
    }
  }
}

enum class Kind { k_major, mn_major, cooperative, ping_pong, multicast, fp8 };

struct Gemm {
  const char* entry;
  Kind kind;
};
const Gemm kGemms[] = {{"gemm_k_major", Kind::k_major},         {"gemm_mn_major", Kind::mn_major},
                       {"gemm_cooperative", Kind::cooperative}, {"gemm_ping_pong", Kind::ping_pong},
                       {"gemm_multicast", Kind::multicast},     {"gemm_fp8", Kind::fp8}};

LaunchConfig config_of(Kind kind, Shape s) {
  const int64_t x = (s.n + 63) / 64, y = (s.m + 63) / 64;
  switch (kind) {
    case Kind::cooperative:
      return {.grid = {x, (y + 1) / 2, 1},
              .block = {384, 1, 1},
              .cluster = {1, 1, 1},
              .shared_bytes = 3 * 3 * 8192,
              .cooperative = false};
    case Kind::ping_pong:
      return {.grid = {2, 1, 1},
              .block = {384, 1, 1},
              .cluster = {1, 1, 1},
              .shared_bytes = 0,
              .cooperative = false};
    case Kind::multicast:
      return {.grid = {x, (y + 1) / 2 * 2, 1},
              .block = {160, 1, 1},
              .cluster = {1, 2, 1},
              .shared_bytes = 0,
              .cooperative = false};
    default:
      return {.grid = {x, y, 1},
              .block = {160, 1, 1},
              .cluster = {1, 1, 1},
              .shared_bytes = 0,
              .cooperative = false};
  }
}

std::unique_ptr<Product> gemm_product(const Gemm& g, Shape s) {
  auto p = std::make_unique<Product>();
  const size_t m = size_t(s.m), n = size_t(s.n), k = size_t(s.k);
  const bool fp8 = g.kind == Kind::fp8, mn = g.kind == Kind::mn_major;
  p->a = fp8 ? HopperData::e4m3s(m * k, 1) : HopperData::bf16s(m * k, 1);
  p->b = fp8 ? HopperData::e4m3s(n * k, 2) : HopperData::bf16s(n * k, 2);
  p->out = HopperData::empty(m * n * (mn ? 2 : 4));
  // fp8 keeps 13 bits of a sum. bf16 results are rounded once more.
  const double relative = fp8 ? 0x1p-11 : mn ? 0x1p-8 : 1e-6;
  if (mn)
    set_truth(
        *p, s, relative, [&](int y, int i) { return size_t(i) * m + size_t(y); },
        [&](int x, int i) { return size_t(i) * n + size_t(x); });
  else
    set_truth(
        *p, s, relative, [&](int y, int i) { return size_t(y) * k + size_t(i); },
        [&](int x, int i) { return size_t(x) * k + size_t(i); });
  p->program = {"gemm.ptx",    g.entry,          config_of(g.kind, s), nullptr,
                &p->out.bytes, p->program.truth, p->program.bound,     mn};
  Product* data = p.get();
  p->program.bind = [data, s, g, fp8, mn, m, n, k](Sim& sim) {
    HopperMap a{.columns = mn ? m : k, .rows = mn ? k : m, .pitch = (mn ? m : k) * 2};
    HopperMap b{.columns = mn ? n : k, .rows = mn ? k : n, .pitch = (mn ? n : k) * 2};
    if (fp8) a.type = b.type = TensorType::u8, a.pitch = b.pitch = k;
    if (fp8) a.box_columns = b.box_columns = 128;
    if (g.kind == Kind::cooperative) a.box_rows = 128;
    if (g.kind == Kind::multicast) b.box_rows = 32;
    auto add = [&](const char* name, HopperData& d, Access access) {
      return sim.memory.add(name, std::span(d.bytes), access);
    };
    std::vector<Bytes8> args{a.at(add("a", data->a, Access::read_only)),
                             b.at(add("b", data->b, Access::read_only))};
    const uint64_t out = add("out", data->out, Access::read_write);
    if (mn) {
      args.push_back(HopperMap{.columns = n, .rows = m, .pitch = n * 2}.at(out));
      args.push_back(arg(s.k));
    } else {
      args.push_back(arg(out));
      for (int size : {s.m, s.n, s.k}) args.push_back(arg(size));
    }
    return args;
  };
  return p;
}

// m, n and k that no tile divides. Rows must be multiples of 16 bytes.
Shape odd_shape(Kind kind) {
  if (kind == Kind::ping_pong) return {200, 136, 264};
  if (kind == Kind::fp8) return {72, 80, 592};
  return {136, 72, 328};
}

TEST(HopperGemm, EqualsDoublePrecision) {
  for (const Gemm& g : kGemms) {
    const auto p = gemm_product(g, odd_shape(g.kind));
    EXPECT_EQ(outcome(p->program, 0), "") << g.entry;
    const auto small = gemm_product(g, {64, 64, 128});
    EXPECT_EQ(outcome(small->program, 0), "") << g.entry;
  }
}

TEST(HopperGemm, PlantedFaultsAreFound) {
  // gemm_fp8 has the same pipeline as gemm_k_major.
  const std::vector<HopperFault> k_major = {
      {1, "bad_mbarrier"},        {2, "bad_mbarrier"},       {3, "deadlock"},
      {4, "missing_wgmma_fence"}, {5, "shared_race"},        {6, "shared_race"},
      {7, "wrong values"},        {8, "shared_race"},        {9, "deadlock"},
      {10, "wrong values"},       {11, "async_copy_pending"}};
  const std::map<std::string, std::vector<HopperFault>> faults = {
      {"gemm_k_major", k_major},
      {"gemm_mn_major",
       {{1, "shared_race"},
        {2, "missing_proxy_fence"},
        {3, "shared_race"},
        {4, "wrong values"},
        {5, "shared_race"},
        {6, "wrong values"}}},
      {"gemm_cooperative",
       {{1, "wrong values"}, {2, "shared_race"}, {3, "shared_race"}, {4, "deadlock"}}},
      {"gemm_ping_pong",
       {{1, "shared_race"}, {2, "bad_mbarrier"}, {3, "bad_mbarrier"}, {4, "deadlock"}}},
      {"gemm_multicast",
       {{1, "deadlock"},
        {2, "deadlock"},
        {3, "shared_race"},
        {4, "async_copy_pending"},
        {5, "shared_race"},
        {6, "exited_cta"},
        {7, "bad_mbarrier"},
        {8, "bad_bulk_copy"},
        {9, "shared_race"}}},
      {"gemm_fp8", k_major}};
  for (const Gemm& g : kGemms) {
    const auto p = gemm_product(g, odd_shape(g.kind));
    for (const HopperFault& f : faults.at(g.entry))
      EXPECT_EQ(outcome(p->program, f.number), f.found) << g.entry << " " << f.number;
  }
}

}  // namespace
}  // namespace cutegen::ptx
