// SPDX-License-Identifier: Apache-2.0
#include "ptx/text/operand_parser.h"

namespace cutegen::ptx {
namespace {

Result<Operand> address(Reader& in) {
  Operand o;
  o.kind = Operand::Kind::address;
  CG_CHECK(in.expect("["));
  if (in.lex.peek().kind == Token::Kind::word) {
    o.text = in.lex.next().text, o.has_base = true;
    if (in.lex.accept(",")) {  // a tensor map with coordinates
      CG_TRY(Operand coordinates, parse_operand(in, 1));
      o.items.push_back(std::move(coordinates));
      CG_CHECK(in.expect("]"));
      return o;
    }
    if (in.lex.accept("+")) {
      CG_TRY(o.value, in.integer("an offset"));
    } else if (in.lex.peek().is("-")) {
      CG_TRY(o.value, in.integer("an offset"));
    }
  } else {
    CG_TRY(o.value, in.integer("an address"));
  }
  CG_CHECK(in.expect("]"));
  return o;
}

Result<Operand> braces(Reader& in, int depth) {
  Operand o;
  o.kind = Operand::Kind::vector;
  CG_CHECK(in.expect("{"));
  do {
    CG_TRY(Operand item, parse_operand(in, depth + 1));
    o.items.push_back(std::move(item));
    if (o.items.size() > 512) return in.wrong("a shorter vector");
  } while (in.lex.accept(","));
  CG_CHECK(in.expect("}"));
  return o;
}

}  // namespace

Result<Operand> parse_parentheses(Reader& in) {
  Operand o;
  o.kind = Operand::Kind::vector;
  CG_CHECK(in.expect("("));
  if (in.lex.accept(")")) return o;
  do {
    CG_TRY(Operand item, parse_operand(in, 1));
    o.items.push_back(std::move(item));
    if (o.items.size() > 512) return in.wrong("fewer arguments");
  } while (in.lex.accept(","));
  CG_CHECK(in.expect(")"));
  return o;
}

Result<Operand> parse_operand(Reader& in, int depth) {
  if (depth > 3) return in.wrong("a simpler operand");
  const Token t = in.lex.peek();
  if (t.is("[")) return address(in);
  if (t.is("{")) return braces(in, depth);
  Operand o;
  if (t.is("!")) {
    in.lex.next();
    CG_TRY(o.text, in.word("a predicate"));
    o.kind = Operand::Kind::word, o.negated = true;
    return o;
  }
  const bool negative = in.lex.accept("-");
  if (in.lex.peek().kind == Token::Kind::number) {
    auto n = parse_number(in.lex.peek().text);
    if (!n) return in.wrong("a number");
    in.lex.next();
    if (negative && n->kind == Operand::Kind::real) {
      n->value ^= n->is_single ? int64_t{1} << 31 : INT64_MIN;
    } else if (negative) {
      n->value = int64_t(-uint64_t(n->value));
    }
    return *n;
  }
  CG_TRY(std::string_view w, in.word("an operand"));
  o.kind = w == "_" ? Operand::Kind::sink : Operand::Kind::word;
  o.text = w;
  if (in.lex.accept("|")) {  // p|q
    CG_TRY(Operand second, parse_operand(in, depth + 1));
    Operand pair;
    pair.kind = Operand::Kind::vector;
    pair.items = {o, second};
    pair.is_single = true;  // marks a pair of destinations
    return pair;
  }
  if (in.lex.accept("+")) {
    CG_TRY(o.value, in.integer("an offset"));
  }
  return o;
}

}  // namespace cutegen::ptx
