// SPDX-License-Identifier: Apache-2.0
// Opcode forms, compared with independent computations on the host for random and special operands.
#include <fmt/format.h>

#include <bit>
#include <cmath>
#include <functional>
#include <limits>
#include <random>

#include "ptx/ops/half.h"
#include "ptx/testing/test_machine.h"

namespace cutegen::ptx {
namespace {

using U = uint64_t;
using Host = std::function<U(U, U, U)>;

struct OpcodeCase {
  const char* text;   // uses %d %a %b %c
  const char* types;  // letters of d, a, b, c: h w d f F H, p for a predicate destination
  Host host;
  double ulps = 0;  // tolerance of float results
};

float f(U x) {
  return std::bit_cast<float>(uint32_t(x));
}
double D(U x) {
  return std::bit_cast<double>(x);
}
U F(float x) {
  return std::bit_cast<uint32_t>(x);
}
U F(double x) {
  return std::bit_cast<uint64_t>(x);
}
int32_t s(U x) {
  return int32_t(uint32_t(x));
}
int64_t S(U x) {
  return int64_t(x);
}

size_t bytes_of(char c) {
  return c == 'h' || c == 'H' ? 2 : c == 'd' || c == 'F' ? 8 : 4;
}
const char* reg(char c) {
  switch (c) {
    case 'h':
    case 'H':
      return "b16";
    case 'd':
      return "b64";
    case 'F':
      return "f64";
    case 'f':
      return "f32";
    default:
      return "b32";
  }
}

U operand(std::mt19937_64& random, char c) {
  static const U words[] = {0,  1,          2,          31,         32,     33,
                            63, 0x7fffffff, 0x80000000, 0xffffffff, 0xffff, 0x8000};
  static const U longs[] = {
      0, 1, 63, 64, 0x7fffffffffffffff, 0x8000000000000000, ~U{0}, 0xffffffff, U{1} << 32};
  static const float floats[] = {0.f,     -0.f,         1.f,           -1.f,         0.5f,
                                 1.5f,    2.5f,         -2.5f,         1e-40f,       -1e-45f,
                                 3.4e38f, 2147483648.f, -2147483648.f, 4294967296.f, 65504.f,
                                 65520.f, 6e-8f,        INFINITY,      -INFINITY,    NAN};
  static const double doubles[] = {
      0.,          -0.,   1.,       -1.,       .5,  1.5,   2.5, 1e300, 5e-324, 9223372036854775808.,
      4294967296., 1e-40, INFINITY, -INFINITY, NAN, 65520.};
  const U r = random();
  const bool special = r % 3 == 0;
  const double moderate = std::ldexp(double(int64_t(random()) >> 11), int(r / 3 % 24) - 60);
  switch (c) {
    case 'h':
      return random() & 0xffff;
    case 'H':
      return F(float(moderate)) >> 16;
    case 'd':
      return special ? longs[r / 3 % std::size(longs)] : random() >> (r % 64);
    case 'f':
      return F(special ? floats[r / 3 % std::size(floats)] : float(moderate));
    case 'F':
      return F(special ? doubles[r / 3 % std::size(doubles)] : moderate);
    default:
      return special ? words[r / 3 % std::size(words)] : uint32_t(random()) >> (r % 32);
  }
}

std::string program(const OpcodeCase& c) {
  const std::string types = c.types;
  std::string out =
      ".version 9.0\n.target sm_90a\n.address_size 64\n"
      ".visible .entry t(.param .u64 pd, .param .u64 pa, .param .u64 pb, .param .u64 pc) {\n"
      ".reg .b64 %p, %i; .reg .b32 %t, %n, %k; .reg .pred %q, %x; .reg .b32 %result;\n"
      "mov.u32 %t, %tid.x; mov.u32 %n, %ctaid.x; mov.u32 %k, %ntid.x; mad.lo.s32 %t, %n, %k, %t;\n"
      "setp.gt.u32 %x, %t, 100;\n";
  for (size_t i = 1; i < types.size(); ++i) {
    const char name = char('a' + i - 1);
    out += fmt::format(
        ".reg .{} %{};\nld.param.u64 %p, [p{}]; mul.wide.u32 %i, %t, {}; add.s64 %p, %p, %i;\n"
        "ld.global.{} %{}, [%p];\n",
        reg(types[i]), name, name, bytes_of(types[i]), reg(types[i]), name);
  }
  const bool is_pred = types[0] == 'p';
  out += fmt::format(".reg .{} %d;\n", is_pred ? "pred" : reg(types[0]));
  out += std::string(c.text) + "\n";
  if (is_pred) out += "selp.b32 %result, 1, 0, %d;\n";
  out += fmt::format(
      "ld.param.u64 %p, [pd]; mul.wide.u32 %i, %t, {0}; add.s64 %p, %p, %i; st.global.{1} [%p], "
      "%{2};\nret;\n}}\n",
      is_pred ? 4 : bytes_of(types[0]), is_pred ? "b32" : reg(types[0]), is_pred ? "result" : "d");
  return out;
}

bool agrees(char type, U got, U want, double ulps) {
  if (got == want) return true;
  if (type == 'f') {
    if (std::isnan(f(got)) || std::isnan(f(want))) return std::isnan(f(got)) && std::isnan(f(want));
    if (ulps == 0 || std::isinf(f(want))) return false;
    return std::abs(double(f(got)) - double(f(want))) <=
           ulps * std::max(std::ldexp(std::abs(double(f(want))), -23), 1e-44);
  }
  if (type == 'F') {
    if (std::isnan(D(got)) || std::isnan(D(want))) return std::isnan(D(got)) && std::isnan(D(want));
    return ulps > 0 && std::abs(D(got) - D(want)) <= ulps * std::ldexp(std::abs(D(want)), -52);
  }
  return false;
}

void check_opcode(const OpcodeCase& c) {
  constexpr int kCount = 512;
  const std::string types = c.types, text = program(c);
  auto module = Module::parse(text);
  ASSERT_TRUE(module.has_value()) << c.text << ": " << module.error().text();
  std::mt19937_64 random(42);
  std::vector<U> values[3];
  std::vector<std::byte> memory[4];
  Sim sim;
  std::vector<Bytes8> args;
  for (size_t i = 0; i < 4; ++i) {
    const size_t size = i < types.size() && types[i] != 'p' ? bytes_of(types[i]) : 4;
    memory[i].resize(size * kCount);
    for (int k = 0; i > 0 && k < kCount; ++k) {
      U v = operand(random, i < types.size() ? types[i] : 'w');
      values[i - 1].push_back(v & (size == 8 ? ~U{0} : (U{1} << (8 * size)) - 1));
      std::memcpy(memory[i].data() + size * size_t(k), &v, size);
    }
    args.push_back(sim.output(i == 0 ? "d" : "operand", memory[i]));
  }
  sim.options.threads = 1;
  auto report = sim.launch(*module, "t", 4, 128, args);
  ASSERT_TRUE(report.has_value()) << c.text << ": " << report.error().text();
  ASSERT_EQ(report->status, LaunchStatus::ok) << c.text << ": " << report->reason;
  const size_t size = types[0] == 'p' ? 4 : bytes_of(types[0]);
  for (size_t k = 0; k < kCount; ++k) {
    U got = 0, want = c.host(values[0][k], values[1][k], values[2][k]);
    std::memcpy(&got, memory[0].data() + size * k, size);
    want &= size == 8 ? ~U{0} : (U{1} << (8 * size)) - 1;
    ASSERT_TRUE(agrees(types[0], got, want, c.ulps))
        << c.text
        << fmt::format(" of {:#x} {:#x} {:#x}: {:#x}, expected {:#x}", values[0][k], values[1][k],
                       values[2][k], got, want);
  }
}
void check_all(const std::vector<OpcodeCase>& cases) {
  for (const OpcodeCase& c : cases) check_opcode(c);
}

TEST(Opcodes, IntegerArithmetic) {
  check_all({
      {"add.s32 %d, %a, %b;", "www", [](U a, U b, U) { return a + b; }},
      {"sub.u32 %d, %a, %b;", "www", [](U a, U b, U) { return a - b; }},
      {"add.s64 %d, %a, %b;", "ddd", [](U a, U b, U) { return a + b; }},
      {"add.s16 %d, %a, %b;", "hhh", [](U a, U b, U) { return a + b; }},
      {"add.sat.s32 %d, %a, %b;", "www",
       [](U a, U b, U) {
         return U(std::clamp<int64_t>(int64_t(s(a)) + s(b), INT32_MIN, INT32_MAX));
       }},
      {"mul.lo.s32 %d, %a, %b;", "www", [](U a, U b, U) { return a * b; }},
      {"{.reg.b32 half; .reg.b16 low, high; mov.b32 {low, high}, %a; mov.b32 half, {high, low};\n"
       "add.u32 %d, half, 1;}",
       "ww", [](U a, U, U) { return (a << 16 | (a & 0xffffffff) >> 16) + 1; }},
      {"mul.lo.s16 %d, %a, %b;", "hhh", [](U a, U b, U) { return a * b; }},
      {"mul.hi.s32 %d, %a, %b;", "www",
       [](U a, U b, U) { return U((int64_t(s(a)) * s(b)) >> 32); }},
      {"mul.hi.u32 %d, %a, %b;", "www", [](U a, U b, U) { return (a * b) >> 32; }},
      {"mul.hi.u64 %d, %a, %b;", "ddd",
       [](U a, U b, U) { return U((unsigned __int128)(a)*b >> 64); }},
      {"mul.hi.s64 %d, %a, %b;", "ddd", [](U a, U b, U) { return U((__int128)(S(a))*S(b) >> 64); }},
      {"mul.wide.s32 %d, %a, %b;", "dww", [](U a, U b, U) { return U(int64_t(s(a)) * s(b)); }},
      {"mul.wide.u32 %d, %a, %b;", "dww", [](U a, U b, U) { return a * b; }},
      {"mul.wide.u16 %d, %a, %b;", "whh", [](U a, U b, U) { return a * b; }},
      {"mul.wide.s16 %d, %a, %b;", "whh", [](U a, U b, U) { return U(int16_t(a) * int16_t(b)); }},
      {"mad.lo.s32 %d, %a, %b, %c;", "wwww", [](U a, U b, U c) { return a * b + c; }},
      {"mad.wide.u32 %d, %a, %b, %c;", "dwwd", [](U a, U b, U c) { return a * b + c; }},
      {"mad.hi.u32 %d, %a, %b, %c;", "wwww", [](U a, U b, U c) { return (a * b >> 32) + c; }},
      {"div.s32 %d, %a, %b;", "www",
       [](U a, U b, U) { return s(b) == 0 ? ~U{0} : U(int64_t(s(a)) / s(b)); }},
      {"div.u32 %d, %a, %b;", "www", [](U a, U b, U) { return b == 0 ? ~U{0} : a / b; }},
      {"div.u64 %d, %a, %b;", "ddd", [](U a, U b, U) { return b == 0 ? ~U{0} : a / b; }},
      {"rem.s32 %d, %a, %b;", "www",
       [](U a, U b, U) { return s(b) == 0 ? a : U(int64_t(s(a)) % s(b)); }},
      {"rem.u64 %d, %a, %b;", "ddd", [](U a, U b, U) { return b == 0 ? a : a % b; }},
      {"min.s32 %d, %a, %b;", "www", [](U a, U b, U) { return U(std::min(s(a), s(b))); }},
      {"max.u64 %d, %a, %b;", "ddd", [](U a, U b, U) { return std::max(a, b); }},
      {"min.u16 %d, %a, %b;", "hhh", [](U a, U b, U) { return std::min(a, b); }},
      {"abs.s32 %d, %a;", "ww", [](U a, U, U) { return s(a) < 0 ? 0 - a : a; }},
      {"neg.s64 %d, %a;", "dd", [](U a, U, U) { return 0 - a; }},
      {"sad.u32 %d, %a, %b, %c;", "wwww",
       [](U a, U b, U c) { return c + (a < b ? b - a : a - b); }},
      {"shl.b32 %d, %a, %b;", "www", [](U a, U b, U) { return b > 31 ? 0 : a << b; }},
      {"shl.b64 %d, %a, %b;", "ddw", [](U a, U b, U) { return b > 63 ? 0 : a << b; }},
      {"shr.u32 %d, %a, %b;", "www", [](U a, U b, U) { return b > 31 ? 0 : a >> b; }},
      {"shr.s32 %d, %a, %b;", "www", [](U a, U b, U) { return U(s(a) >> std::min<U>(b, 31)); }},
      {"shr.s64 %d, %a, %b;", "ddw", [](U a, U b, U) { return U(S(a) >> std::min<U>(b, 63)); }},
      {"shr.u16 %d, %a, %b;", "hhw", [](U a, U b, U) { return b > 15 ? 0 : a >> b; }},
      {"and.b32 %d, %a, %b;", "www", [](U a, U b, U) { return a & b; }},
      {"or.b64 %d, %a, %b;", "ddd", [](U a, U b, U) { return a | b; }},
      {"xor.b16 %d, %a, %b;", "hhh", [](U a, U b, U) { return a ^ b; }},
      {"not.b32 %d, %a;", "ww", [](U a, U, U) { return ~a; }},
      {"mul24.lo.u32 %d, %a, %b;", "www",
       [](U a, U b, U) { return (a & 0xffffff) * (b & 0xffffff); }},
  });
}

TEST(Opcodes, BitsAndSelection) {
  check_all({
      {"popc.b32 %d, %a;", "ww", [](U a, U, U) { return U(std::popcount(a)); }},
      {"popc.b64 %d, %a;", "wd", [](U a, U, U) { return U(std::popcount(a)); }},
      {"clz.b32 %d, %a;", "ww", [](U a, U, U) { return U(std::countl_zero(uint32_t(a))); }},
      {"clz.b64 %d, %a;", "wd", [](U a, U, U) { return U(std::countl_zero(a)); }},
      {"brev.b32 %d, %a;", "ww",
       [](U a, U, U) {
         U r = 0;
         for (int i = 0; i < 32; ++i) r |= (a >> i & 1) << (31 - i);
         return r;
       }},
      {"bfind.u32 %d, %a;", "ww",
       [](U a, U, U) { return a == 0 ? ~U{0} : U(31 - std::countl_zero(uint32_t(a))); }},
      {"bfind.shiftamt.s32 %d, %a;", "ww",
       [](U a, U, U) {
         uint32_t x = s(a) < 0 ? ~uint32_t(a) : uint32_t(a);
         return x == 0 ? ~U{0} : U(std::countl_zero(x));
       }},
      {"bfe.u32 %d, %a, 5, 9;", "ww", [](U a, U, U) { return a >> 5 & 0x1ff; }},
      {"bfe.s32 %d, %a, 5, 9;", "ww", [](U a, U, U) { return U(s(a << 18) >> 23); }},
      {"bfe.u64 %d, %a, 40, 60;", "dd", [](U a, U, U) { return a >> 40; }},
      {"bfi.b32 %d, %a, %b, 8, 12;", "www",
       [](U a, U b, U) { return (b & ~U{0xfff00}) | (a & 0xfff) << 8; }},
      {"bfi.b64 %d, %a, %b, 32, 32;", "ddd",
       [](U a, U b, U) { return (b & 0xffffffff) | a << 32; }},
      {"prmt.b32 %d, %a, %b, 0x7531;", "www",
       [](U a, U b, U) {
         U v = b << 32 | a;
         return (v >> 8 & 255) | (v >> 24 & 255) << 8 | (v >> 40 & 255) << 16 | (v >> 56) << 24;
       }},
      {"prmt.b32 %d, %a, %b, 0x8888;", "www",
       [](U a, U, U) { return a & 0x80 ? 0xffffffffu : 0u; }},
      {"shf.l.wrap.b32 %d, %a, %b, %c;", "wwww",
       [](U a, U b, U c) { return (b << 32 | a) << (c & 31) >> 32; }},
      {"shf.r.clamp.b32 %d, %a, %b, %c;", "wwww",
       [](U a, U b, U c) { return (b << 32 | a) >> std::min<U>(c, 32); }},
      {"lop3.b32 %d, %a, %b, %c, 0x96;", "wwww", [](U a, U b, U c) { return a ^ b ^ c; }},
      {"lop3.b32 %d, %a, %b, %c, 0xca;", "wwww", [](U a, U b, U c) { return (a & b) | (~a & c); }},
      {"dp4a.s32.s32 %d, %a, %b, %c;", "wwww",
       [](U a, U b, U c) {
         for (int i = 0; i < 32; i += 8) c += U(int8_t(a >> i) * int8_t(b >> i));
         return c;
       }},
      {"setp.lt.u32 %x, %a, %b; selp.b32 %d, %a, %b, %x;", "www",
       [](U a, U b, U) { return std::min(a, b); }},
      {"setp.lt.u32 %x, %a, %b; mov.b32 %d, %a; @!%x mov.b32 %d, %b;", "www",
       [](U a, U b, U) { return std::min(a, b); }},
      {"mov.b64 %d, {%a, %b};", "dww", [](U a, U b, U) { return b << 32 | a; }},
      {"{ .reg .b32 lo, hi; mov.b64 {lo, hi}, %a; sub.s32 %d, hi, lo; }", "wd",
       [](U a, U, U) { return (a >> 32) - a; }},
      {"{ .reg .b16 lo; mov.b32 {_, lo}, %a; mov.b32 %d, {lo, lo}; }", "ww",
       [](U a, U, U) { return a >> 16 | (a >> 16) << 16; }},
      {"{ .reg .b32 t; add.cc.u32 t, %a, %b; addc.u32 %d, %c, 0; }", "wwww",
       [](U a, U b, U c) { return c + ((a + b) >> 32); }},
      {"{ .reg .b32 t; sub.cc.u32 t, %a, %b; subc.u32 %d, %c, 0; }", "wwww",
       [](U a, U b, U c) { return c - (a < b); }},
      {"{ .reg .b32 t; mad.lo.cc.u32 t, %a, %b, %c; madc.hi.u32 %d, %a, %b, 0; }", "wwww",
       [](U a, U b, U c) { return (a * b + c) >> 32; }},
  });
}

TEST(Opcodes, Comparisons) {
  check_all({
      {"setp.lt.s32 %d, %a, %b;", "pww", [](U a, U b, U) { return U(s(a) < s(b)); }},
      {"setp.hi.u32 %d, %a, %b;", "pww", [](U a, U b, U) { return U(a > b); }},
      {"setp.ne.b64 %d, %a, %b;", "pdd", [](U a, U b, U) { return U(a != b); }},
      {"setp.ge.s16 %d, %a, %b;", "phh", [](U a, U b, U) { return U(int16_t(a) >= int16_t(b)); }},
      {"setp.eq.f32 %d, %a, %b;", "pff", [](U a, U b, U) { return U(f(a) == f(b)); }},
      {"setp.ne.f32 %d, %a, %b;", "pff", [](U a, U b, U) { return U(f(a) < f(b) || f(a) > f(b)); }},
      {"setp.neu.f32 %d, %a, %b;", "pff", [](U a, U b, U) { return U(f(a) != f(b)); }},
      {"setp.ltu.f32 %d, %a, %b;", "pff", [](U a, U b, U) { return U(!(f(a) >= f(b))); }},
      {"setp.num.f32 %d, %a, %b;", "pff",
       [](U a, U b, U) { return U(!std::isunordered(f(a), f(b))); }},
      {"setp.gt.ftz.f32 %d, %a, %b;", "pff",
       [](U a, U b, U) {
         auto z = [](float x) { return std::fpclassify(x) == FP_SUBNORMAL ? 0.f : x; };
         return U(z(f(a)) > z(f(b)));
       }},
      {"setp.geu.f64 %d, %a, %b;", "pFF", [](U a, U b, U) { return U(!(D(a) < D(b))); }},
      {"setp.lt.f16 %d, %a, %b;", "pHH",
       [](U a, U b, U) { return U(half_value(uint16_t(a)) < half_value(uint16_t(b))); }},
      {"setp.eq.s32 %x, %c, 0; setp.lt.and.s32 %d, %a, %b, !%x;", "pwww",
       [](U a, U b, U c) { return U(s(a) < s(b) && s(c) != 0); }},
      {"setp.eq.s32 %x, %c, 0; setp.lt.or.s32 %d|%x, %a, %b, %x;", "pwww",
       [](U a, U b, U c) { return U(s(a) < s(b) || s(c) == 0); }},
      {"setp.lt.s32 %x|%d, %a, %b;", "pww", [](U a, U b, U) { return U(s(a) >= s(b)); }},
      {"set.lt.u32.f32 %d, %a, %b;", "wff",
       [](U a, U b, U) { return f(a) < f(b) ? 0xffffffffu : 0u; }},
      {"testp.finite.f32 %d, %a;", "pf", [](U a, U, U) { return U(std::isfinite(f(a))); }},
      {"testp.subnormal.f32 %d, %a;", "pf",
       [](U a, U, U) { return U(std::fpclassify(f(a)) == FP_SUBNORMAL); }},
      {"setp.eq.s32 %x, %a, 0; not.pred %d, %x;", "pw", [](U a, U, U) { return U(s(a) != 0); }},
      {"setp.eq.s32 %x, %a, 0; setp.lt.s32 %q, %b, 0; xor.pred %d, %x, %q;", "pww",
       [](U a, U b, U) { return U((s(a) == 0) != (s(b) < 0)); }},
  });
}

float min_of(float a, float b) {
  if (a != a) return b;
  return b != b ? a : a == b ? (std::signbit(a) ? a : b) : std::min(a, b);
}
// x + rest, rounded towards zero; rest: the rounding error of x.
float toward_zero(__float128 x, __float128 rest = 0) {
  float r = float(x);
  if (std::isinf(r)) return std::copysign(std::numeric_limits<float>::max(), r);
  const bool above = r > x || (r == x && rest < 0), below = r < x || (r == x && rest > 0);
  return (r > 0 && above) || (r < 0 && below) ? std::nextafter(r, 0.f) : r;
}
bool tame(float x) {
  return std::isfinite(x);
}

TEST(Opcodes, Float32) {
  auto flush = [](float x) {
    return std::fpclassify(x) == FP_SUBNORMAL ? std::copysign(0.f, x) : x;
  };
  check_all({
      {"add.f32 %d, %a, %b;", "fff", [](U a, U b, U) { return F(f(a) + f(b)); }},
      {"add.rn.f32 %d, %a, %b;", "fff", [](U a, U b, U) { return F(f(a) + f(b)); }},
      {"sub.f32 %d, %a, %b;", "fff", [](U a, U b, U) { return F(f(a) - f(b)); }},
      {"mul.f32 %d, %a, %b;", "fff", [](U a, U b, U) { return F(f(a) * f(b)); }},
      {"mul.ftz.f32 %d, %a, %b;", "fff",
       [=](U a, U b, U) { return F(flush(flush(f(a)) * flush(f(b)))); }},
      {"add.sat.f32 %d, %a, %b;", "fff",
       [](U a, U b, U) {
         float r = f(a) + f(b);
         return F(r > 0 ? std::min(r, 1.f) : 0.f);
       }},
      {"add.rz.f32 %d, %a, %b;", "fff",
       [](U a, U b, U) {
         if (!tame(f(a)) || !tame(f(b)) || f(a) + f(b) == 0) return F(f(a) + f(b));
         const __float128 x = f(a), y = f(b), sum = x + y, t = sum - x;
         return F(toward_zero(sum, (x - (sum - t)) + (y - t)));
       }},
      {"mul.rz.f32 %d, %a, %b;", "fff",
       [](U a, U b, U) {
         if (!tame(f(a)) || !tame(f(b)) || f(a) * double(f(b)) == 0) return F(f(a) * f(b));
         return F(toward_zero(__float128(f(a)) * f(b)));
       }},
      // The assembler merges a product that has one use and no rounding mode.
      {".reg .f32 %m; mul.f32 %m, %a, %b; add.f32 %d, %c, %m;", "ffff",
       [](U a, U b, U c) { return F(std::fma(f(a), f(b), f(c))); }},
      {".reg .f32 %m; mul.f32 %m, %a, %b; sub.f32 %d, %m, %c;", "ffff",
       [](U a, U b, U c) { return F(std::fma(f(a), f(b), -f(c))); }},
      {".reg .f32 %m; mul.f32 %m, %a, %b; sub.f32 %d, %c, %m;", "ffff",
       [](U a, U b, U c) { return F(std::fma(-f(a), f(b), f(c))); }},
      {".reg .f64 %m; mul.f64 %m, %a, %b; sub.f64 %d, %m, %c;", "FFFF",
       [](U a, U b, U c) { return F(std::fma(D(a), D(b), -D(c))); }},
      {".reg .f32 %m; mul.rn.f32 %m, %a, %b; sub.f32 %d, %m, %c;", "ffff",
       [](U a, U b, U c) { return F(f(a) * f(b) - f(c)); }},
      {".reg .f32 %m; mul.f32 %m, %a, %b; sub.rn.f32 %d, %m, %c;", "ffff",
       [](U a, U b, U c) { return F(f(a) * f(b) - f(c)); }},
      {".reg .f32 %m, %s; mul.f32 %m, %a, %b; sub.f32 %s, %m, %c; add.f32 %d, %s, %m;", "ffff",
       [](U a, U b, U c) { return F(f(a) * f(b) - f(c) + f(a) * f(b)); }},
      {".reg .f32 %m; mul.f32 %m, %a, %b; mov.f32 %a, %c; sub.f32 %d, %m, %a;", "ffff",
       [](U a, U b, U c) { return F(f(a) * f(b) - f(c)); }},
      {".reg .f32 %m; mul.f32 %m, %a, %b; bra next; next: sub.f32 %d, %m, %c;", "ffff",
       [](U a, U b, U c) { return F(f(a) * f(b) - f(c)); }},
      {"fma.rn.f32 %d, %a, %b, %c;", "ffff",
       [](U a, U b, U c) { return F(std::fma(f(a), f(b), f(c))); }},
      {"fma.rn.ftz.f32 %d, %a, %b, %c;", "ffff",
       [=](U a, U b, U c) { return F(flush(std::fma(flush(f(a)), flush(f(b)), flush(f(c))))); }},
      {"div.rn.f32 %d, %a, %b;", "fff", [](U a, U b, U) { return F(f(a) / f(b)); }},
      {"div.full.f32 %d, %a, %b;", "fff", [](U a, U b, U) { return F(f(a) / f(b)); }, 2},
      {"rcp.rn.f32 %d, %a;", "ff", [](U a, U, U) { return F(1 / f(a)); }},
      {"sqrt.rn.f32 %d, %a;", "ff", [](U a, U, U) { return F(std::sqrt(f(a))); }},
      {"rsqrt.approx.f32 %d, %a;", "ff",
       [](U a, U, U) { return F(float(1 / std::sqrt(double(f(a))))); }, 2},
      {"ex2.approx.f32 %d, %a;", "ff", [](U a, U, U) { return F(float(std::exp2(double(f(a))))); },
       2},
      {"ex2.approx.ftz.f32 %d, %a;", "ff",
       [=](U a, U, U) { return F(flush(float(std::exp2(double(flush(f(a))))))); }, 2},
      {"lg2.approx.f32 %d, %a;", "ff", [](U a, U, U) { return F(float(std::log2(double(f(a))))); },
       2},
      {"sin.approx.f32 %d, %a;", "ff",
       [](U a, U, U) { return F(float(std::sin(2 * M_PI * double(f(a) * 0.15915494f)))); }, 2},
      {"cos.approx.f32 %d, %a;", "ff",
       [](U a, U, U) { return F(float(std::cos(2 * M_PI * double(f(a) * 0.15915494f)))); }, 2},
      {"tanh.approx.f32 %d, %a;", "ff",
       [](U a, U, U) {  // 11 bits, but subnormals as they are, as on a GPU
         const U bits = F(float(std::tanh(double(f(a)))));
         if (std::fabs(f(a)) < 0x1p-126f) return a;
         return std::isnan(f(a)) ? bits : (bits + 0x1000) & ~U{0x1fff};
       }},
      {"min.f32 %d, %a, %b;", "fff", [](U a, U b, U) { return F(min_of(f(a), f(b))); }},
      {"max.f32 %d, %a, %b;", "fff", [](U a, U b, U) { return F(-min_of(-f(a), -f(b))); }},
      {"max.NaN.f32 %d, %a, %b;", "fff",
       [](U a, U b, U) {
         return std::isunordered(f(a), f(b)) ? U{0x7fffffff} : F(-min_of(-f(a), -f(b)));
       }},
      {"neg.f32 %d, %a;", "ff", [](U a, U, U) { return a ^ 0x80000000u; }},
      {"abs.f32 %d, %a;", "ff", [](U a, U, U) { return a & 0x7fffffffu; }},
      {"copysign.f32 %d, %a, %b;", "fff",
       [](U a, U b, U) { return (a & 0x80000000u) | (b & 0x7fffffffu); }},
      {"add.f32 %d, %a, 0f3F800000;", "ff", [](U a, U, U) { return F(f(a) + 1.f); }},
  });
}

TEST(Opcodes, Float64) {
  check_all({
      {"add.f64 %d, %a, %b;", "FFF", [](U a, U b, U) { return F(D(a) + D(b)); }},
      {"mul.rn.f64 %d, %a, %b;", "FFF", [](U a, U b, U) { return F(D(a) * D(b)); }},
      {"fma.rn.f64 %d, %a, %b, %c;", "FFFF",
       [](U a, U b, U c) { return F(std::fma(D(a), D(b), D(c))); }},
      {"div.rn.f64 %d, %a, %b;", "FFF", [](U a, U b, U) { return F(D(a) / D(b)); }},
      {"sqrt.rn.f64 %d, %a;", "FF", [](U a, U, U) { return F(std::sqrt(D(a))); }},
      {"rcp.rn.f64 %d, %a;", "FF", [](U a, U, U) { return F(1 / D(a)); }},
      {"rcp.approx.ftz.f64 %d, %a;", "FF",
       [](U a, U, U) {  // on the upper half, with 20 bits
         auto upper = [](double x) {
           x = D(F(x) & 0xffffffff00000000u);
           return std::fpclassify(x) == FP_SUBNORMAL ? std::copysign(0., x) : x;
         };
         return F(upper(1 / upper(D(a))));
       }},
      {"neg.f64 %d, %a;", "FF", [](U a, U, U) { return F(-D(a)); }},
      {"add.f64 %d, %a, 0d3FF0000000000000;", "FF", [](U a, U, U) { return F(D(a) + 1); }},
      {"setp.lt.f64 %x, %a, %b; selp.f64 %d, %a, %b, %x;", "FFF",
       [](U a, U b, U) { return D(a) < D(b) ? a : b; }},
  });
}

template <class T>
U clamped(double x) {
  if (std::isnan(x)) return sizeof(T) == 8 ? U{1} << 63 : 0;
  if (x <= double(std::numeric_limits<T>::min())) return U(std::numeric_limits<T>::min());
  if (x >= double(std::numeric_limits<T>::max())) return U(std::numeric_limits<T>::max());
  return U(T(x));
}
uint16_t nearest_bfloat(float x) {
  if (std::isnan(x)) return 0x7fff;
  const uint32_t u = std::bit_cast<uint32_t>(x), down = u >> 16;
  if (std::isinf(x)) return uint16_t(down);
  const double low = std::abs(double(bfloat_value(uint16_t(down)))), mid = std::abs(double(x));
  const double high = (down & 0x7fff) == 0x7f7f
                          ? std::ldexp(1, 128)
                          : std::abs(double(bfloat_value(uint16_t(down + 1))));
  const bool up = mid - low > high - mid || (mid - low == high - mid && (down & 1));
  return uint16_t(down + up);
}
uint16_t nearest_half(double x) {
  return std::isnan(x) ? 0x7fff : std::bit_cast<uint16_t>(_Float16(x));
}

TEST(Opcodes, Conversions) {
  check_all({
      {"cvt.s64.s32 %d, %a;", "dw", [](U a, U, U) { return U(int64_t(s(a))); }},
      {"cvt.u32.u64 %d, %a;", "wd", [](U a, U, U) { return a; }},
      {"cvt.s32.s8 %d, %a;", "wh", [](U a, U, U) { return U(int8_t(a)); }},
      {"cvt.s8.s32 %d, %a;", "ww", [](U a, U, U) { return U(int8_t(a)); }},
      {"cvt.u16.u32 %d, %a;", "hw", [](U a, U, U) { return a; }},
      {"cvt.sat.u8.s32 %d, %a;", "ww", [](U a, U, U) { return U(std::clamp(s(a), 0, 255)); }},
      {"cvt.sat.s16.u32 %d, %a;", "hw", [](U a, U, U) { return std::min<U>(a, 32767); }},
      {"cvt.rn.f32.s32 %d, %a;", "fw", [](U a, U, U) { return F(float(s(a))); }},
      {"cvt.rn.f32.u64 %d, %a;", "fd", [](U a, U, U) { return F(float(a)); }},
      {"cvt.rz.f32.u32 %d, %a;", "fw",
       [](U a, U, U) { return F(toward_zero(__float128(uint32_t(a)))); }},
      {"cvt.rn.f64.s64 %d, %a;", "Fd", [](U a, U, U) { return F(double(S(a))); }},
      {"cvt.rzi.s32.f32 %d, %a;", "wf",
       [](U a, U, U) { return clamped<int32_t>(std::trunc(double(f(a)))); }},
      {"cvt.rni.s32.f32 %d, %a;", "wf",
       [](U a, U, U) { return clamped<int32_t>(std::nearbyint(double(f(a)))); }},
      {"cvt.rpi.u32.f32 %d, %a;", "wf",
       [](U a, U, U) { return clamped<uint32_t>(std::ceil(double(f(a)))); }},
      {"cvt.rmi.s64.f32 %d, %a;", "df",
       [](U a, U, U) { return clamped<int64_t>(std::floor(double(f(a)))); }},
      {"cvt.rzi.u64.f64 %d, %a;", "dF",
       [](U a, U, U) { return clamped<uint64_t>(std::trunc(D(a))); }},
      {"cvt.rzi.s16.f32 %d, %a;", "hf",
       [](U a, U, U) { return clamped<int16_t>(std::trunc(double(f(a)))); }},
      {"cvt.rn.f32.f64 %d, %a;", "fF", [](U a, U, U) { return F(float(D(a))); }},
      {"cvt.f64.f32 %d, %a;", "Ff", [](U a, U, U) { return F(double(f(a))); }},
      {"cvt.rmi.f32.f32 %d, %a;", "ff", [](U a, U, U) { return F(std::floor(f(a))); }},
      {"cvt.rni.f32.f32 %d, %a;", "ff", [](U a, U, U) { return F(std::nearbyint(f(a))); }},
      {"cvt.sat.f32.f32 %d, %a;", "ff",
       [](U a, U, U) { return F(f(a) > 0 ? std::min(f(a), 1.f) : 0.f); }},
      {"cvt.rn.f16.f32 %d, %a;", "Hf", [](U a, U, U) { return U(nearest_half(f(a))); }},
      {"cvt.rn.f16.f64 %d, %a;", "HF", [](U a, U, U) { return U(nearest_half(D(a))); }},
      {"cvt.rn.bf16.f32 %d, %a;", "Hf", [](U a, U, U) { return U(nearest_bfloat(f(a))); }},
      {"cvt.f32.f16 %d, %a;", "fH",
       [](U a, U, U) { return F(float(std::bit_cast<_Float16>(uint16_t(a)))); }},
      {"cvt.f32.bf16 %d, %a;", "fH", [](U a, U, U) { return a << 16; }},
      {"cvt.rz.bf16.f32 %d, %a;", "Hf",
       [](U a, U, U) { return std::isnan(f(a)) ? 0x7fff : a >> 16; }},
      {"cvt.rn.f16x2.f32 %d, %a, %b;", "wff",
       [](U a, U b, U) { return U(nearest_half(f(a))) << 16 | nearest_half(f(b)); }},
      {"cvt.rn.relu.bf16x2.f32 %d, %a, %b;", "wff",
       [](U a, U b, U) {
         auto relu = [](float x) {
           return U(x < 0 || (x == 0 && std::signbit(x)) ? 0 : nearest_bfloat(x));
         };
         return relu(f(a)) << 16 | relu(f(b));
       }},
      {"cvt.rna.tf32.f32 %d, %a;", "ww",
       [](U a, U, U) {
         if (std::isnan(f(a))) return (a & ~U{0x1fff}) | 0x400000;
         return (a & 0x7f800000) == 0x7f800000 ? a : (a + 0x1000) & ~U{0x1fff};
       }},
      {"cvt.rn.f16.s32 %d, %a;", "Hw", [](U a, U, U) { return U(nearest_half(double(s(a)))); }},
  });
}

TEST(Opcodes, Halves) {
  auto h = [](U x) { return double(half_value(uint16_t(x))); };
  auto b = [](U x) { return double(bfloat_value(uint16_t(x))); };
  // bf16 products and sums are exact in 113 bits. They become double by round-to-odd.
  auto bf_fma = [b](U x, U y, U z) {
    const __float128 exact = __float128(b(x)) * b(y) + b(z);
    const double near = double(exact);
    if (!std::isfinite(near)) return U(nearest_bfloat(float(near)));
    U bits = F(near);
    if (__float128(near) != exact && !(bits & 1))
      bits += (__float128(near) < exact) == (near > 0) ? 1 : -1;
    return U(to_bfloat(D(bits)));
  };
  check_all({
      {"add.f16 %d, %a, %b;", "HHH", [=](U x, U y, U) { return U(nearest_half(h(x) + h(y))); }},
      {"mul.f16 %d, %a, %b;", "HHH", [=](U x, U y, U) { return U(nearest_half(h(x) * h(y))); }},
      {"fma.rn.f16 %d, %a, %b, %c;", "HHHH",
       [=](U x, U y, U z) { return U(nearest_half(h(x) * h(y) + h(z))); }},
      {"sub.bf16 %d, %a, %b;", "HHH",
       [=](U x, U y, U) { return U(nearest_bfloat(float(b(x) - b(y)))); }},
      {"fma.rn.bf16 %d, %a, %b, %c;", "HHHH", bf_fma},
      {"neg.f16 %d, %a;", "HH", [](U x, U, U) { return x ^ 0x8000; }},
      {"mul.f16x2 %d, %a, %b;", "www",
       [=](U x, U y, U) {
         return U(nearest_half(h(x >> 16) * h(y >> 16))) << 16 | nearest_half(h(x) * h(y));
       }},
      {"max.bf16x2 %d, %a, %b;", "www",
       [=](U x, U y, U) {
         auto one = [&](U p, U q) {
           float r = -min_of(-float(b(p)), -float(b(q)));
           return U(nearest_bfloat(r));
         };
         return one(x >> 16, y >> 16) << 16 | one(x & 0xffff, y & 0xffff);
       }},
  });
}

}  // namespace
}  // namespace cutegen::ptx
