// SPDX-License-Identifier: Apache-2.0
// The reference with which tests compare generated programs (reference.h).
#include "ptx/testing/reference.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>

namespace cutegen::ptx {
namespace {

using Wide = __int128;
using Values = std::vector<uint64_t>;

std::vector<std::string> parts_of(const std::string& opcode) {
  std::vector<std::string> out{""};
  for (char c : opcode) {
    if (c == '.')
      out.emplace_back();
    else
      out.back() += c;
  }
  return out;
}

struct Opcode {
  std::vector<std::string> parts;
  const std::string& base() const { return parts[0]; }
  const std::string& type() const { return parts.back(); }
  bool has(const char* what) const {
    for (size_t i = 1; i < parts.size(); ++i) {
      if (parts[i] == what) return true;
    }
    return false;
  }
};

int bits_of_type(const std::string& type) {
  return type == "pred" ? 1 : std::stoi(type.substr(type.find_first_of("0123456789")));
}
bool is_float(const std::string& type) {
  return type[0] == 'f';
}
uint64_t cut(Wide value, int bits) {
  return bits == 64 ? uint64_t(value) : uint64_t(value) & ((uint64_t{1} << bits) - 1);
}
// The number that the low bits of `raw` represent.
Wide integer(uint64_t raw, const std::string& type) {
  const int bits = bits_of_type(type);
  Wide v = Wide(cut(Wide(raw), bits));
  if (type[0] == 's' && (v >> (bits - 1))) v -= Wide(1) << bits;
  return v;
}
double real(uint64_t raw, const std::string& type) {
  return type == "f32" ? double(std::bit_cast<float>(uint32_t(raw))) : std::bit_cast<double>(raw);
}
uint64_t raw_of(double value, const std::string& type) {
  return type == "f32" ? std::bit_cast<uint32_t>(float(value)) : std::bit_cast<uint64_t>(value);
}
Wide held(Wide v, const std::string& type) {  // clamps to the range of a type
  const int bits = bits_of_type(type);
  const bool is_signed = type[0] == 's';
  const Wide least = is_signed ? -(Wide(1) << (bits - 1)) : 0,
             most = (Wide(1) << (is_signed ? bits - 1 : bits)) - 1;
  return v < least ? least : v > most ? most : v;
}

// Part of a product that may exceed 127 bits. No opcode needs the bits above 128.
Wide product_part(const Opcode& op, Wide a, Wide b, Wide addend, int bits) {
  using Bits = unsigned __int128;
  const Wide product = Wide(Bits(a) * Bits(b));
  return Wide(Bits(op.has("hi") ? product >> bits : product) + Bits(addend));
}

uint64_t integers(const Opcode& op, const Values& v) {
  const std::string& t = op.type();
  const int bits = bits_of_type(t);
  const std::string& name = op.base();
  const Wide a = integer(v[0], t), b = v.size() > 1 ? integer(v[1], t) : 0;
  const int wide = op.has("wide") ? 2 * bits : bits;
  const std::string out = t[0] + std::to_string(wide);
  const Wide c = v.size() > 2 ? integer(v[2], out) : 0;
  if (name == "add" || name == "sub") {
    const Wide sum = name == "add" ? a + b : a - b;
    return cut(op.has("sat") ? held(sum, t) : sum, bits);
  }
  if (name == "mul") {
    if (bits == 64 && op.has("hi") && t[0] == 'u')
      return uint64_t((unsigned __int128)(v[0]) * v[1] >> 64);
    return cut(product_part(op, a, b, 0, bits), wide);
  }
  if (name == "mad") return cut(product_part(op, a, b, c, bits), wide);
  if (name == "div") return b == 0 ? cut(-1, bits) : cut(a / b, bits);
  if (name == "rem") return b == 0 ? cut(a, bits) : cut(a % b, bits);
  if (name == "min") return cut(a < b ? a : b, bits);
  if (name == "max") return cut(a < b ? b : a, bits);
  if (name == "abs") return cut(a < 0 ? -a : a, bits);
  if (name == "neg") return cut(-a, bits);
  if (name == "sad") return cut(c + (a < b ? b - a : a - b), bits);
  if (name == "shr") {
    const uint64_t n = v[1] & 0xffffffff;
    return cut(a >> (n > uint64_t(bits) ? bits : int(n)), bits);
  }
  ADD_FAILURE() << "no reference for " << name;
  return 0;
}

uint64_t field(const Opcode& op, const Values& v) {
  const std::string& t = op.type();
  const int bits = bits_of_type(t);
  const int pos = int(v[op.base() == "bfi" ? 2 : 1] & 0xff),
            len = int(v[op.base() == "bfi" ? 3 : 2] & 0xff);
  uint64_t out = op.base() == "bfi" ? v[1] : 0;
  if (op.base() == "bfi") {
    for (int i = 0; i < len && pos + i < bits; ++i) {
      const uint64_t bit = i < 64 ? v[0] >> i & 1 : 0;
      out = (out & ~(uint64_t{1} << (pos + i))) | bit << (pos + i);
    }
    return out;
  }
  const int top = std::min(pos + len - 1, bits - 1);
  const uint64_t sign = t[0] == 'u' || len == 0 ? 0 : v[0] >> top & 1;
  for (int i = 0; i < bits; ++i) {
    const uint64_t bit = i < len && pos + i < bits ? v[0] >> (pos + i) & 1 : sign;
    out |= bit << i;
  }
  return out;
}

uint64_t bitwise(const Opcode& op, const Values& v) {
  const std::string& name = op.base();
  const int bits = bits_of_type(op.type());
  const uint64_t a = cut(Wide(v[0]), bits);
  uint64_t out = 0;
  if (name == "and") return a & v[1];
  if (name == "or") return cut(Wide(a | v[1]), bits);
  if (name == "xor") return cut(Wide(a ^ v[1]), bits);
  if (name == "not") return cut(Wide(~a), bits);
  if (name == "cnot") return a == 0;
  if (name == "shl") {
    const uint64_t n = v[1] & 0xffffffff;
    return n >= uint64_t(bits) ? 0 : cut(Wide(a) << n, bits);
  }
  if (name == "popc" || name == "brev") {
    for (int i = 0; i < bits; ++i)
      out += name == "popc" ? a >> i & 1 : (a >> i & 1) << (bits - 1 - i);
    return out;
  }
  if (name == "clz") {
    while (out < uint64_t(bits) && !(a >> (uint64_t(bits) - 1 - out) & 1)) ++out;
    return out;
  }
  if (name == "bfind") {
    const bool negative = op.type()[0] == 's' && (a >> (bits - 1));
    for (int i = bits - 1; i >= 0; --i) {
      if ((a >> i & 1) != uint64_t(negative))
        return uint64_t(op.has("shiftamt") ? bits - 1 - i : i);
    }
    return 0xffffffff;
  }
  if (name == "prmt") {
    for (int i = 0; i < 4; ++i) {
      const uint64_t pick = v[2] >> (4 * i) & 15, from = pick & 4 ? v[1] : v[0];
      uint64_t byte = from >> (8 * (pick & 3)) & 255;
      if (pick & 8) byte = byte > 127 ? 255 : 0;
      out |= byte << (8 * i);
    }
    return out;
  }
  if (name == "shf") {
    const uint64_t n = op.has("wrap") ? v[2] & 31 : std::min<uint64_t>(v[2], 32);
    const Wide both = Wide(v[1]) << 32 | Wide(v[0]);
    return cut(op.has("l") ? both << n >> 32 : both >> n, 32);
  }
  if (name == "lop3") {
    for (int i = 0; i < 32; ++i) {
      const uint64_t row = (v[0] >> i & 1) << 2 | (v[1] >> i & 1) << 1 | (v[2] >> i & 1);
      out |= (v[3] >> row & 1) << i;
    }
    return out;
  }
  return field(op, v);
}

uint64_t dots(const Opcode& op, const Values& v) {
  const bool sa = op.parts[1][0] == 's', sb = op.parts[2][0] == 's';
  Wide sum = Wide(v[2]);
  for (int i = 0; i < 4; ++i) {
    const uint64_t a = v[0] >> (8 * i) & 255, b = v[1] >> (8 * i) & 255;
    sum += integer(a, sa ? "s8" : "u8") * integer(b, sb ? "s8" : "u8");
  }
  return cut(sum, 32);
}

bool compare(const std::string& how, const std::string& type, uint64_t ra, uint64_t rb) {
  int order = 0;  // -1, 0, 1
  bool unordered = false;
  if (is_float(type)) {
    const double a = real(ra, type), b = real(rb, type);
    unordered = std::isnan(a) || std::isnan(b);
    order = a < b ? -1 : a > b ? 1 : 0;
  } else {
    const Wide a = integer(ra, type), b = integer(rb, type);
    order = a < b ? -1 : a > b ? 1 : 0;
  }
  if (how == "num") return !unordered;
  if (how == "nan") return unordered;
  const bool loose = how.size() == 3;  // equ, ltu, ...
  if (unordered) return loose;
  const std::string plain = how.substr(0, 2);
  if (plain == "eq") return order == 0;
  if (plain == "ne") return order != 0;
  if (plain == "lt" || plain == "lo") return order < 0;
  if (plain == "le" || plain == "ls") return order <= 0;
  if (plain == "gt" || plain == "hi") return order > 0;
  return order >= 0;
}

double smaller(double a, double b) {
  if (std::isnan(a)) return b;
  if (std::isnan(b)) return a;
  return a == b ? (std::signbit(a) ? a : b) : a < b ? a : b;
}

uint64_t floats(const Opcode& op, const Values& v) {
  const std::string& t = op.type();
  const double a = real(v[0], t), b = v.size() > 1 ? real(v[1], t) : 0;
  const std::string& name = op.base();
  double out = 0;
  if (name == "add")  // in double and then float: for one operation, double rounding is harmless
    out = a + b;
  else if (name == "sub")
    out = a - b;
  else if (name == "mul")
    out = a * b;
  else if (name == "div")
    out = a / b;
  else if (name == "sqrt")
    out = std::sqrt(a);
  else if (name == "rcp")
    out = 1 / a;
  else if (name == "min")
    out = smaller(a, b);
  else if (name == "max")
    out = -smaller(-a, -b);
  else if (name == "neg")
    out = -a;
  else if (name == "abs")
    out = std::fabs(a);
  else if (name == "fma" && t == "f32")
    return std::bit_cast<uint32_t>(std::fma(float(a), float(b), float(real(v[2], t))));
  else if (name == "fma")
    out = std::fma(a, b, real(v[2], t));
  else
    ADD_FAILURE() << "no reference for " << name << " of floats";
  if (op.has("sat")) out = out > 0 ? std::min(out, 1.0) : 0;
  return raw_of(out, t);
}

uint64_t convert(const Opcode& op, const Values& v) {
  const std::string &from = op.type(), &to = op.parts[op.parts.size() - 2];
  if (!is_float(from) && !is_float(to)) {
    const Wide a = integer(v[0], from);
    return cut(op.has("sat") ? held(a, to) : a, bits_of_type(to));
  }
  if (!is_float(from)) {
    const Wide a = integer(v[0], from);
    return to == "f32" ? std::bit_cast<uint32_t>(float(a)) : std::bit_cast<uint64_t>(double(a));
  }
  double a = real(v[0], from);
  if (op.has("rzi")) a = std::trunc(a);
  if (op.has("rni")) a = std::nearbyint(a);
  if (op.has("rmi")) a = std::floor(a);
  if (op.has("rpi")) a = std::ceil(a);
  if (is_float(to)) return raw_of(a, to);
  const int bits = bits_of_type(to);
  if (std::isnan(a)) return from == "f64" || bits == 64 ? uint64_t{1} << (bits - 1) : 0;
  const double bound = 0x1p100;  // still fits in an integer of 128 bits
  return cut(held(Wide(std::max(-bound, std::min(bound, a))), to), bits);
}

}  // namespace

uint64_t reference(const std::string& opcode, const Values& v) {
  static const std::string of_bits =
      " and or xor not cnot shl popc brev clz bfind prmt shf lop3 bfe bfi ";
  const Opcode op{parts_of(opcode)};
  const std::string& name = op.base();
  if (name == "mov") return v[0];
  if (name == "selp") return v[2] ? v[0] : v[1];
  if (name == "slct") return integer(v[2], "s32") >= 0 ? v[0] : v[1];
  if (name == "setp") return compare(op.parts[1], op.type(), v[0], v[1]);
  if (name == "cvt") return convert(op, v);
  if (name == "dp4a") return dots(op, v);
  if (of_bits.find(" " + name + " ") != std::string::npos) return bitwise(op, v);
  return is_float(op.type()) ? floats(op, v) : integers(op, v);
}

namespace {

TEST(Reference, AgreesWithHandComputedValues) {
  EXPECT_EQ(reference("mad.hi.s32", {0x80000000, 2, 5}), 4u);
  EXPECT_EQ(reference("mul.wide.s16", {0xffff, 3}), 0xfffffffdu);
  EXPECT_EQ(reference("bfe.s32", {0xf00, 8, 4}), 0xffffffffu);
  EXPECT_EQ(reference("prmt.b32", {0x44332211, 0x88776655, 0x7531}), 0x88664422u);
  EXPECT_EQ(reference("cvt.rzi.u8.f32", {std::bit_cast<uint32_t>(300.f)}), 255u);
  EXPECT_EQ(reference("setp.ltu.f32", {0x7fc00000, 0}), 1u);
  EXPECT_EQ(reference("lop3.b32", {0xf0, 0xcc, 0xaa, 0x96}), 0x96u);
  EXPECT_EQ(reference("shr.s16", {0x8000, 40}), 0xffffu);
}

}  // namespace
}  // namespace cutegen::ptx
