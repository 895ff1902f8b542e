// SPDX-License-Identifier: Apache-2.0
// wgmma.mma_async: layouts, types and sums, compared with an independent reference.
#include <map>
#include <random>

#include "ptx/decode/forms.h"
#include "ptx/testing/wgmma_kernel.h"
#include "ptx/testing/wgmma_reference.h"

namespace cutegen::ptx {
namespace {

struct Type {
  const char* name;
  FloatFormat format;
  int k;
};
const Type kF16{"f16", kF16Format, 16}, kBf16{"bf16", kBf16Format, 16},
    kTf32{"tf32", kTf32Format, 8}, kE4m3{"e4m3", kE4m3Format, 32}, kE5m2{"e5m2", kE5m2Format, 32},
    kS8{"s8", {7, 0, 1}, 32}, kU8{"u8", {8, 0, 1}, 32};

// The layout in shared memory of a matrix with `rows` rows and 32 bytes along k.
struct Layout {
  int swizzle = 0;  // bytes; 0: none
  bool mn_major = false;
};

uint64_t encoded(uint64_t bytes) {
  return bytes >> 4 & 0x3fff;
}
uint64_t descriptor(uint64_t start, uint64_t leading, uint64_t stride, int swizzle) {
  const uint64_t mode = swizzle == 128 ? 1 : swizzle == 64 ? 2 : swizzle == 32 ? 3 : 0;
  return encoded(start) | encoded(leading) << 16 | encoded(stride) << 32 | mode << 62;
}

// Writes a matrix as its layout is defined: tiles of eight lines, in which the number of the
// 128-byte line permutes the 16-byte columns.
class Placed {
 public:
  Placed(const Layout& layout, int rows, const Type& type, uint32_t start)
      : layout_(layout), rows_(rows), type_(type), start_(start) {}
  uint64_t bits() const {
    const int row = layout_.swizzle;
    if (!layout_.mn_major) {
      if (row) return descriptor(start_, 16, uint64_t(8 * row), row);
      return descriptor(start_, 128, 256, 0);  // the halves of k are side by side
    }
    if (!row) return descriptor(start_, 128, 256, 0);
    // groups of eight k follow one another, then come the next `row` bytes of rows
    return descriptor(start_, uint64_t(16 * row), uint64_t(8 * row), row);
  }
  uint32_t at(int r, int k) const {
    const int bytes = type_.format.bytes, row = layout_.swizzle;
    uint32_t offset = 0;
    if (!layout_.mn_major) {
      const int in_k = k * bytes;
      offset = row ? uint32_t(r / 8 * 8 * row + r % 8 * row + in_k)
                   : uint32_t(r / 8 * 256 + in_k / 16 * 128 + r % 8 * 16 + in_k % 16);
    } else if (!row) {
      offset = uint32_t(r / 8 * 256 + k / 8 * 128 + k % 8 * 16 + r % 8 * 2);
    } else {
      const int across = r * 2;
      offset = uint32_t(across / row * 16 * row + k / 8 * 8 * row + k % 8 * row + across % row);
    }
    const uint32_t address = start_ + offset;
    if (!row) return address;
    const uint32_t line = address / 128, columns = uint32_t(row) / 16;
    return address ^ (line % columns) * 16;
  }
  void put(std::vector<uint8_t>& image, int r, int k, uint32_t value) const {
    std::memcpy(image.data() + at(r, k), &value, size_t(type_.format.bytes));
  }

