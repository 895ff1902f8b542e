// SPDX-License-Identifier: Apache-2.0
#include "ptx/decode/declarations.h"

#include <fmt/format.h>

#include <bit>
#include <cstring>

#include "base/text.h"
#include "ptx/decode/module.h"
#include "ptx/text/lexer.h"
#include "ptx/text/parser.h"

namespace cutegen::ptx {
namespace {

constexpr int64_t kMostConstant = 1 << 20;  // bytes of one constant

bool is_plain_name(std::string_view name) {
  return !name.starts_with("_Z");
}
bool is_integer_type(std::string_view type) {
  return type[0] == 'u' || type[0] == 's' || type[0] == 'b';
}
int64_t natural_bytes(const Variable& v) {
  return type_bytes(v.type);
}

}  // namespace

Result<std::vector<std::byte>> initial_bytes(const Variable& v) {
  std::vector<std::byte> out(size_t(v.bytes()));
  const size_t step = size_t(natural_bytes(v));
  size_t at = 0;
  Lexer lex(v.initializer);
  auto refuse = [&](const std::string& why) {
    return unsupported_error(fmt::format("initializer of {}: {}", sanitize(v.name, 60), why),
                             fmt::format("ptx:{}", v.line));
  };
  while (lex.peek().kind != Token::Kind::end) {
    if (lex.accept("{") || lex.accept("}") || lex.accept(",")) continue;
    const bool negative = lex.accept("-");
    auto number =
        lex.peek().kind == Token::Kind::number ? parse_number(lex.next().text) : std::nullopt;
    if (!number) return refuse("only numbers can be given");
    if (at + step > out.size()) return refuse("more values than elements");
    uint64_t bits = uint64_t(number->value);
    if (number->kind == Operand::Kind::real) {
      if (v.type == "f32" && !number->is_single)
        bits = std::bit_cast<uint32_t>(float(std::bit_cast<double>(bits)));
      if (negative) bits ^= uint64_t{1} << (8 * step - 1);
    } else if (negative) {
      bits = -bits;
    }
    std::memcpy(out.data() + at, &bits, step);
    at += step;
  }
  return out;
}

Result<Declarations> read_declarations(std::string_view text) {
  if (text.size() > kMostText) {
    return user_error(fmt::format("PTX of {} bytes (at most {})", text.size(), kMostText), {},
                      "split the module");
  }
  const std::string copy(text.substr(0, text.find('\0')));
  CG_TRY(ParsedModule module, parse_module(copy));
  Declarations out;
  for (const Function& f : module.functions) {
    if (!f.is_entry) continue;
    Entry e;
    e.name = std::string(f.name);
    for (const Variable& v : f.params)
      e.params.push_back({.size = size_t(v.bytes()), .align = size_t(v.align)});
    for (size_t i = 0; i < 3; ++i) e.max_block[i] = int(f.max_block[i]);
    out.entries.push_back(std::move(e));
  }
  out.integers = integer_constants(module);
  for (const std::string& name : constant_names(module))
    if (auto bytes = constant_bytes(module, name)) out.bytes.emplace(name, std::move(*bytes));
  return out;
}

std::map<std::string, int64_t> integer_constants(const ParsedModule& module) {
  std::map<std::string, int64_t> out;
  for (const Variable& v : module.variables) {
    if (v.space == Space::shared || v.is_array || v.is_extern || !is_plain_name(v.name)) continue;
    if (!is_integer_type(v.type) || v.element != natural_bytes(v)) continue;
    auto bytes = initial_bytes(v);
    if (!bytes) continue;
    int64_t value = 0;
    std::memcpy(&value, bytes->data(), bytes->size());
    const int unused = 64 - 8 * int(v.element);
    // PTX writes signed initial values as unsigned, so values of 32 or 64 bits are read as signed.
    if (v.element >= 4) value = int64_t(uint64_t(value) << unused) >> unused;
    out[std::string(v.name)] = value;
  }
  return out;
}

std::vector<std::string> constant_names(const ParsedModule& module) {
  std::vector<std::string> out;
  for (const Variable& v : module.variables) {
    if (v.space != Space::shared && !v.is_extern && is_plain_name(v.name)) out.emplace_back(v.name);
  }
  return out;
}

std::optional<std::vector<std::byte>> constant_bytes(const ParsedModule& module,
                                                     const std::string& name) {
  auto it = module.by_name.find(name);
  if (it == module.by_name.end()) return std::nullopt;
  const Variable& v = module.variables[it->second];
  if (v.space == Space::shared || v.is_extern || v.bytes() > kMostConstant) return std::nullopt;
  auto bytes = initial_bytes(v);
  if (!bytes) return std::nullopt;
  return std::move(*bytes);
}

}  // namespace cutegen::ptx
