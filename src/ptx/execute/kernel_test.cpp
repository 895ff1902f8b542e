// SPDX-License-Identifier: Apache-2.0
// Compiled kernels (tests/golden/ptx, next to their sources), compared with the host.
#include <bit>
#include <cmath>
#include <functional>
#include <map>
#include <random>

#include "ptx/ops/half.h"
#include "ptx/testing/test_machine.h"

namespace cutegen::ptx {
namespace {

std::vector<float> randoms(size_t n, float scale = 3) {
  std::mt19937 random(3);
  std::normal_distribution<float> d(0, scale);
  std::vector<float> out(n);
  for (float& x : out) x = d(random);
  return out;
}
std::vector<int> integers(size_t n, int low, int high) {
  std::mt19937 random(4);
  std::uniform_int_distribution<int> d(low, high);
  std::vector<int> out(n);
  for (int& x : out) x = d(random);
  return out;
}

TEST(Kernels, ReluWithHandCounts) {
  const int n = 1 << 20;
  auto x = randoms(n);
  std::vector<float> y(n, -1);
  Module m = golden("relu_cute.ptx");
  EXPECT_EQ(m.integer_constants().at("cg_tile"), 1024);
  ASSERT_EQ(m.entries().size(), 1u);
  EXPECT_EQ(m.entries()[0].max_block[0], 256);
  Sim sim;
  auto r = sim.run(m, "relu", n / 1024, 256, {sim.input("x", x), sim.output("y", y), arg(n)});
  for (int i = 0; i < n; ++i) ASSERT_EQ(y[size_t(i)], std::max(x[size_t(i)], 0.f)) << i;
  // float4: a warp's request is 512 bytes, 16 sectors
  EXPECT_EQ(r.counters.global_load_sectors, uint64_t(n) / 8);
  EXPECT_EQ(r.counters.global_store_sectors, uint64_t(n) / 8);
  EXPECT_EQ(r.counters.global_load_requests, uint64_t(n) / 128);
  EXPECT_EQ(r.counters.global_load_bytes, uint64_t(n) * 4);
  EXPECT_EQ(r.counters.flops, uint64_t(n));
  EXPECT_EQ(r.counters.divergent_branches, 0u);
  ASSERT_EQ(r.traffic.size(), 2u);
  EXPECT_EQ(r.traffic[0].load_sectors, uint64_t(n) / 8);
}

TEST(Kernels, ReluTail) {
  const int n = 3333;
  auto x = randoms(n);
  std::vector<float> y(n, -1);
  Sim sim;
  Module m = golden("relu_cute.ptx");
  sim.run(m, "relu", 4, 256, {sim.input("x", x), sim.output("y", y), arg(n)});
  for (size_t i = 0; i < n; ++i) ASSERT_EQ(y[i], std::max(x[i], 0.f)) << i;
}

TEST(Kernels, SoftmaxIsTheSameOnAnyNumberOfThreads) {
  Module m = golden("softmax.ptx");
  std::vector<float> first;
  for (int cols : {1024, 37, 1, 257}) {
    const size_t rows = 40;
    auto x = randoms(rows * size_t(cols));
    for (int threads : {1, 4}) {
      std::vector<float> y(x.size());
      Sim sim;
      sim.options.threads = threads;
      sim.run(m, "softmax", int64_t(rows), 256, {sim.input("x", x), sim.output("y", y), arg(cols)});
      for (size_t r = 0; r < rows; ++r) {
        double sum = 0;
        for (int c = 0; c < cols; ++c) sum += std::exp(double(x[r * size_t(cols) + size_t(c)]));
        for (int c = 0; c < cols; ++c) {
          const double want = std::exp(double(x[r * size_t(cols) + size_t(c)])) / sum;
          ASSERT_NEAR(y[r * size_t(cols) + size_t(c)], want, 1e-5 * want) << r << "," << c;
        }
      }
      if (threads == 1) first = y;
      EXPECT_EQ(first, y);
    }
  }
}

TEST(Kernels, Reductions) {
  Module m = golden("reduce.ptx");
  const size_t rows = 19, cols = 500;
  auto x = randoms(rows * cols);
  x[5 * cols + 77] = x[5 * cols + 400] = 50;
  std::vector<float> sums(rows), tops(cols);
  std::vector<int64_t> where(rows);
  Sim sim;
  auto in = sim.input("x", x);
  sim.run(m, "row_sum", int64_t(rows), 128, {in, sim.output("sums", sums), arg(int(cols / 4))});
  sim.run(m, "col_max", 4, 128, {in, sim.output("tops", tops), arg(int(rows)), arg(int(cols))});
  sim.run(m, "argmax_rows", int64_t(rows), 64, {in, sim.output("where", where), arg(int(cols))},
          64 * 8);
  for (size_t r = 0; r < rows; ++r) {
    double sum = 0;
    size_t best = 0;
    for (size_t c = 0; c < cols; ++c) {
      sum += double(x[r * cols + c]);
      if (x[r * cols + c] > x[r * cols + best]) best = c;
    }
    EXPECT_NEAR(sums[r], sum, 1e-3);
    EXPECT_EQ(where[r], int64_t(best));
  }
  for (size_t c = 0; c < cols; ++c) {
    float top = x[c];
    for (size_t r = 1; r < rows; ++r) top = std::max(top, x[r * cols + c]);
    EXPECT_EQ(tops[c], top);
  }
}

TEST(Kernels, MathLibrary) {
  auto x = randoms(700, 4);
  x[0] = 0, x[1] = -0.f, x[2] = 1e-30f, x[3] = 60, x[4] = -60;
  std::vector<float> y(x.size() * 20);
  Sim sim;
  Module m = golden("math.ptx");
  sim.run(m, "unary", 3, 256, {sim.input("x", x), sim.output("y", y), arg(int(x.size()))});
  for (size_t i = 0; i < x.size(); ++i) {
    const double a = x[i], p = double(std::abs(x[i]) + 0.125f);
    const double want[] = {0.5 * a * (1 + std::erf(a * 0.70710678)),
                           std::tanh(a),
                           std::exp(a),
                           std::log(p),
                           std::sqrt(p),
                           1 / std::sqrt(p),
                           1 / (1 + std::exp(-a)),
                           std::log1p(p),
                           std::expm1(a),
                           std::pow(p, 1.7),
                           a / p,
                           a / p,
                           std::floor(a),
                           std::nearbyint(a),
                           std::trunc(a),
                           std::sin(a),
                           std::cos(a),
                           std::log2(p),
                           std::exp2(a),
                           std::fmod(a, double(0.7f))};
    for (size_t k = 0; k < 20; ++k) {
      const double tolerance =
          4e-6 * std::max(std::abs(want[k]),
                          k == 0 || k == 15 || k == 16 || k == 3 || k == 17 ? 1. : 1e-3);
      ASSERT_NEAR(y[i * 20 + k], want[k], tolerance) << "function " << k << " of " << a;
    }
  }
}

TEST(Kernels, Doubles) {
  std::vector<double> x;
  for (float f : randoms(300)) x.push_back(double(f) * 1.000000001);
  std::vector<double> y(x.size() * 6);
  Sim sim;
  Module m = golden("math.ptx");
  sim.run(m, "doubles", 2, 256, {sim.input("x", x), sim.output("y", y), arg(int(x.size()))});
  for (size_t i = 0; i < x.size(); ++i) {
    const double a = x[i], p = std::abs(a) + 0.5;
    const double want[] = {std::fma(a, p, 1.0), a / p,       std::sqrt(p),
                           std::exp(a),         std::log(p), double(float(a)) + double(int64_t(a))};
    for (size_t k = 0; k < 6; ++k) {
      ASSERT_NEAR(y[i * 6 + k], want[k],
                  k < 3 || k == 5 ? 0 : 1e-14 * std::max(1., std::abs(want[k])))
          << k << " of " << a;
    }
  }
}

TEST(Kernels, HalvesAndIntegers) {
  auto x = randoms(500, 200);
  x[0] = 65519, x[1] = 65520, x[2] = 1e-8f, x[3] = NAN, x[4] = INFINITY, x[5] = 3e-6f, x[6] = 3e9f,
  x[7] = -3e9f;
  const size_t n = x.size();
  std::vector<uint16_t> h(n), b(n);
  std::vector<float> back(2 * n);
  std::vector<int> q(8 * n);
  Sim sim;
  Module m = golden("convert.ptx");
  auto in = sim.input("x", x);
  sim.run(m, "halves", 2, 256,
          {in, sim.output("h", h), sim.output("b", b), sim.output("back", back), arg(int(n))});
  sim.run(m, "integers", 2, 256, {in, sim.output("q", q), arg(int(n))});
  for (size_t i = 0; i < n; ++i) {
    EXPECT_EQ(h[i], to_half(double(x[i])));
    EXPECT_EQ(b[i], to_bfloat(double(x[i])));
    if (!std::isnan(x[i])) {
      EXPECT_EQ(back[2 * i], half_value(h[i]));
    }
    if (std::abs(x[i]) > 2e9f || !std::isfinite(x[i])) continue;
    EXPECT_EQ(q[8 * i], int(x[i]));
    EXPECT_EQ(q[8 * i + 2], int(std::nearbyint(x[i])));
    EXPECT_EQ(q[8 * i + 3], int(std::ceil(x[i])));
    EXPECT_EQ(q[8 * i + 4], int(std::floor(x[i])));
    EXPECT_EQ(q[8 * i + 5], int(int8_t(int(x[i]))));
    EXPECT_EQ(q[8 * i + 6], int(uint8_t(int(x[i]))));
  }
  EXPECT_EQ(q[8 * 6], INT32_MAX);
  EXPECT_EQ(q[8 * 7], INT32_MIN);
  EXPECT_EQ(q[8 * 3], 0);  // NaN
}

TEST(Kernels, HalfPairs) {
  std::vector<uint16_t> x, y, p, q;
  for (float f : randoms(128)) x.push_back(to_half(double(f))), p.push_back(to_bfloat(double(f)));
  for (float f : randoms(128, 9))
    y.push_back(to_half(double(f))), q.push_back(to_bfloat(double(f)));
  std::vector<uint16_t> out(6 * 64), r(6 * 64);
  Sim sim;
  Module m = golden("convert.ptx");
  sim.run(m, "half_math", 1, 64,
          {sim.input("x", x), sim.input("y", y), sim.output("out", out), sim.input("p", p),
           sim.input("q", q), sim.output("r", r), arg(64)});
  for (size_t i = 0; i < 64; ++i) {
    for (size_t k = 0; k < 2; ++k) {
      const double a = half_value(x[2 * i + k]), b = half_value(y[2 * i + k]);
      EXPECT_EQ(out[6 * i + k], to_half(a + b));
      EXPECT_EQ(out[6 * i + 2 + k], to_half(a * b));
      EXPECT_EQ(out[6 * i + 4 + k], to_half(a * b + a));
      const double c = bfloat_value(p[2 * i + k]), d = bfloat_value(q[2 * i + k]);
      EXPECT_EQ(r[6 * i + k], to_bfloat(c + d));
      EXPECT_EQ(r[6 * i + 2 + k], to_bfloat(std::max(c, d)));
      EXPECT_EQ(r[6 * i + 4 + k], to_bfloat(c * d + c));
    }
  }
}

int trips(int count) {
  int total = 0;
  for (int k = 0; k < count; ++k) {
    if (k & 1) {
      total += k * 3;
      if (total % 7 == 0) continue;
    } else {
      total ^= k;
    }
    if (total > 5000) break;
  }
  return total;
}
int cases(int x) {
  int local[16];
  for (int k = 0; k < 16; ++k) local[k] = k * x;
  int v = 0;
  const uint32_t u = uint32_t(x);
  switch (x & 7) {
    case 0:
      v = local[x & 15];
      break;
    case 1:
      v = 17;
      break;
    case 2:
      v = x / 3;
      break;
    case 3:
      v = x % 11;
      break;
    case 4:
      v = -x;
      break;
    case 5:
      v = std::popcount(u);
      break;
    case 6:
      v = std::countl_zero(u);
      break;
    default:
      for (int i = 0; i < 32; ++i) v |= int((u >> i & 1) << (31 - i));
      break;
  }
  local[v & 15] += 5;
  uint32_t sum = 0;
  for (int k = 0; k < 16; ++k)
    sum += uint32_t(local[(uint32_t(k) * 7 + uint32_t(v)) & 15]) * uint32_t(k + 1);
  return int(sum + uint32_t(v));
}

TEST(Kernels, DivergentControlFlow) {
  Module m = golden("control.ptx");
  auto counts = integers(1000, 0, 90);
  auto x = integers(1000, -4000, 4000);
  std::vector<int> a(1000), b(1000), c(1000);
  Sim sim;
  auto r = sim.run(m, "trips", 8, 128, {sim.input("count", counts), sim.output("a", a), arg(1000)});
  EXPECT_GT(r.counters.divergent_branches, 100u);
  EXPECT_LT(r.counters.thread_instructions, r.counters.warp_instructions * 32);
  sim.run(m, "cases", 8, 128, {sim.input("x", x), sim.output("b", b), arg(1000)});
  sim.run(m, "scoped", 8, 128, {sim.output("c", c), arg(1000)});
  for (size_t i = 0; i < 1000; ++i) {
    EXPECT_EQ(a[i], trips(counts[i]));
    ASSERT_EQ(b[i], cases(x[i])) << x[i];
    int v = int(i);
    for (int k = 0; k < 3; ++k) {
      do v -= 5;
      while (v > 0);
      v += k + 20;
    }
    EXPECT_EQ(c[i], v);
  }
}

TEST(Kernels, WideIntegers) {
  std::mt19937_64 random(5);
  std::vector<int64_t> a(300), b(300), out(1800);
  for (size_t i = 0; i < 300; ++i)
    a[i] = int64_t(random()) >> (i % 60), b[i] = int64_t(random()) >> (i * 7 % 63);
  b[7] = 0;
  Sim sim;
  Module m = golden("control.ptx");
  sim.run(m, "wide", 3, 100,
          {sim.input("a", a), sim.input("b", b), sim.output("out", out), arg(300)});
  for (size_t i = 0; i < 300; ++i) {
    const int64_t d = b[i] ? b[i] : 3;
    EXPECT_EQ(out[6 * i], a[i] / d);
    EXPECT_EQ(out[6 * i + 1], a[i] % d);
    EXPECT_EQ(out[6 * i + 2], int64_t(uint64_t(a[i]) * uint64_t(d)));
    EXPECT_EQ(out[6 * i + 3], int64_t(uint64_t(a[i]) >> (d & 63)));
    EXPECT_EQ(out[6 * i + 4],
              int64_t(uint64_t((unsigned __int128)(uint64_t(a[i]))*uint64_t(d) >> 64)));
    EXPECT_EQ(out[6 * i + 5], int64_t(uint32_t(a[i]) / (uint32_t(d) | 1u)) + (a[i] < d));
  }
}

TEST(Kernels, AtomicsFromManyThreads) {
  Module m = golden("atomics.ptx");
  auto x = integers(20000, 0, 5000);
  std::vector<uint32_t> bins(36, 0);
  std::vector<float> total(1, 0);
  std::vector<int> extremes{1 << 30, -1};
  std::vector<uint64_t> wide(1, 0);
  Sim sim;
  sim.options.threads = 4;
  sim.run(m, "histogram", 79, 256,
          {sim.input("x", x), sim.output("bins", bins), sim.output("total", total),
           sim.output("extremes", extremes), sim.output("wide", wide), arg(20000)});
  std::vector<uint32_t> want(32, 0);
  uint64_t sum = 0;
  float low = 0;
  uint32_t seen = 0;
  for (int v : x)
    ++want[size_t(v & 31)], sum += uint64_t(v), low += float(v & 3), seen |= 1u << (v & 31);
  for (size_t i = 0; i < 32; ++i) EXPECT_EQ(bins[i], want[i]);
  EXPECT_EQ(bins[32], seen);
  EXPECT_EQ(bins[33], 20000u % 10);  // inc wraps at 9
  EXPECT_EQ(bins[34], 77u);
  EXPECT_EQ(bins[35], 5u);
  EXPECT_EQ(total[0], low);
  EXPECT_EQ(wide[0], sum);
  EXPECT_EQ(extremes[0], *std::min_element(x.begin(), x.end()));
  EXPECT_EQ(extremes[1], *std::max_element(x.begin(), x.end()));
}

// One thread applies red or atom to eight elements of 16 bits.
std::vector<uint16_t> after_vector(const std::string& opcode, const std::string& values,
                                   LaunchStatus status = LaunchStatus::ok) {
  auto m = Module::parse(
      ".version 9.0\n.target sm_90a\n.address_size 64\n.visible .entry k(.param .u64 out) {\n"
      ".reg .b64 %d; .reg .b16 %h<8>; .reg .b32 %r<4>; .reg .f32 %f<8>; .reg .pred %p;\n"
      "ld.param.u64 %d, [out]; mov.u32 %r0, %tid.x; setp.ne.u32 %p, %r0, 0; @%p ret;\n"
      "mov.b16 %h0, 0x3c00; mov.b16 %h1, 0x4000; mov.b16 %h2, 0x4200; mov.b16 %h3, 0xc000;\n"
      "mov.b32 %r0, {%h0, %h1}; mov.b32 %r1, {%h2, %h3};\n" +
      opcode + " [%d], " + values + ";\nret;\n}\n");
  if (!m) ADD_FAILURE() << m.error().text();
  std::vector<uint16_t> out(8, 0x4100);  // 2.5
  Sim sim;
  sim.run(*m, "k", 1, 32, {sim.output("out", out)}, 0, status);
  return out;
}

TEST(Kernels, VectorAtomics) {
  using V = std::vector<uint16_t>;
  // 1, 2, 3 and -2 as halves
  EXPECT_EQ(after_vector("red.global.add.noftz.v8.f16", "{%h0, %h1, %h2, %h3, %h3, %h2, %h1, %h0}"),
            (V{0x4300, 0x4480, 0x4580, 0x3800, 0x3800, 0x4580, 0x4480, 0x4300}));
  EXPECT_EQ(after_vector("red.global.v2.f16x2.max.noftz", "{%r0, %r1}"),
            (V{0x4100, 0x4100, 0x4200, 0x4100, 0x4100, 0x4100, 0x4100, 0x4100}));
  EXPECT_EQ(after_vector("red.relaxed.gpu.global.min.noftz.v4.f16", "{%h0, %h1, %h2, %h3}"),
            (V{0x3c00, 0x4000, 0x4100, 0xc000, 0x4100, 0x4100, 0x4100, 0x4100}));
  for (const char* wrong : {"red.global.add.v8.f32", "red.global.min.v2.f32",
                            "red.global.add.noftz.v8.f16x2", "red.global.add.v2.u32"})
    after_vector(wrong, "{%r0, %r1}", LaunchStatus::unsupported);
}

TEST(Kernels, WarpCollectives) {
  Module m = golden("atomics.ptx");
  auto x = integers(128, 0, 100);
  std::vector<int> out(512);
  Sim sim;
  sim.run(m, "warps", 1, 128, {sim.input("x", x), sim.output("out", out)});
  for (int t = 0; t < 128; ++t) {
    const int base = t & ~31, lane = t & 31;
    auto at = [&](int l) { return x[size_t(base + l)]; };
    const int up = lane >= 3 ? at(lane - 3) : at(lane),
              down = (lane & 7) + 2 < 8 ? at(lane + 2) : at(lane);
    EXPECT_EQ(out[size_t(t)], at((lane * 5) & 31) + up + down + at(lane ^ 7)) << t;
    uint32_t odd = 0, same = 0;
    int sum = 0, top = -1, low = 1000;
    for (int l = 0; l < 32; ++l) {
      odd |= uint32_t(at(l) & 1) << l, same |= uint32_t((at(l) & 3) == (at(lane) & 3)) << l;
      sum += at(l), top = std::max(top, at(l)), low = std::min(low, at(l));
    }
    EXPECT_EQ(out[size_t(128 + t)], int(odd + uint32_t(top > 90) * 2 + 1));
    EXPECT_EQ(out[size_t(256 + t)], sum + top - low);
    EXPECT_EQ(out[size_t(384 + t)], int(same + ~0u));
  }
}

TEST(Kernels, ModuleVariablesAndParameterBlocks) {
  Module m = golden("constants.ptx");
  EXPECT_EQ(m.integer_constants().at("cg_smem"), 4096);
  EXPECT_EQ(m.integer_constants().at("cg_big"), int64_t{1} << 40);
  auto spec = m.constant_bytes("cg_tma_a");
  ASSERT_TRUE(spec.has_value());
  ASSERT_EQ(spec->size(), 60u);
  EXPECT_EQ((*spec)[8], std::byte(64));
  EXPECT_FALSE(m.constant_bytes("nothing").has_value());
  std::vector<std::byte> block(128);
  for (size_t i = 0; i < 128; ++i) block[i] = std::byte(i);
  std::vector<float> y(32);
  Sim sim;
  sim.run(m, "lookup", 2, 32, {block, sim.output("y", y), arg(3)});
  const float table[] = {1, 2, 3, 4, 5.5f, 6, 7, 8};
  for (size_t t = 0; t < 32; ++t) {
    EXPECT_EQ(y[t], table[(t + 3) & 7] + float(t % 5 + 1) + float(t & 3) * 2 + float(t));
  }
}

}  // namespace
}  // namespace cutegen::ptx
