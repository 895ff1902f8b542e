// SPDX-License-Identifier: Apache-2.0
// Types of host code.
#include <set>

#include "eval/source/host_expression.h"

namespace cutegen::eval {
namespace {

const std::set<std::string, std::less<>> kIntegerWords{
    "int",     "unsigned", "signed",   "long",     "short",    "char",
    "size_t",  "ssize_t",  "int8_t",   "int16_t",  "int32_t",  "int64_t",
    "uint8_t", "uint16_t", "uint32_t", "uint64_t", "ptrdiff_t"};

}  // namespace

const char* device_type(const std::string& name) {
  if (name == "Half") return device_type(DType::f16);
  if (name == "BFloat16") return device_type(DType::bf16);
  return "";
}

const char* device_type(DType dtype) {
  switch (dtype) {
    case DType::f64:
      return "double";
    case DType::f32:
      return "float";
    case DType::f16:
      return "__half";
    case DType::bf16:
      return "__nv_bfloat16";
    case DType::f8e4m3:
      return "__nv_fp8_e4m3";
    case DType::f8e5m2:
      return "__nv_fp8_e5m2";
    case DType::i64:
      return "long long";
    case DType::i32:
      return "int";
    case DType::i16:
      return "short";
    case DType::i8:
      return "signed char";
    case DType::u64:
      return "unsigned long long";
    case DType::u32:
      return "unsigned";
    case DType::u16:
      return "unsigned short";
    case DType::u8:
      return "unsigned char";
    case DType::boolean:
      return "bool";
  }
  return "";
}

HostType host_type(const std::vector<Token>& tokens, TokenRange range, const HostScope& scope) {
  HostType out = HostType::unknown;
  for (size_t i = range.first; i < range.second; ++i) {
    const Token& t = tokens[i];
    if (t.mark('*')) return HostType::pointer;
    if (t.is("const") || t.is("constexpr") || t.is("static") || t.is("std") || t.is("volatile") ||
        t.mark('&') || is_mark(t, "::"))
      continue;
    const auto alias = scope.types.find(t.text);
    if (t.kind == Token::Kind::word && alias != scope.types.end())
      out = host_type(alias->second, {0, alias->second.size()}, {});
    else if (kIntegerWords.contains(t.text))
      out = HostType::integer;
    else if (t.is("bool"))
      out = HostType::boolean;
    else if (t.is("float") || t.is("double"))
      out = HostType::real;
    else if (t.is("dim3"))
      out = HostType::sizes;
    else if (t.is("auto"))
      out = HostType::any;
    else
      return HostType::unknown;
  }
  return out;
}

size_t after_type(const std::vector<Token>& tokens, size_t at, size_t end) {
  size_t i = at;
  bool built_in = false, named = false;
  for (; i < end; ++i) {
    const Token& t = tokens[i];
    if (t.is("const") || t.is("constexpr") || t.is("static") || t.is("volatile") ||
        t.is("typename"))
      continue;
    if ((t.mark('*') || t.mark('&') || is_mark(t, "&&")) && (built_in || named)) continue;
    if (t.kind == Token::Kind::word && kIntegerWords.contains(t.text) && !named) {
      built_in = true;
      continue;
    }
    if (t.kind != Token::Kind::word || built_in || named) break;
    named = true;
    while (i + 2 < end && is_mark(tokens[i + 1], "::") && tokens[i + 2].kind == Token::Kind::word)
      i += 2;
    if (i + 1 >= end || !tokens[i + 1].mark('<')) continue;
    int depth = 0;
    size_t j = i + 1;
    for (; j < end; ++j) {
      if (tokens[j].mark(';') || tokens[j].mark('{') || tokens[j].mark('(')) return at;
      depth += tokens[j].mark('<') ? 1 : tokens[j].mark('>') ? -1 : 0;
      if (depth == 0) break;
    }
    i = j;
  }
  return built_in || named ? std::min(i, end) : at;
}

}  // namespace cutegen::eval
