// SPDX-License-Identifier: Apache-2.0
#include "eval/source/kernel_parameter.h"

#include <vector>

#include "base/text.h"

namespace cutegen::eval {
namespace {

constexpr std::pair<const char*, DType> kTypes[] = {{"double", DType::f64},
                                                    {"float", DType::f32},
                                                    {"half", DType::f16},
                                                    {"__half", DType::f16},
                                                    {"nv_bfloat16", DType::bf16},
                                                    {"__nv_bfloat16", DType::bf16},
                                                    {"__nv_fp8_e4m3", DType::f8e4m3},
                                                    {"__nv_fp8_e5m2", DType::f8e5m2},
                                                    {"int", DType::i32},
                                                    {"int32_t", DType::i32},
                                                    {"unsigned", DType::u32},
                                                    {"unsigned int", DType::u32},
                                                    {"uint32_t", DType::u32},
                                                    {"long", DType::i64},
                                                    {"long int", DType::i64},
                                                    {"long long", DType::i64},
                                                    {"long long int", DType::i64},
                                                    {"int64_t", DType::i64},
                                                    {"size_t", DType::i64},
                                                    {"int8_t", DType::i8},
                                                    {"signed char", DType::i8},
                                                    {"uint8_t", DType::u8},
                                                    {"unsigned char", DType::u8}};

}  // namespace

std::optional<DType> dtype_of(const std::string& type) {
  for (const auto& [name, dtype] : kTypes)
    if (type == name) return dtype;
  return std::nullopt;
}

std::optional<DType> scalar_dtype(ArgSpec::Kind kind) {
  switch (kind) {
    case ArgSpec::Kind::i32:
      return DType::i32;
    case ArgSpec::Kind::u32:
      return DType::u32;
    case ArgSpec::Kind::i64:
      return DType::i64;
    case ArgSpec::Kind::f32:
      return DType::f32;
    case ArgSpec::Kind::f64:
      return DType::f64;
    case ArgSpec::Kind::map:
    case ArgSpec::Kind::tensor:
      break;
  }
  return std::nullopt;
}

KernelParameter parameter_of(const std::string& text) {
  KernelParameter out;
  std::vector<std::string> words;
  for (const std::string& word : split(text, ' ')) {
    const bool qualifier = word == "__restrict__" || word == "__restrict" || word == "restrict" ||
                           word == "volatile" || word == "struct" || word == "__grid_constant__";
    if (word == "const" && out.pointers == 0) out.constant = true;
    if (word.empty() || word == "const" || qualifier) continue;
    if (word == "*") {
      ++out.pointers;
    } else if (out.pointers == 0) {
      words.push_back(word);
    }
  }
  // The last word is the name, unless it is the only word or belongs to the type.
  if (out.pointers == 0 && words.size() > 1 && !dtype_of(join(words, " "))) words.pop_back();
  out.type = join(words, " ");
  return out;
}

}  // namespace cutegen::eval