 private:
  Layout layout_;
  int rows_;
  Type type_;
  uint32_t start_;
};

using Matrix = std::vector<std::vector<uint32_t>>;

struct WgmmaCase {
  Type a, b;
  std::string sum = "f32";
  int n = 64;
  Layout layout_a, layout_b;
  bool a_in_registers = false;
  int scale_a = 1, scale_b = 1;
  bool accumulate = true;
  std::string flags;
  double spread = 1;  // standard deviation of log2(|element|)
};

class Wgmma : public testing::Test {
 protected:
  uint32_t element(const Type& t, double spread) {
    if (t.name == kS8.name || t.name == kU8.name) return uint32_t(random_() & 0xff);
    const FloatFormat& f = t.format;
    const int bias = (1 << (f.exponent_bits - 1)) - 1, most = (1 << f.exponent_bits) - 2;
    std::normal_distribution<double> normal(bias, spread);
    const uint32_t field = uint32_t(std::clamp(int(std::lround(normal(random_))), 0, most));
    uint32_t bits = field << f.mantissa_bits | (random_() & ((1u << f.mantissa_bits) - 1));
    bits |= (random_() & 1u) << (f.exponent_bits + f.mantissa_bits);
    return random_() % 16 == 0 ? 0 : bits << f.ignored | (random_() & ((1u << f.ignored) - 1));
  }
  Matrix matrix(int rows, const Type& t, double spread) {
    Matrix m(size_t(rows), std::vector<uint32_t>(size_t(t.k)));
    for (auto& row : m)
      for (auto& x : row) x = element(t, spread);
    return m;
  }
  // The words of A that a thread holds.
  static std::vector<uint32_t> fragments(const Matrix& a, const Type& t) {
    std::vector<uint32_t> out(128 * 4);
    const int per = 4 / t.format.bytes;
    for (int thread = 0; thread < 128; ++thread) {
      const int warp = thread / 32, g = thread % 32 / 4, q = thread % 4;
      for (int i = 0; i < 4; ++i) {
        uint32_t word = 0;
        for (int j = 0; j < per; ++j) {
          const int row = 16 * warp + g + 8 * (i % 2), k = i / 2 * 4 * per + q * per + j;
          word |= a[size_t(row)][size_t(k)] << (32 / per * j % 32);
        }
        out[size_t(thread * 4 + i)] = word;
      }
    }
    return out;
  }
  uint32_t expected(const WgmmaCase& c, const Matrix& a, const Matrix& b, int row, int column,
                    uint32_t old) const {
    auto x = a[size_t(row)];
    const auto& y = b[size_t(column)];
    if (!c.accumulate) old = 0;
    if (c.sum == "s32") return whole(c, x, y, old);
    const FloatFormat& f = c.a.format;
    if (c.scale_a != c.scale_b)
      for (auto& e : x) e ^= 1u << (f.exponent_bits + f.mantissa_bits + f.ignored);
    const bool fp8 = f.bytes == 1;
    return wgmma_element(f, x, c.b.format, y, old, {fp8 ? 13 : 25, fp8 ? 13 : 23, c.sum == "f16"});
  }
  static uint32_t whole(const WgmmaCase& c, const std::vector<uint32_t>& x,
                        const std::vector<uint32_t>& y, uint32_t old) {
    auto value = [](const Type& t, uint32_t v) {
      return t.name == kS8.name ? int64_t(int8_t(v)) : int64_t(uint8_t(v));
    };
    int64_t sum = int32_t(old);
    for (size_t k = 0; k < x.size(); ++k) sum += value(c.a, x[k]) * value(c.b, y[k]);
    if (!c.flags.empty()) sum = std::clamp<int64_t>(sum, INT32_MIN, INT32_MAX);
    return uint32_t(sum);
  }
  void check(const WgmmaCase& c);
  std::mt19937 random_{7};
};

void Wgmma::check(const WgmmaCase& c) {
  const bool half = c.sum == "f16";
  const int registers = half ? c.n / 4 : c.n / 2;
  const Matrix a = matrix(64, c.a, c.spread), b = matrix(c.n, c.b, c.spread);
  std::vector<uint8_t> image(kWgmmaImage, 0xff);
  const Placed at_a(c.layout_a, 64, c.a, 0), at_b(c.layout_b, c.n, c.b, 32768);
  for (int k = 0; k < c.a.k; ++k) {
    for (int r = 0; r < 64; ++r) at_a.put(image, r, k, a[size_t(r)][size_t(k)]);
    for (int r = 0; r < c.n; ++r) at_b.put(image, r, k, b[size_t(r)][size_t(k)]);
  }
  std::vector<uint32_t> acc(size_t(128 * registers)), out(acc.size()), frag = fragments(a, c.a);
  const Type type_d{"f32", half ? kF16Format : kF32Format, 0};
  for (auto& x : acc) {
    x = c.sum == "s32" ? uint32_t(random_()) : element(type_d, c.spread + 2);
    if (half) x |= element(type_d, c.spread + 2) << 16;
  }
  const bool halves = c.a.format.bytes == 2, bytes = c.sum == "s32";
  std::string text = std::string(kWgmmaBegin) + "wgmma.mma_async.sync.aligned.m64n" +
                     std::to_string(c.n) + "k" + std::to_string(c.a.k) + c.flags + "." + c.sum +
                     "." + c.a.name + "." + c.b.name + " " + list_of("%c", registers) + ", " +
                     (c.a_in_registers ? "{%a0, %a1, %a2, %a3}" : "%d0") + ", %d1, " +
                     (c.accumulate ? "%p1" : "%p2");
  if (!bytes) text += ", " + std::to_string(c.scale_a) + ", " + std::to_string(c.scale_b);
  if (halves && !c.a_in_registers) text += c.layout_a.mn_major ? ", 1" : ", 0";
  if (halves) text += c.layout_b.mn_major ? ", 1" : ", 0";
  const std::string kernel =
      wgmma_text({registers, at_a.bits(), at_b.bits(), text + ";\n" + kWgmmaEnd});
  auto m = Module::parse(kernel);
  ASSERT_TRUE(m.has_value()) << m.error().text();
  Sim sim;
  sim.options.threads = 1;
  const auto r = sim.run(*m, "k", 1, 128,
                         {sim.output("out", out), sim.input("image", image), sim.input("acc", acc),
                          sim.input("frag", frag)});
  for (int thread = 0; thread < 128; ++thread) {
    for (int i = 0; i < registers * (half ? 2 : 1); ++i) {
      const int row = thread / 32 * 16 + thread % 32 / 4 + (half ? i / 2 % 2 : i / 2 % 2) * 8;
      const int column = i / 4 * 8 + thread % 4 * 2 + i % 2;
      const size_t word = size_t(thread * registers + (half ? i / 2 : i));
      const int shift = half ? 16 * (i % 2) : 0;
      const uint32_t keep = half ? 0xffff : ~0u;
      ASSERT_EQ(out[word] >> shift & keep,
                expected(c, a, b, row, column, acc[word] >> shift & keep))
          << text.substr(0, 90) << " row " << row << " column " << column;
    }
  }
}

const std::vector<Layout> kKMajor{{0}, {32}, {64}, {128}},
    kMnMajor{{0, true}, {32, true}, {64, true}, {128, true}};

TEST_F(Wgmma, EveryKMajorLayout) {
  for (const Layout& layout : kKMajor) {
    check({.a = kF16, .b = kF16, .n = 40, .layout_a = layout, .layout_b = layout});
    check({.a = kTf32, .b = kTf32, .n = 24, .layout_a = layout, .layout_b = kKMajor[0]});
    check({.a = kE4m3, .b = kE5m2, .n = 16, .layout_a = kKMajor[3], .layout_b = layout});
  }
}

TEST_F(Wgmma, EveryMnMajorLayout) {
  for (const Layout& layout : kMnMajor) {
    check({.a = kBf16, .b = kBf16, .n = 96, .layout_a = layout, .layout_b = layout});
    check({.a = kF16, .b = kF16, .n = 256, .layout_a = kKMajor[3], .layout_b = layout});
    check({.a = kF16, .b = kF16, .n = 8, .layout_a = layout, .layout_b = kKMajor[2]});
  }
}

TEST_F(Wgmma, AInRegisters) {
  for (const Type& t : {kF16, kBf16, kTf32, kE4m3, kE5m2})
    check({.a = t, .b = t, .n = 72, .layout_b = {128}, .a_in_registers = true});
  for (const Type& t : {kS8, kU8})
    check({.a = t, .b = t, .sum = "s32", .n = 48, .layout_b = {64}, .a_in_registers = true});
}

TEST_F(Wgmma, HalfAccumulators) {
  for (double spread : {1., 4.}) {
    check({.a = kF16,
           .b = kF16,
           .sum = "f16",
           .n = 88,
           .layout_a = {128},
           .layout_b = {128},
           .spread = spread});
    check({.a = kE5m2,
           .b = kE4m3,
           .sum = "f16",
           .n = 32,
           .layout_a = {64},
           .layout_b = {64},
           .spread = spread});
  }
}

TEST_F(Wgmma, EveryPairOfBytes) {
  for (const Type& a : {kE4m3, kE5m2})
    for (const Type& b : {kE4m3, kE5m2})
      check({.a = a, .b = b, .n = 24, .layout_a = {128}, .layout_b = {128}, .spread = 3});
  for (const Type& a : {kS8, kU8})
    for (const Type& b : {kS8, kU8})
      for (const char* flags : {"", ".satfinite"})
        check({.a = a,
               .b = b,
               .sum = "s32",
               .n = 32,
               .layout_a = {128},
               .layout_b = {32},
               .flags = flags});
}

TEST_F(Wgmma, ScaleAndNegation) {
  for (int scale_a : {-1, 1}) {
    for (int scale_b : {-1, 1}) {
      for (bool accumulate : {false, true})
        check({.a = kBf16,
               .b = kBf16,
               .n = 16,
               .layout_a = {128},
               .layout_b = {128},
               .scale_a = scale_a,
               .scale_b = scale_b,
               .accumulate = accumulate});
    }
  }
}

// Exponents far apart, subnormals, and results beyond the range of float32.
TEST_F(Wgmma, WideSpreads) {
  for (double spread : {8., 30., 60.}) {
    check(
        {.a = kBf16, .b = kBf16, .n = 64, .layout_a = {128}, .layout_b = {128}, .spread = spread});
    check(
        {.a = kTf32, .b = kTf32, .n = 64, .layout_a = {128}, .layout_b = {128}, .spread = spread});
    check({.a = kF16, .b = kF16, .n = 64, .layout_a = {128}, .layout_b = {128}, .spread = spread});
  }
}

TEST_F(Wgmma, EveryWidth) {
  for (int n = 8; n <= 256; n += 8)
    check({.a = kBf16, .b = kBf16, .n = n, .layout_a = {128}, .layout_b = {128}});
}

// Every instruction set of the host gives the same bits.
TEST(WgmmaHandlers, AgreeOnAllInstructionSets) {
  std::mt19937 random(3);
  std::vector<std::byte> a(512), b(256 * 32);
  struct alignas(64) Converted {
    std::byte bytes[kWgmmaColumnsBytes];
  };
  const auto columns = std::make_unique<Converted>();
  const std::string_view best = best_instruction_set();
  for (WgmmaType type : {WgmmaType::f16, WgmmaType::bf16, WgmmaType::tf32, WgmmaType::e4m3,
                         WgmmaType::e5m2, WgmmaType::s8}) {
    for (WgmmaSum sum : {WgmmaSum::f32, WgmmaSum::f16, WgmmaSum::s32}) {
      std::vector<std::vector<std::byte>> results;
      for (auto* list : {&a, &b})
        for (auto& x : *list) x = std::byte(random());
      std::vector<int32_t> slots(128);
      for (size_t i = 0; i < slots.size(); ++i) slots[i] = int32_t(128 * i);
      for (std::string_view isa : {"base", "v3", "v4"}) {
        if (isa > best && best != "base") break;
        if (best == "base" && isa != "base") break;
        const WgmmaFn run = make_forms(isa).wgmma(type, type, sum);
        if (!run) continue;
        std::vector<std::byte> registers(128 * 128 + 64, std::byte{0x3c});
        void* p = registers.data();
        size_t room = registers.size();
        auto* aligned = static_cast<std::byte*>(std::align(64, 128 * 128, p, room));
        run({.a = a.data(),
             .b = b.data(),
             .columns = columns->bytes,
             .registers = aligned,
             .d = slots.data(),
             .n = 72});
        results.emplace_back(aligned, aligned + 128 * 128);
        EXPECT_EQ(results.back(), results.front()) << isa << int(type) << int(sum);
      }
    }
  }
}

}  // namespace
}  // namespace cutegen::ptx
