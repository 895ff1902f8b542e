// SPDX-License-Identifier: Apache-2.0
// Every form gives the same bits on every instruction set, with full and with partial masks.
#include <gtest/gtest.h>

#include <cstring>
#include <random>

#include "ptx/decode/forms.h"

namespace cutegen::ptx {
namespace {

constexpr int kSlot = 256;

uint64_t interesting(std::mt19937_64& random, char letter) {
  static const uint32_t f32[] = {0,          0x80000000, 0x3f800000, 0xbf800000, 0x7f800000,
                                 0xff800000, 0x7fc00000, 1,          0x807fffff, 0x7f7fffff,
                                 0x00800000, 0x3f000000, 0x4b000000};
  static const uint64_t f64[] = {
      0, 0x8000000000000000, 0x3ff0000000000000, 0x7ff0000000000000, 0x7ff8000000000000,
      1, 0x7fefffffffffffff, 0x41e0000000000000};
  static const uint16_t f16[] = {0, 0x8000, 0x3c00, 0x7c00, 0xfc00, 0x7fff,
                                 1, 0x3ff,  0x7bff, 0x7f80, 0x3f80};
  const uint64_t r = random();
  switch (letter) {
    case 'f':
      return r % 3 == 0   ? f32[r / 3 % std::size(f32)]
             : r % 3 == 1 ? (r >> 8 & 0x81ffffff) | 0x3e000000
                          : r >> 32;
    case 'F':
      return r % 3 == 0   ? f64[r / 3 % std::size(f64)]
             : r % 3 == 1 ? (r & 0x803fffffffffffff) | 0x3fc0000000000000
                          : r;
    case 'H':
      return r % 3 == 0 ? f16[r / 3 % std::size(f16)] : r >> 40;
    default:
      return r % 4 == 0 ? r >> 60 : r % 4 == 1 ? ~(r >> 58) : r >> 3;
  }
}

struct Registers {
  alignas(64) std::byte bytes[8 * kSlot];
};

void randomize(Registers& r, const Form& f, std::mt19937_64& random) {
  for (size_t i = 0; i < std::size(r.bytes); ++i) r.bytes[i] = std::byte(random());
  for (size_t k = 1; k < f.signature.size(); ++k) {
    const char c = f.signature[k];
    const size_t size = c == 'b' ? 1 : c == 'h' || c == 'H' ? 2 : c == 'd' || c == 'F' ? 8 : 4;
    for (int lane = 0; lane < (c == 'p' ? 1 : 32); ++lane) {
      const uint64_t v = c == 'p' ? random() : interesting(random, c);
      std::memcpy(r.bytes + k * kSlot + size_t(lane) * size, &v, size);
    }
  }
}

bool equal(const Registers& a, const Registers& b, char letter) {
  auto value = [&](const Registers& r, int lane) {
    uint64_t v = 0;
    const size_t size = letter == 'f' ? 4 : 8;
    std::memcpy(&v, r.bytes + size_t(lane) * size, size);
    return v;
  };
  if (letter != 'f' && letter != 'F') return std::memcmp(&a, &b, sizeof a) == 0;
  for (int lane = 0; lane < 32; ++lane) {
    const uint64_t x = value(a, lane), y = value(b, lane),
                   sign = letter == 'f' ? 0x80000000u : uint64_t{1} << 63;
    const uint64_t inf = letter == 'f' ? 0x7f800000u : 0x7ffull << 52;
    if (x != y && !((x & ~sign) > inf && (y & ~sign) > inf)) return false;  // NaNs are equal
  }
  return true;
}

Inst instruction(const Form& f, uint8_t sub) {
  Inst in;
  in.full = f.full, in.masked = f.masked, in.sub = sub, in.imm = 0;
  int32_t* fields[] = {&in.d, &in.a, &in.b, &in.c, &in.e};
  for (size_t k = 0; k < f.signature.size(); ++k) *fields[k] = int32_t(k) * kSlot;
  if (f.signature.size() < 5) in.e = 7 * kSlot;  // a carry, or the second predicate
  return in;
}

TEST(Handlers, InstructionSetsAgree) {
  const Forms base = make_forms("base");
  ASSERT_GT(base.all().size(), 500u);
  const std::string_view best = best_instruction_set();
  if (best == "base") GTEST_SKIP() << "the baseline only";
  for (std::string_view isa : {"v3", "v4"}) {
    if (isa > best) continue;
    const Forms other = make_forms(isa);
    ASSERT_EQ(other.all().size(), base.all().size());
    std::mt19937_64 random(7);
    for (const auto& [name, f] : base.all()) {
      const Form* g = other.find(name);
      ASSERT_NE(g, nullptr) << name;
      const bool flagged = name.ends_with("+") || name.starts_with("cvt");
      const std::string base = name.substr(0, name.find('.'));
      const bool rounds = base == "cvt" || base == "add" || base == "sub" || base == "mul" ||
                          base == "fma" || base == "div" || base == "rcp" || base == "sqrt";
      for (int round = 0; round < 6; ++round) {
        Registers x, y;
        randomize(x, f, random);
        const uint8_t sub = flagged ? uint8_t((rounds ? round % 4 : 0) | (round == 4   ? kFtz
                                                                          : round == 5 ? kSaturate
                                                                                       : 0))
                                    : 0;
        const uint32_t mask = round % 2 ? ~0u : uint32_t(random());
        y = x;
        Inst a = instruction(f, sub), b = instruction(*g, sub);
        if (name.starts_with("cvt.f32.f32") || name.starts_with("cvt.f64.f64"))
          a.imm = b.imm = round & 1;
        (mask == ~0u && a.full ? a.full : a.masked)(x.bytes, a, mask);
        (mask == ~0u && b.full ? b.full : b.masked)(y.bytes, b, mask);
        ASSERT_TRUE(equal(x, y, f.signature[0])) << name << " on " << isa << ", round " << round;
      }
    }
  }
}

// Bit patterns without large exponents in any format, so that no sum overflows.
uint32_t small_pattern(std::mt19937_64& random, const std::string& name) {
  const uint32_t r = uint32_t(random());
  if (name.find("b1") != std::string::npos || name.find("s32.") != std::string::npos) return r;
  if (name.find("bf16") != std::string::npos) return (r & 0x807f807f) | 0x3f003f00;
  if (name.find("e4m3") != std::string::npos) return (r & 0x87878787) | 0x38383838;
  if (name.find("e5m2") != std::string::npos) return (r & 0x83838383) | 0x3c3c3c3c;
  if (name.find("tf32") != std::string::npos) return (r & 0x807fffff) | 0x3f000000;
  return (r & 0x83ff83ff) | 0x38003800;
}

TEST(Handlers, MatrixProductsAgree) {
  const Forms base = make_forms("base");
  ASSERT_GT(base.matrices().size(), 60u);
  const std::string_view best = best_instruction_set();
  if (best == "base") GTEST_SKIP() << "the baseline only";
  for (std::string_view isa : {"v3", "v4"}) {
    if (isa > best) continue;
    const Forms other = make_forms(isa);
    ASSERT_EQ(other.matrices().size(), base.matrices().size());
    std::mt19937_64 random(9);
    for (const auto& [name, f] : base.matrices()) {
      if (f.d == 0) continue;  // a move, not a product
      const bool is_double = name.find("f64") != std::string::npos;
      std::vector<int32_t> list;
      for (int i = 0; i < f.d + f.a + f.b + f.c; ++i) list.push_back(i * 256);
      alignas(64) std::byte x[32 * 256], y[32 * 256];
      for (size_t i = 0; i < sizeof x; i += 4) {
        const uint32_t v = is_double && i % 8 ? (uint32_t(random()) & 0x800fffff) | 0x3fe00000
                                              : small_pattern(random, name);
        std::memcpy(x + i, &v, 4);
      }
      std::memcpy(y, x, sizeof x);
      Inst in;
      in.list = list.data();
      f.run(x, in, ~0u);
      other.find_matrix(name)->run(y, in, ~0u);
      EXPECT_EQ(std::memcmp(x, y, sizeof x), 0) << name << " on " << isa;
    }
  }
}

TEST(Handlers, MaskedLanesKeepTheirValues) {
  const Forms& all = forms();
  std::mt19937_64 random(8);
  for (const auto& [name, f] : all.all()) {
    Registers before, after;
    randomize(before, f, random);
    after = before;
    const uint32_t mask = uint32_t(random());
    const Inst in = instruction(f, 0);
    in.masked(after.bytes, in, mask);
    const char c = f.signature[0];
    if (c == 'p') {
      uint32_t x, y;
      std::memcpy(&x, before.bytes, 4), std::memcpy(&y, after.bytes, 4);
      EXPECT_EQ(x & ~mask, y & ~mask) << name;
      continue;
    }
    const size_t size = c == 'b' ? 1 : c == 'h' || c == 'H' ? 2 : c == 'd' || c == 'F' ? 8 : 4;
    for (size_t lane = 0; lane < 32; ++lane) {
      if (mask >> lane & 1) continue;
      ASSERT_EQ(std::memcmp(before.bytes + lane * size, after.bytes + lane * size, size), 0)
          << name;
    }
  }
}

TEST(Handlers, AddressesAreSummarized) {
  alignas(64) uint64_t in[32], out[32];
  for (uint64_t i = 0; i < 32; ++i) in[i] = 1000 + 16 * i;
  auto s = forms().addresses(reinterpret_cast<std::byte*>(in), true, 24, 16, ~0u, out);
  EXPECT_TRUE(s.contiguous);
  EXPECT_EQ(s.low, 1024u);
  EXPECT_EQ(s.high, 1024u + 31 * 16);
  in[5] = 7;
  s = forms().addresses(reinterpret_cast<std::byte*>(in), true, 24, 16, ~0u, out);
  EXPECT_FALSE(s.contiguous);
  EXPECT_EQ(s.low, 31u);
  EXPECT_EQ(s.bits & 15, 15u);
  s = forms().addresses(reinterpret_cast<std::byte*>(in), true, 24, 16, ~32u, out);
  EXPECT_EQ(s.low, 1024u);  // lane 5 is off
  for (auto& a : in) a = 4096;
  EXPECT_TRUE(forms().addresses(reinterpret_cast<std::byte*>(in), true, 0, 4, ~0u, out).uniform);
}

}  // namespace
}  // namespace cutegen::ptx
