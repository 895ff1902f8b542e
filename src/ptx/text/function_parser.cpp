// SPDX-License-Identifier: Apache-2.0
#include "ptx/text/function_parser.h"

#include <fmt/format.h>

#include "base/text.h"
#include "ptx/text/operand_parser.h"

namespace cutegen::ptx {
namespace {

constexpr int64_t kMostRegisters = 1 << 20, kMostScopes = 1 << 16, kMostBytes = int64_t{1} << 32;
constexpr int kMostDepth = 64;

Result<void> array_sizes(Reader& in, Variable& v) {
  while (in.lex.accept("[")) {
    v.is_array = true;
    if (in.lex.accept("]")) {
      v.count = 0;
      continue;
    }
    CG_TRY(int64_t n, in.integer("an array size"));
    CG_CHECK(in.expect("]"));
    if (n < 0 || (n > 0 && v.count > kMostBytes / n / v.element)) {
      return user_error(fmt::format("array {} is larger than 4 GiB", sanitize(v.name, 60)),
                        at_line(v.line), "make it smaller");
    }
    v.count *= n;
  }
  return {};
}

Result<void> parameters(Reader& in, std::vector<Variable>& into) {
  CG_CHECK(in.expect("("));
  if (in.lex.accept(")")) return {};
  do {
    const bool is_register = in.lex.accept(".reg");
    if (!is_register && !in.lex.accept(".param")) return in.wrong("'.param'");
    CG_TRY(Variable v, parse_variable(in, Space::param, false));
    v.is_register = is_register;
    into.push_back(v);
  } while (in.lex.accept(","));
  return in.expect(")");
}

// Reads one to three numbers; the missing ones are 1.
Result<void> triple(Reader& in, int64_t (&into)[3], const char* what) {
  for (int64_t& n : into) n = 1;
  for (int64_t& n : into) {
    CG_TRY(n, in.integer(what));
    if (!in.lex.accept(",")) break;
  }
  return {};
}

Result<void> tuning(Reader& in, Function& f) {
  while (in.lex.peek().kind == Token::Kind::word) {
    const Token t = in.lex.next();
    const bool required = t.is(".reqntid");
    if (required || t.is(".maxntid")) {
      f.required_block = required;
      CG_CHECK(triple(in, f.max_block, "a block size"));
    } else if (t.is(".reqnctapercluster")) {
      CG_CHECK(triple(in, f.cluster, "a cluster size"));
    } else if (t.is(".maxnreg")) {
      CG_TRY(f.most_registers, in.integer("a number of registers"));
    } else if (t.is(".minnctapersm")) {
      CG_TRY(f.least_ctas, in.integer("a number of CTAs"));
    } else if (t.is(".maxnctapersm") || t.is(".maxclusterrank")) {
      CG_CHECK(in.skip_list(3));
    } else if (t.is(".pragma")) {
      CG_CHECK(in.skip_to_semicolon());
    } else if (!t.is(".noreturn") && !t.is(".explicitcluster") && !t.is(".blocksareclusters")) {
      return unsupported_error("kernel directive " + sanitize(t.text, 60), at_line(t.line));
    }
  }
  return {};
}

}  // namespace

// .loc file line column [, function_name label [+ n], inlined_at file line column]
Result<void> SourceLines::location(Reader& in) {
  CG_TRY(int64_t file, in.integer("a file number"));
  CG_TRY(int64_t inner, in.integer("a line number"));
  CG_TRY(int64_t inner_column, in.integer("a column"));
  if (file_ == 0) file_ = int(file);
  if (file == file_ && inner > 0) line = int(inner), column = int(inner_column);
  if (!in.lex.accept(",")) return {};
  CG_CHECK(in.word("function_name"));
  CG_CHECK(in.word("a label"));
  if (in.lex.accept("+")) CG_CHECK(in.integer("an offset"));
  CG_CHECK(in.expect(","));
  CG_CHECK(in.word("inlined_at"));
  CG_TRY(int64_t outer, in.integer("a file number"));
  CG_TRY(int64_t outer_line, in.integer("a line number"));
  CG_TRY(int64_t outer_column, in.integer("a column"));
  if (outer == file_ && outer_line > 0) line = int(outer_line), column = int(outer_column);
  return {};
}

Result<Variable> parse_variable(Reader& in, Space space, bool is_extern) {
  Variable v;
  v.space = space, v.is_extern = is_extern, v.line = in.lex.peek().line;
  int64_t lanes = 1;
  while (in.lex.peek().kind == Token::Kind::word && in.lex.peek().text.starts_with('.')) {
    std::string_view d = in.lex.next().text.substr(1);
    if (d == "align") {
      CG_TRY(v.align, in.integer("an alignment"));
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
  if (v.type.empty()) return in.wrong("a type");
  v.element = type_bytes(v.type) * lanes;
  v.align = std::max(v.align, v.element);
  CG_TRY(v.name, in.word("a variable name"));
  CG_CHECK(array_sizes(in, v));
  return v;
}

Result<Function> FunctionParser::run(bool is_entry) {
  f_.is_entry = is_entry, f_.line = in_.lex.peek().line;
  if (!is_entry && in_.lex.peek().is("(")) CG_CHECK(parameters(in_, f_.returns));
  CG_TRY(f_.name, in_.word("a function name"));
  if (in_.lex.peek().is("(")) CG_CHECK(parameters(in_, f_.params));
  CG_CHECK(tuning(in_, f_));
  if (in_.lex.accept(";")) return std::move(f_);  // a prototype
  CG_CHECK(body());
  for (const auto* list : {&f_.params, &f_.returns}) {
    for (const Variable& v : *list) {
      if (v.is_register) f_.scopes[0].registers[v.name] = {.type = v.type, .count = 0};
    }
  }
  return std::move(f_);
}

Result<void> FunctionParser::body() {
  f_.scopes.emplace_back();
  CG_CHECK(in_.expect("{"));
  while (true) {
    if (in_.lex.accept("}")) {
      if (depth_-- == 0) return {};
      scope_ = f_.scopes[size_t(scope_)].parent;
    } else if (in_.lex.accept("{")) {
      if (++depth_ > kMostDepth || int64_t(f_.scopes.size()) > kMostScopes) {
        return user_error("blocks are nested too deep, or too many", in_.here(),
                          "simplify the kernel");
      }
      f_.scopes.emplace_back().parent = scope_;
      scope_ = int(f_.scopes.size()) - 1;
    } else {
      CG_CHECK(body_item());
    }
  }
}

Result<void> FunctionParser::body_item() {
  const Token t = in_.lex.peek();
  if (t.is("@")) return statement();
  if (t.is(";")) {
    in_.lex.next();
    return {};
  }
  if (t.kind != Token::Kind::word) return in_.wrong("an instruction");
  if (t.text.starts_with('.')) {
    in_.lex.next();
    return directive(t.text);
  }
  return statement();
}

Result<void> FunctionParser::directive(std::string_view name) {
  if (name == ".loc") return lines_.location(in_);
  if (name == ".reg") {
    CG_TRY(std::string_view type, in_.word("a register type"));
    return registers(type.substr(1));
  }
  if (name.starts_with(".reg.")) return registers(name.substr(5));  // without a space
  if (name == ".pragma") return in_.skip_to_semicolon();
  if (name == ".shared") return local_variables(Space::shared);
  if (name == ".local") return local_variables(Space::local);
  if (name == ".param") return local_variables(Space::param);
  if (name == ".global") return local_variables(Space::global);
  if (name == ".const") return local_variables(Space::constant);
  if (name == ".file" || name == ".section") {
    return unsupported_error("directive inside a kernel: " + std::string(name), in_.here());
  }
  return unsupported_error("PTX directive " + sanitize(name, 60), in_.here());
}

Result<void> FunctionParser::registers(std::string_view type) {
  if (type != "pred" && type_bytes(type) == 0) {
    return unsupported_error("register type ." + sanitize(type, 60), in_.here());
  }
  do {
    CG_TRY(std::string_view name, in_.word("a register name"));
    RegisterRange range{.type = type, .count = 0};
    if (in_.lex.accept("<")) {
      CG_TRY(range.count, in_.integer("a register count"));
      CG_CHECK(in_.expect(">"));
      if (range.count < 0 || range.count > kMostRegisters) {
        return unsupported_error(
            fmt::format("{} registers of one name (at most {})", range.count, kMostRegisters),
            in_.here());
      }
      if (range.count == 0) continue;
    }
    f_.scopes[size_t(scope_)].registers[name] = range;
  } while (in_.lex.accept(","));
  return in_.expect(";");
}

Result<void> FunctionParser::local_variables(Space space) {
  CG_TRY(Variable v, parse_variable(in_, space, false));
  if (in_.lex.accept("=")) {
    const size_t begin = in_.lex.peek().at;
    CG_CHECK(in_.skip_to_semicolon());
    v.initializer = in_.lex.text().substr(begin, in_.lex.text().find(';', begin) - begin);
  } else {
    CG_CHECK(in_.expect(";"));
  }
  f_.scopes[size_t(scope_)].variables[v.name] = f_.variables.size();
  f_.variables.push_back(v);
  return {};
}

Result<void> FunctionParser::label(std::string_view name) {
  Scope& s = f_.scopes[size_t(scope_)];
  if (in_.lex.peek().is(".branchtargets")) {
    in_.lex.next();
    auto& list = s.branch_targets[name];
    do {
      CG_TRY(std::string_view target, in_.word("a label"));
      list.push_back(target);
    } while (in_.lex.accept(","));
    return in_.expect(";");
  }
  if (in_.lex.peek().is(".callprototype") || in_.lex.peek().is(".calltargets"))
    return in_.skip_to_semicolon();
  if (!s.labels.emplace(name, f_.statements.size()).second) {
    return user_error("label " + sanitize(name, 60) + " is defined twice", in_.here(),
                      "rename one of them");
  }
  return {};
}

Result<void> FunctionParser::statement() {
  Statement s;
  s.line = in_.lex.peek().line, s.scope = scope_;
  s.source_line = lines_.line, s.source_column = lines_.column;
  const size_t begin = in_.lex.peek().at;
  if (in_.lex.accept("@")) {
    s.guard_negated = in_.lex.accept("!");
    CG_TRY(s.guard, in_.word("a predicate"));
  }
  CG_TRY(s.opcode, in_.word("an opcode"));
  if (in_.lex.peek().is(":") && s.guard.empty()) {
    in_.lex.next();
    return label(s.opcode);
  }
  if (s.opcode.starts_with("call")) {
    CG_CHECK(call(s));
  } else if (!in_.lex.accept(";")) {
    do {
      CG_TRY(Operand o, parse_operand(in_, 0));
      s.operands.push_back(std::move(o));
      if (s.operands.size() > 512) return in_.wrong("fewer operands");
    } while (in_.lex.accept(","));
    CG_CHECK(in_.expect(";"));
  }
  std::string_view text = in_.lex.text().substr(begin, in_.lex.peek().at - begin);
  s.text = text.substr(0, text.find(';'));
  f_.statements.push_back(std::move(s));
  return {};
}

// call [(results),] function [, (arguments)] [, prototype]: three operands.
Result<void> FunctionParser::call(Statement& s) {
  Operand results, arguments;
  results.kind = arguments.kind = Operand::Kind::vector;
  if (in_.lex.peek().is("(")) {
    CG_TRY(results, parse_parentheses(in_));
    CG_CHECK(in_.expect(","));
  }
  CG_TRY(Operand function, parse_operand(in_, 1));
  while (in_.lex.accept(",")) {
    if (in_.lex.peek().is("(")) {
      CG_TRY(arguments, parse_parentheses(in_));
    } else {
      CG_CHECK(in_.word("a prototype"));
    }
  }
  s.operands = {std::move(results), std::move(function), std::move(arguments)};
  return in_.expect(";");
}

}  // namespace cutegen::ptx
