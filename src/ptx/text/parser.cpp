// SPDX-License-Identifier: Apache-2.0
#include "ptx/text/parser.h"

#include <charconv>
#include <utility>

#include "base/text.h"
#include "ptx/text/function_parser.h"

namespace cutegen::ptx {
namespace {

constexpr char kNewestMajor = '9';

class Parser {
 public:
  explicit Parser(std::string_view text) : in_(text) {}
  Result<ParsedModule> run();

 private:
  Result<void> header();
  Result<void> top_level();
  Result<void> module_variables(Space space, bool is_extern);
  Result<void> function(bool is_entry);

  Reader in_;
  ParsedModule module_;
  SourceLines lines_;  // outside functions; parsed, but not used
};

Result<void> Parser::header() {
  if (!in_.lex.accept(".version")) return in_.wrong("'.version'");
  if (in_.lex.peek().kind != Token::Kind::number) return in_.wrong("a version");
  const Token version = in_.lex.next();
  module_.version = version.text;
  // A later major version may give known words another meaning.
  if (version.text.find('.') != 1 || version.text[0] > kNewestMajor)
    return unsupported_error("PTX version " + sanitize(version.text, 40), at_line(version.line));
  if (!in_.lex.accept(".target")) return in_.wrong("'.target'");
  CG_TRY(module_.target, in_.word("a target"));
  while (in_.lex.accept(",")) CG_CHECK(in_.word("a target option"));
  if (in_.lex.accept(".address_size")) {
    CG_TRY(int64_t bits, in_.integer("an address size"));
    if (bits != 64) return unsupported_error("PTX with 32-bit addresses", in_.here());
  }
  return {};
}

Result<ParsedModule> Parser::run() {
  CG_CHECK(header());
  while (in_.lex.peek().kind != Token::Kind::end) CG_CHECK(top_level());
  return std::move(module_);
}

Result<void> Parser::top_level() {
  bool is_extern = false;
  while (true) {
    if (in_.lex.accept(".extern")) {
      is_extern = true;
    } else if (!in_.lex.accept(".visible") && !in_.lex.accept(".weak") &&
               !in_.lex.accept(".common")) {
      break;
    }
  }
  const Token t = in_.lex.peek();
  if (t.is(".entry") || t.is(".func")) {
    in_.lex.next();
    return function(t.is(".entry"));
  }
  static constexpr std::pair<std::string_view, Space> spaces[] = {
      {".global", Space::global}, {".const", Space::constant}, {".shared", Space::shared}};
  for (auto [name, space] : spaces) {
    if (!in_.lex.accept(name)) continue;
    return module_variables(space, is_extern);
  }
  if (in_.lex.accept(".loc")) return lines_.location(in_);
  if (in_.lex.accept(".file")) {
    CG_CHECK(in_.integer("a file number"));
    if (in_.lex.peek().kind != Token::Kind::string) return in_.wrong("a file name");
    in_.lex.next();
    return in_.lex.accept(",") ? in_.skip_list(2) : Result<void>{};
  }
  if (in_.lex.accept(".section")) {
    CG_CHECK(in_.word("a section name"));
    return in_.skip_braces();
  }
  if (t.is(".pragma") || t.is(".alias")) return in_.skip_to_semicolon();
  if (t.kind == Token::Kind::word && t.text.starts_with('.')) {
    return unsupported_error("PTX directive " + sanitize(t.text, 60), at_line(t.line));
  }
  return in_.wrong("a directive");
}

Result<void> Parser::module_variables(Space space, bool is_extern) {
  CG_TRY(Variable v, parse_variable(in_, space, is_extern));
  if (in_.lex.peek().is("=")) {
    in_.lex.next();
    const size_t begin = in_.lex.peek().at;
    while (!in_.lex.peek().is(";")) {
      if (in_.lex.peek().kind == Token::Kind::end) return in_.wrong("';'");
      in_.lex.next();
    }
    v.initializer = in_.lex.text().substr(begin, in_.lex.peek().at - begin);
  }
  CG_CHECK(in_.expect(";"));
  module_.by_name.emplace(v.name, module_.variables.size());
  module_.variables.push_back(v);
  return {};
}

Result<void> Parser::function(bool is_entry) {
  CG_TRY(Function f, FunctionParser(in_).run(is_entry));
  if (f.scopes.empty()) return {};  // a prototype
  if (!is_entry) module_.device_functions.emplace(f.name, module_.functions.size());
  module_.functions.push_back(std::move(f));
  return {};
}

}  // namespace

int64_t type_bytes(std::string_view type) {
  static constexpr std::pair<std::string_view, int64_t> types[] = {
      {"b8", 1},    {"u8", 1},     {"s8", 1},  {"b16", 2}, {"u16", 2}, {"s16", 2},
      {"f16", 2},   {"bf16", 2},   {"b32", 4}, {"u32", 4}, {"s32", 4}, {"f32", 4},
      {"f16x2", 4}, {"bf16x2", 4}, {"b64", 8}, {"u64", 8}, {"s64", 8}, {"f64", 8}};
  for (auto [name, bytes] : types) {
    if (name == type) return bytes;
  }
  return 0;
}

std::optional<Operand> parse_number(std::string_view text) {
  Operand o;
  o.kind = Operand::Kind::integer;
  auto digits = [&](std::string_view s, int base) {
    uint64_t v = 0;
    auto [end, e] = std::from_chars(s.data(), s.data() + s.size(), v, base);
    o.value = int64_t(v);
    return e == std::errc{} && end == s.data() + s.size();
  };
  if (text.size() >= 2 && text[0] == '0') {
    const char c = text[1];
    std::string_view rest = text.substr(2);
    if (c == 'f' || c == 'F' || c == 'd' || c == 'D') {
      o.kind = Operand::Kind::real, o.is_single = c == 'f' || c == 'F';
      if (rest.size() != (o.is_single ? 8u : 16u) || !digits(rest, 16)) return std::nullopt;
      return o;
    }
    if (c == 'x' || c == 'X' || c == 'b' || c == 'B' || (c >= '0' && c <= '7')) {
      const bool octal = c >= '0' && c <= '7';
      if (rest.ends_with('U')) rest.remove_suffix(1);
      if (!digits(octal ? text.substr(1) : rest, octal ? 8 : (c == 'b' || c == 'B') ? 2 : 16))
        return std::nullopt;
      return o;
    }
  }
  if (text.find_first_of(".eE") != std::string_view::npos) {
    double d = 0;
    auto [end, e] = std::from_chars(text.data(), text.data() + text.size(), d);
    if (e != std::errc{} || end != text.data() + text.size()) return std::nullopt;
    o.kind = Operand::Kind::real;
    __builtin_memcpy(&o.value, &d, sizeof d);
    return o;
  }
  if (text.ends_with('U')) text.remove_suffix(1);
  if (!digits(text, 10)) return std::nullopt;
  return o;
}

Result<ParsedModule> parse_module(std::string_view text) {
  return Parser(text).run();
}

}  // namespace cutegen::ptx
