// SPDX-License-Identifier: Apache-2.0
#include "ptx/model/pipes.h"

#include <algorithm>
#include <array>
#include <vector>

namespace cutegen::ptx {
namespace {

using Parts = std::vector<std::string_view>;

// "@%p1 add.f32 %f1, ..." -> {"add", "f32"}
Parts opcode_parts(std::string_view text) {
  auto skip_space = [&] {
    text.remove_prefix(std::min(text.find_first_not_of(" \t\n"), text.size()));
  };
  skip_space();
  if (text.starts_with('@')) {
    text.remove_prefix(std::min(text.find_first_of(" \t"), text.size()));
    skip_space();
  }
  text = text.substr(0, text.find_first_of(" \t\n;,"));
  Parts parts;
  while (!text.empty()) {
    const size_t dot = text.find('.');
    parts.push_back(text.substr(0, dot));
    text = dot == std::string_view::npos ? std::string_view() : text.substr(dot + 1);
  }
  return parts;
}

template <size_t N>
bool one_of(std::string_view word, const std::array<std::string_view, N>& words) {
  return std::find(words.begin(), words.end(), word) != words.end();
}
bool has(const Parts& parts, std::string_view word) {
  return std::find(parts.begin(), parts.end(), word) != parts.end();
}

constexpr std::array<std::string_view, 16> kMemory{
    "ld",       "ldu", "st",    "atom",      "red",      "ldmatrix",  "stmatrix", "shfl",
    "prefetch", "cp",  "redux", "prefetchu", "multimem", "movmatrix", "tex",      "suld"};
constexpr std::array<std::string_view, 6> kBranches{"bra", "brx", "ret", "exit", "call", "trap"};
constexpr std::array<std::string_view, 12> kOther{
    "mov",      "cvta",       "bar",       "barrier",  "membar",         "fence",
    "isspacep", "activemask", "nanosleep", "mbarrier", "griddepcontrol", "elect"};
constexpr std::array<std::string_view, 7> kSpecial{"ex2",   "lg2",  "sin", "cos",
                                                   "rsqrt", "tanh", "rcp"};
constexpr std::array<std::string_view, 6> kFmaBases{"add", "sub", "mul", "fma", "mad", "div"};

MmaType tensor_type(std::string_view a) {
  if (a == "f16") return MmaType::fp16;
  if (a == "bf16") return MmaType::bf16;
  if (a == "tf32") return MmaType::tf32;
  if (a == "f64") return MmaType::fp64;
  if (a == "s8" || a == "u8" || a == "s4" || a == "u4") return MmaType::int8;
  if (a == "e4m3" || a == "e5m2") return MmaType::fp8;
  return MmaType::none;
}

// "m16n8k16" -> 2 * 16 * 8 * 16; 0: not a shape
uint32_t shape_flops(std::string_view part) {
  uint32_t product = 2;
  for (char letter : {'m', 'n', 'k'}) {
    if (!part.starts_with(letter)) return 0;
    part.remove_prefix(1);
    uint32_t size = 0;
    while (!part.empty() && part[0] >= '0' && part[0] <= '9' && size < 10000) {
      size = size * 10 + uint32_t(part[0] - '0');
      part.remove_prefix(1);
    }
    if (size == 0 || size > 1024) return 0;
    product *= size;
  }
  return part.empty() ? product : 0;
}

Usage tensor_usage(const Parts& parts) {
  Usage u;
  u.pipe = Pipe::tensor;
  const bool group = parts[0] == "wgmma";
  for (std::string_view p : parts)
    if (uint32_t flops = shape_flops(p)) u.tensor_flops = group ? flops / 4 : flops;
  // The opcode ends with the types: D A B C, or D A B for wgmma. wmma has only D and C if A is f16.
  const size_t from_end = group ? 2 : 3;
  if (parts.size() > from_end) u.tensor = tensor_type(parts[parts.size() - from_end]);
  if (u.tensor == MmaType::none && parts[0] == "wmma") u.tensor = MmaType::fp16;
  if (u.tensor_flops == 0) u.pipe = Pipe::other, u.tensor = MmaType::none;  // wgmma.fence, ...
  return u;
}

bool float_type(std::string_view t) {
  return t == "f32" || t == "f64" || t == "f16" || t == "bf16" || t == "f16x2" || t == "bf16x2" ||
         t == "tf32" || t.starts_with("e4m3") || t.starts_with("e5m2");
}

Usage convert_usage(const Parts& parts) {
  Usage u;
  const std::string_view from = parts.back();
  const std::string_view to = parts.size() >= 3 ? parts[parts.size() - 2] : from;
  const bool floats = float_type(from) || float_type(to);
  u.pipe = !floats ? Pipe::alu : from == "f64" || to == "f64" ? Pipe::xu : Pipe::convert;
  return u;
}

Usage float_usage(const Parts& parts, std::string_view type) {
  Usage u;
  const std::string_view base = parts[0];
  const bool exact = has(parts, "rn"), flush = has(parts, "ftz");
  const bool is_double = type == "f64", is_half = type != "f32" && !is_double;
  u.pipe = is_double ? Pipe::fp64 : is_half ? Pipe::half : Pipe::alu;
  if (one_of(base, kSpecial) || base == "sqrt") {
    u.pipe = is_double ? Pipe::fp64 : Pipe::xu;
    if (exact || base == "sqrt")
      u.issue = is_double ? 20 : 8, u.special = is_double ? 1 : 0;
    else if (!flush && (base == "ex2" || base == "lg2"))
      u.issue = 3;
    else if (base == "sin" || base == "cos")
      u.issue = 2;
  } else if (base == "div") {
    u.pipe = is_double ? Pipe::fp64 : Pipe::fma;
    u.issue = is_double ? 20 : exact ? 9 : 3;
    u.special = 1;
  } else if (one_of(base, kFmaBases) && !is_double && !is_half) {
    u.pipe = Pipe::fma;
  }
  return u;
}

Usage integer_usage(const Parts& parts, std::string_view type) {
  Usage u;
  const std::string_view base = parts[0];
  const bool wide = type == "s64" || type == "u64" || type == "b64";
  u.pipe = Pipe::alu;
  if (base == "div" || base == "rem")
    u.issue = wide ? 80 : 20, u.special = 2;
  else if (base == "popc" || base == "brev" || base == "clz" || base == "bfind")
    u.pipe = Pipe::xu;
  else if (wide && (base == "mul" || base == "mad") && has(parts, "lo"))
    u.issue = 4;
  else if (wide)
    u.issue = 2;
  return u;
}

}  // namespace

const char* to_string(Pipe pipe) {
  static constexpr const char* names[] = {"fma",  "half",   "alu", "xu",     "convert",
                                          "fp64", "tensor", "lsu", "branch", "other"};
  static_assert(std::size(names) == size_t(Pipe::count_));
  return names[size_t(pipe)];
}

const char* to_string(MmaType type) {
  static constexpr const char* names[] = {"none", "fp64", "tf32", "fp16", "bf16", "int8", "fp8"};
  static_assert(std::size(names) == size_t(MmaType::count_));
  return names[size_t(type)];
}

Usage usage_of(std::string_view instruction) {
  const Parts parts = opcode_parts(instruction);
  Usage u;
  if (parts.empty()) return u;
  const std::string_view base = parts[0], type = parts.back();
  if (base == "mma" || base == "wgmma" || (base == "wmma" && has(parts, "mma")))
    return tensor_usage(parts);
  if (base == "wmma") {
    u.pipe = Pipe::lsu;
    return u;
  }
  if (one_of(base, kMemory)) {
    const bool constant = has(parts, "param") || has(parts, "const");
    const bool waits =
        has(parts, "commit_group") || has(parts, "wait_group") || has(parts, "wait_all");
    u.pipe = constant || waits ? Pipe::other : Pipe::lsu;
    return u;
  }
  if (one_of(base, kBranches)) {
    u.pipe = Pipe::branch;
    return u;
  }
  if (one_of(base, kOther)) return u;
  if (base == "cvt") return convert_usage(parts);
  return float_type(type) ? float_usage(parts, type) : integer_usage(parts, type);
}

}  // namespace cutegen::ptx
