// SPDX-License-Identifier: Apache-2.0
#include "ptx/text/parser.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <string>

#include "base/text.h"
#include "ptx/text/lexer.h"

namespace cutegen::ptx {
namespace {

constexpr int64_t kMostRegisters = 1 << 20, kMostScopes = 1 << 16, kMostBytes = int64_t{1} << 32;
constexpr char kNewestMajor = '9';
constexpr int kMostDepth = 64;

std::string at_line(int line) {
  return fmt::format("ptx:{}", line);
}

class Parser {
 public:
  explicit Parser(std::string_view text) : lex_(text) {}
  Result<ParsedModule> run();

 private:
  tl::unexpected<Error> wrong(const std::string& wanted) const {
    const Token& t = lex_.peek();
    std::string got = t.kind == Token::Kind::end ? "the end of the text"
                                                 : "'" + sanitize(t.text.substr(0, 60), 80) + "'";
    return user_error(fmt::format("expected {}, found {}", wanted, got), at_line(t.line),
                      "give the PTX text as the compiler wrote it");
  }
  Result<void> expect(std::string_view s) {
    if (lex_.accept(s)) return {};
    return wrong("'" + std::string(s) + "'");
  }
  Result<std::string_view> word(const char* what) {
    if (lex_.peek().kind != Token::Kind::word) return wrong(what);
    return lex_.next().text;
  }
  Result<int64_t> integer(const char* what);
  Result<void> header();
  Result<void> top_level();
  Result<void> skip_to_semicolon();
  Result<void> skip_braces();
  Result<void> skip_list(int64_t most);
  Result<void> location();
  Result<Variable> declaration(Space space, bool is_extern);
  Result<void> array_sizes(Variable& v);
  Result<void> module_variables(Space space, bool is_extern);
  Result<void> function(bool is_entry);
  Result<void> parameters(std::vector<Variable>& into);
  Result<void> tuning(Function& f);
  Result<void> body(Function& f);
  Result<void> body_item(Function& f);
  Result<void> directive(Function& f, std::string_view name);
  Result<void> registers(Function& f);
  Result<void> local_variables(Function& f, Space space);
  Result<void> label(Function& f, std::string_view name);
  Result<void> statement(Function& f);
  Result<void> call(Statement& s);
  Result<Operand> parentheses();
  Result<Operand> operand(int depth);
  Result<Operand> address();
  Result<Operand> braces(int depth);

  Lexer lex_;
  ParsedModule module_;
  int scope_ = 0;
  int source_line_ = 0, source_file_ = 0, depth_ = 0;
};

Result<int64_t> Parser::integer(const char* what) {
  const bool negative = lex_.accept("-");
  if (lex_.peek().kind != Token::Kind::number) return wrong(what);
  auto n = parse_number(lex_.peek().text);
  if (!n || n->kind != Operand::Kind::integer) return wrong(what);
  lex_.next();
  return negative ? int64_t(-uint64_t(n->value)) : n->value;
}

Result<void> Parser::skip_to_semicolon() {
  while (!lex_.peek().is(";")) {
    if (lex_.peek().kind == Token::Kind::end) return wrong("';'");
    lex_.next();
  }
  lex_.next();
  return {};
}

Result<void> Parser::skip_braces() {
  CG_CHECK(expect("{"));
  for (int64_t open = 1; open > 0; lex_.next()) {
    const Token& t = lex_.peek();
    if (t.kind == Token::Kind::end) return wrong("'}'");
    if (t.is("{")) ++open;
    if (t.is("}")) --open;
  }
  return {};
}

Result<void> Parser::skip_list(int64_t most) {
  for (int64_t i = 0; i < most; ++i) {
    CG_CHECK(integer("a number"));
    if (!lex_.accept(",")) return {};
  }
  return {};
}

// .loc file line column [, function_name label [+ n], inlined_at file line column]
Result<void> Parser::location() {
  CG_TRY(int64_t file, integer("a file number"));
  CG_TRY(int64_t line, integer("a line number"));
  CG_CHECK(integer("a column"));
  if (source_file_ == 0) source_file_ = int(file);
  if (file == source_file_ && line > 0) source_line_ = int(line);
  if (!lex_.accept(",")) return {};
  CG_CHECK(word("function_name"));
  CG_CHECK(word("a label"));
  if (lex_.accept("+")) CG_CHECK(integer("an offset"));
  CG_CHECK(expect(","));
  CG_CHECK(word("inlined_at"));
  CG_TRY(int64_t outer, integer("a file number"));
  CG_TRY(int64_t outer_line, integer("a line number"));
  CG_CHECK(integer("a column"));
  if (outer == source_file_ && outer_line > 0) source_line_ = int(outer_line);
  return {};
}

Result<void> Parser::header() {
  if (!lex_.accept(".version")) return wrong("'.version'");
  if (lex_.peek().kind != Token::Kind::number) return wrong("a version");
  const Token version = lex_.next();
  module_.version = version.text;
  // A later major version may give known words another meaning.
  if (version.text.find('.') != 1 || version.text[0] > kNewestMajor)
    return unsupported_error("PTX version " + sanitize(version.text, 40), at_line(version.line));
  if (!lex_.accept(".target")) return wrong("'.target'");
  CG_TRY(module_.target, word("a target"));
  while (lex_.accept(",")) CG_CHECK(word("a target option"));
  if (lex_.accept(".address_size")) {
    CG_TRY(int64_t bits, integer("an address size"));
    if (bits != 64)
      return unsupported_error("PTX with 32-bit addresses", at_line(lex_.peek().line));
  }
  return {};
}

Result<ParsedModule> Parser::run() {
  CG_CHECK(header());
  while (lex_.peek().kind != Token::Kind::end) CG_CHECK(top_level());
  return std::move(module_);
}

Result<void> Parser::top_level() {
  bool is_extern = false;
  while (true) {
    if (lex_.accept(".extern")) {
      is_extern = true;
    } else if (!lex_.accept(".visible") && !lex_.accept(".weak") && !lex_.accept(".common")) {
      break;
    }
  }
  const Token t = lex_.peek();
  if (t.is(".entry") || t.is(".func")) {
    lex_.next();
    return function(t.is(".entry"));
  }
  static constexpr std::pair<std::string_view, Space> spaces[] = {
      {".global", Space::global}, {".const", Space::constant}, {".shared", Space::shared}};
  for (auto [name, space] : spaces) {
    if (!lex_.accept(name)) continue;
    return module_variables(space, is_extern);
  }
  if (lex_.accept(".loc")) return location();
  if (lex_.accept(".file")) {
    CG_CHECK(integer("a file number"));
    if (lex_.peek().kind != Token::Kind::string) return wrong("a file name");
    lex_.next();
    return lex_.accept(",") ? skip_list(2) : Result<void>{};
  }
  if (lex_.accept(".section")) {
    CG_CHECK(word("a section name"));
    return skip_braces();
  }
  if (t.is(".pragma") || t.is(".alias")) return skip_to_semicolon();
  if (t.kind == Token::Kind::word && t.text.starts_with('.')) {
    return unsupported_error("PTX directive " + sanitize(t.text, 60), at_line(t.line));
  }
  return wrong("a directive");
}

Result<void> Parser::array_sizes(Variable& v) {
  while (lex_.accept("[")) {
    v.is_array = true;
    if (lex_.accept("]")) {
      v.count = 0;
      continue;
    }
    CG_TRY(int64_t n, integer("an array size"));
    CG_CHECK(expect("]"));
    if (n < 0 || (n > 0 && v.count > kMostBytes / n / v.element)) {
      return user_error(fmt::format("array {} is larger than 4 GiB", sanitize(v.name, 60)),
                        at_line(v.line), "make it smaller");
    }
    v.count *= n;
  }
  return {};
}

Result<Variable> Parser::declaration(Space space, bool is_extern) {
  Variable v;
  v.space = space, v.is_extern = is_extern, v.line = lex_.peek().line;
  int64_t lanes = 1;
  while (lex_.peek().kind == Token::Kind::word && lex_.peek().text.starts_with('.')) {
    std::string_view d = lex_.next().text.substr(1);
    if (d == "align") {
      CG_TRY(v.align, integer("an alignment"));
      if (v.align < 1 || v.align > 1024 || (v.align & (v.align - 1))) {
        return user_error("an alignment must be a power of two up to 1024", at_line(v.line),
                          "correct it");
      }
    } else if (d == "v2" || d == "v4") {
      lanes = d[1] - '0';
    } else if (d == "ptr" || d == "global" || d == "const" || d == "shared" || d == "local" ||
               d == "param" || d == "attribute") {
      if (d == "attribute") return unsupported_error("variable attributes", at_line(v.line));
    } else if (type_bytes(d) > 0) {
      v.type = d;
    } else {
      return unsupported_error("variable type ." + sanitize(d, 60), at_line(v.line));
    }
  }
  if (v.type.empty()) return wrong("a type");
  v.element = type_bytes(v.type) * lanes;
  v.align = std::max(v.align, v.element);
  CG_TRY(v.name, word("a variable name"));
  CG_CHECK(array_sizes(v));
  return v;
}

Result<void> Parser::module_variables(Space space, bool is_extern) {
  CG_TRY(Variable v, declaration(space, is_extern));
  if (lex_.peek().is("=")) {
    lex_.next();
    const size_t begin = lex_.peek().at;
    while (!lex_.peek().is(";")) {
      if (lex_.peek().kind == Token::Kind::end) return wrong("';'");
      lex_.next();
    }
    v.initializer = lex_.text().substr(begin, lex_.peek().at - begin);
  }
  CG_CHECK(expect(";"));
  module_.by_name.emplace(v.name, module_.variables.size());
  module_.variables.push_back(v);
  return {};
}

Result<void> Parser::parameters(std::vector<Variable>& into) {
  CG_CHECK(expect("("));
  if (lex_.accept(")")) return {};
  do {
    const bool is_register = lex_.accept(".reg");
    if (!is_register && !lex_.accept(".param")) return wrong("'.param'");
    CG_TRY(Variable v, declaration(Space::param, false));
    v.is_register = is_register;
    into.push_back(v);
  } while (lex_.accept(","));
  return expect(")");
}

Result<void> Parser::tuning(Function& f) {
  while (lex_.peek().kind == Token::Kind::word) {
    const Token t = lex_.next();
    const bool required = t.is(".reqntid");
    if (required || t.is(".maxntid")) {
      f.required_block = required;
      for (int i = 0; i < 3; ++i) f.max_block[i] = 1;
      for (int i = 0; i < 3; ++i) {
        CG_TRY(f.max_block[i], integer("a block size"));
        if (!lex_.accept(",")) break;
      }
    } else if (t.is(".minnctapersm") || t.is(".maxnctapersm") || t.is(".maxnreg") ||
               t.is(".maxclusterrank") || t.is(".reqnctapercluster")) {
      CG_CHECK(skip_list(3));
    } else if (t.is(".pragma")) {
      CG_CHECK(skip_to_semicolon());
    } else if (!t.is(".noreturn") && !t.is(".explicitcluster") && !t.is(".blocksareclusters")) {
      return unsupported_error("kernel directive " + sanitize(t.text, 60), at_line(t.line));
    }
  }
  return {};
}

Result<void> Parser::function(bool is_entry) {
  Function f;
  f.is_entry = is_entry, f.line = lex_.peek().line;
  if (!is_entry && lex_.peek().is("(")) CG_CHECK(parameters(f.returns));
  CG_TRY(f.name, word("a function name"));
  if (lex_.peek().is("(")) CG_CHECK(parameters(f.params));
  CG_CHECK(tuning(f));
  if (lex_.accept(";")) return {};  // a prototype
  CG_CHECK(body(f));
  for (const auto* list : {&f.params, &f.returns}) {
    for (const Variable& v : *list) {
      if (v.is_register) f.scopes[0].registers[v.name] = {v.type, 0};
    }
  }
  if (!is_entry) module_.device_functions.emplace(f.name, module_.functions.size());
  module_.functions.push_back(std::move(f));
  return {};
}

Result<void> Parser::body(Function& f) {
  source_line_ = 0, source_file_ = 0, depth_ = 0, scope_ = 0;
  f.scopes.emplace_back();
  CG_CHECK(expect("{"));
  while (true) {
    if (lex_.accept("}")) {
      if (depth_-- == 0) return {};
      scope_ = f.scopes[size_t(scope_)].parent;
    } else if (lex_.accept("{")) {
      if (++depth_ > kMostDepth || int64_t(f.scopes.size()) > kMostScopes) {
        return user_error("blocks are nested too deep, or too many", at_line(lex_.peek().line),
                          "simplify the kernel");
      }
      f.scopes.emplace_back().parent = scope_;
      scope_ = int(f.scopes.size()) - 1;
    } else {
      CG_CHECK(body_item(f));
    }
  }
}

Result<void> Parser::body_item(Function& f) {
  const Token t = lex_.peek();
  if (t.is("@")) return statement(f);
  if (t.is(";")) {
    lex_.next();
    return {};
  }
  if (t.kind != Token::Kind::word) return wrong("an instruction");
  if (t.text.starts_with('.')) {
    lex_.next();
    return directive(f, t.text);
  }
  return statement(f);
}

Result<void> Parser::directive(Function& f, std::string_view name) {
  if (name == ".loc") return location();
  if (name == ".reg") return registers(f);
  if (name == ".pragma") return skip_to_semicolon();
  if (name == ".shared") return local_variables(f, Space::shared);
  if (name == ".local") return local_variables(f, Space::local);
  if (name == ".param") return local_variables(f, Space::param);
  if (name == ".global") return local_variables(f, Space::global);
  if (name == ".const") return local_variables(f, Space::constant);
  if (name == ".file" || name == ".section") {
    return unsupported_error("directive inside a kernel: " + std::string(name),
                             at_line(lex_.peek().line));
  }
  return unsupported_error("PTX directive " + sanitize(name, 60), at_line(lex_.peek().line));
}

Result<void> Parser::registers(Function& f) {
  CG_TRY(std::string_view type, word("a register type"));
  type.remove_prefix(1);
  if (type != "pred" && type_bytes(type) == 0) {
    return unsupported_error("register type ." + sanitize(type, 60), at_line(lex_.peek().line));
  }
  do {
    CG_TRY(std::string_view name, word("a register name"));
    RegisterRange range{type, 0};
    if (lex_.accept("<")) {
      CG_TRY(range.count, integer("a register count"));
      CG_CHECK(expect(">"));
      if (range.count < 0 || range.count > kMostRegisters) {
        return unsupported_error(
            fmt::format("{} registers of one name (at most {})", range.count, kMostRegisters),
            at_line(lex_.peek().line));
      }
      if (range.count == 0) continue;
    }
    f.scopes[size_t(scope_)].registers[name] = range;
  } while (lex_.accept(","));
  return expect(";");
}

Result<void> Parser::local_variables(Function& f, Space space) {
  CG_TRY(Variable v, declaration(space, false));
  if (lex_.accept("=")) {
    const size_t begin = lex_.peek().at;
    CG_CHECK(skip_to_semicolon());
    v.initializer = lex_.text().substr(begin, lex_.text().find(';', begin) - begin);
  } else {
    CG_CHECK(expect(";"));
  }
  f.scopes[size_t(scope_)].variables[v.name] = f.variables.size();
  f.variables.push_back(v);
  return {};
}

Result<void> Parser::label(Function& f, std::string_view name) {
  Scope& s = f.scopes[size_t(scope_)];
  if (lex_.peek().is(".branchtargets")) {
    lex_.next();
    auto& list = s.branch_targets[name];
    do {
      CG_TRY(std::string_view target, word("a label"));
      list.push_back(target);
    } while (lex_.accept(","));
    return expect(";");
  }
  if (lex_.peek().is(".callprototype") || lex_.peek().is(".calltargets"))
    return skip_to_semicolon();
  if (!s.labels.emplace(name, f.statements.size()).second) {
    return user_error("label " + sanitize(name, 60) + " is defined twice",
                      at_line(lex_.peek().line), "rename one of them");
  }
  return {};
}

Result<void> Parser::statement(Function& f) {
  Statement s;
  s.line = lex_.peek().line, s.source_line = source_line_, s.scope = scope_;
  const size_t begin = lex_.peek().at;
  if (lex_.accept("@")) {
    s.guard_negated = lex_.accept("!");
    CG_TRY(s.guard, word("a predicate"));
  }
  CG_TRY(s.opcode, word("an opcode"));
  if (lex_.peek().is(":") && s.guard.empty()) {
    lex_.next();
    return label(f, s.opcode);
  }
  if (s.opcode.starts_with("call")) {
    CG_CHECK(call(s));
  } else if (!lex_.accept(";")) {
    do {
      CG_TRY(Operand o, operand(0));
      s.operands.push_back(std::move(o));
      if (s.operands.size() > 512) return wrong("fewer operands");
    } while (lex_.accept(","));
    CG_CHECK(expect(";"));
  }
  std::string_view text = lex_.text().substr(begin, lex_.peek().at - begin);
  s.text = text.substr(0, text.find(';'));
  f.statements.push_back(std::move(s));
  return {};
}

// call [(results),] function [, (arguments)] [, prototype]: three operands.
Result<void> Parser::call(Statement& s) {
  Operand results, arguments;
  results.kind = arguments.kind = Operand::Kind::vector;
  if (lex_.peek().is("(")) {
    CG_TRY(results, parentheses());
    CG_CHECK(expect(","));
  }
  CG_TRY(Operand function, operand(1));
  while (lex_.accept(",")) {
    if (lex_.peek().is("(")) {
      CG_TRY(arguments, parentheses());
    } else {
      CG_CHECK(word("a prototype"));
    }
  }
  s.operands = {std::move(results), std::move(function), std::move(arguments)};
  return expect(";");
}

Result<Operand> Parser::parentheses() {
  Operand o;
  o.kind = Operand::Kind::vector;
  CG_CHECK(expect("("));
  if (lex_.accept(")")) return o;
  do {
    CG_TRY(Operand item, operand(1));
    o.items.push_back(std::move(item));
    if (o.items.size() > 512) return wrong("fewer arguments");
  } while (lex_.accept(","));
  CG_CHECK(expect(")"));
  return o;
}

Result<Operand> Parser::address() {
  Operand o;
  o.kind = Operand::Kind::address;
  CG_CHECK(expect("["));
  if (lex_.peek().kind == Token::Kind::word) {
    o.text = lex_.next().text, o.has_base = true;
    if (lex_.accept(",")) {  // a tensor map with its coordinates
      CG_TRY(Operand coordinates, operand(1));
      o.items.push_back(std::move(coordinates));
      CG_CHECK(expect("]"));
      return o;
    }
    if (lex_.accept("+")) {
      CG_TRY(o.value, integer("an offset"));
    } else if (lex_.peek().is("-")) {
      CG_TRY(o.value, integer("an offset"));
    }
  } else {
    CG_TRY(o.value, integer("an address"));
  }
  CG_CHECK(expect("]"));
  return o;
}

Result<Operand> Parser::braces(int depth) {
  Operand o;
  o.kind = Operand::Kind::vector;
  CG_CHECK(expect("{"));
  do {
    CG_TRY(Operand item, operand(depth + 1));
    o.items.push_back(std::move(item));
    if (o.items.size() > 512) return wrong("a shorter vector");
  } while (lex_.accept(","));
  CG_CHECK(expect("}"));
  return o;
}

Result<Operand> Parser::operand(int depth) {
  if (depth > 3) return wrong("a simpler operand");
  const Token t = lex_.peek();
  if (t.is("[")) return address();
  if (t.is("{")) return braces(depth);
  Operand o;
  if (t.is("!")) {
    lex_.next();
    CG_TRY(o.text, word("a predicate"));
    o.kind = Operand::Kind::word, o.negated = true;
    return o;
  }
  const bool negative = lex_.accept("-");
  if (lex_.peek().kind == Token::Kind::number) {
    auto n = parse_number(lex_.peek().text);
    if (!n) return wrong("a number");
    lex_.next();
    if (negative && n->kind == Operand::Kind::real) {
      n->value ^= n->is_single ? int64_t{1} << 31 : INT64_MIN;
    } else if (negative) {
      n->value = int64_t(-uint64_t(n->value));
    }
    return *n;
  }
  CG_TRY(std::string_view w, word("an operand"));
  o.kind = w == "_" ? Operand::Kind::sink : Operand::Kind::word;
  o.text = w;
  if (lex_.accept("|")) {  // p|q
    CG_TRY(Operand second, operand(depth + 1));
    Operand pair;
    pair.kind = Operand::Kind::vector;
    pair.items = {o, second};
    pair.is_single = true;  // marks a pair of destinations
    return pair;
  }
  if (lex_.accept("+")) {
    CG_TRY(o.value, integer("an offset"));
  }
  return o;
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
