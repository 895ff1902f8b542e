// SPDX-License-Identifier: Apache-2.0
// Lexer and recursive descent parser of the expression language.
#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <utility>

#include "core/expr_node.h"

namespace cutegen {
namespace {

using ExprNode = Expr::Node;
using NodePtr = std::shared_ptr<const ExprNode>;
using Kind = ExprNode::Kind;

struct Token {
  enum class Type { end, integer, real, name, op } type = Type::end;
  std::string text;  // operator or name, as written
  int64_t value = 0;
  double real = 0;
  size_t offset = 0;
};

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}
bool is_name_start(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}
bool is_name_char(char c) {
  return is_name_start(c) || is_digit(c);
}

// Errors name the column of the one-line expression.
tl::unexpected<Error> at(size_t offset, std::string message, std::string remedy = {}) {
  return user_error(fmt::format("{} at column {}", message, offset + 1), {}, std::move(remedy));
}

class Lexer {
 public:
  explicit Lexer(const std::string& text) : text_(text) {}

  Result<Token> next() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\t')) ++at_;
    Token token;
    token.offset = at_;
    if (at_ == text_.size()) return token;
    char c = text_[at_];
    if (is_digit(c)) return number(token);
    if (is_name_start(c)) return name(token);
    return op(token);
  }

 private:
  Result<Token> number(Token token) {
    size_t begin = at_;
    bool real = false;
    digits();
    if (peek() == '.' && at_ + 1 < text_.size() && is_digit(text_[at_ + 1])) {
      real = true;
      ++at_;
      digits();
    }
    if (peek() == 'e' || peek() == 'E') {
      real = true;
      ++at_;
      if (peek() == '+' || peek() == '-') ++at_;
      if (!is_digit(peek())) return at(begin, "malformed number");
      digits();
    }
    if (is_name_char(peek()) || peek() == '.')
      return at(begin, "malformed number", "write integers in decimal, names with a letter first");
    token.text = text_.substr(begin, at_ - begin);
    const char* first = token.text.data();
    const char* last = first + token.text.size();
    token.type = real ? Token::Type::real : Token::Type::integer;
    auto error = real ? std::from_chars(first, last, token.real).ec
                      : std::from_chars(first, last, token.value).ec;
    if (error != std::errc()) return at(begin, "number '" + token.text + "' does not fit");
    return token;
  }

  // Dotted names ("xs.0", "act.negative_slope", "gpu.sms") are one token.
  Result<Token> name(Token token) {
    size_t begin = at_;
    while (at_ < text_.size() &&
           (is_name_char(text_[at_]) ||
            (text_[at_] == '.' && at_ + 1 < text_.size() && is_name_char(text_[at_ + 1]))))
      ++at_;
    token.type = Token::Type::name;
    token.text = text_.substr(begin, at_ - begin);
    return token;
  }

  Result<Token> op(Token token) {
    static constexpr std::string_view two[] = {"<=", ">=", "==", "!="};
    static constexpr std::string_view one = "+-*/%<>?:(),";
    token.type = Token::Type::op;
    std::string_view rest = std::string_view(text_).substr(at_);
    for (std::string_view t : two)
      if (rest.starts_with(t)) {
        at_ += 2;
        token.text = t;
        return token;
      }
    char c = rest[0];
    if (one.find(c) != std::string_view::npos) {
      ++at_;
      token.text = c;
      return token;
    }
    if (rest.starts_with("&&") || rest.starts_with("||") || c == '!')
      return at(at_, "expressions have no logical operators",
                "use a ? b : c, or one entry of 'requires' for each condition");
    bool printable = c > 0x20 && c < 0x7f;
    return at(at_, printable ? fmt::format("unexpected character '{}'", c)
                             : fmt::format("unexpected byte 0x{:02x}", uint8_t(c)));
  }

  void digits() {
    while (is_digit(peek())) ++at_;
  }
  char peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }

  const std::string& text_;
  size_t at_ = 0;
};

struct Function {
  Kind kind;
  const char* signature;
};

const std::map<std::string, Function>& functions() {
  static const std::map<std::string, Function> table{
      {"ceil_div", {.kind = Kind::ceil_div, .signature = "ceil_div(a, b)"}},
      {"min", {.kind = Kind::min, .signature = "min(a, b)"}},
      {"max", {.kind = Kind::max, .signature = "max(a, b)"}},
      {"dim", {.kind = Kind::dim, .signature = "dim(tensor, axis)"}},
      {"stride", {.kind = Kind::stride, .signature = "stride(tensor, axis)"}},
      {"size", {.kind = Kind::size, .signature = "size(tensor)"}},
      {"attr", {.kind = Kind::attribute, .signature = "attr(name)"}},
      {"arg", {.kind = Kind::argument, .signature = "arg(name)"}},
      {"k", {.kind = Kind::constant, .signature = "k(name)"}},
      {"occupancy", {.kind = Kind::occupancy, .signature = "occupancy(kernel)"}}};
  return table;
}

std::string reserved_names() {
  std::vector<std::string> names;
  for (const auto& [name, function] : functions()) names.push_back(name);
  names.emplace_back("gpu");
  return fmt::format("{}", fmt::join(names, ", "));
}

int precedence(const Token& token) {
  if (token.type != Token::Type::op) return 0;
  static const std::map<std::string, int> table{{"==", 1}, {"!=", 1}, {"<", 2}, {"<=", 2},
                                                {">", 2},  {">=", 2}, {"+", 3}, {"-", 3},
                                                {"*", 4},  {"/", 4},  {"%", 4}};
  auto it = table.find(token.text);
  return it == table.end() ? 0 : it->second;
}

class Parser {
 public:
  explicit Parser(const std::string& text) : lexer_(text) {}

  Result<NodePtr> run() {
    CG_CHECK(advance());
    CG_TRY(NodePtr node, conditional());
    if (token_.type != Token::Type::end)
      return at(token_.offset, "unexpected '" + token_.text + "'");
    return node;
  }

 private:
  Result<void> advance() {
    CG_TRY(token_, lexer_.next());
    return {};
  }

  bool is_op(const char* text) const {
    return token_.type == Token::Type::op && token_.text == text;
  }

  Result<void> expect(const char* text) {
    if (!is_op(text))
      return at(token_.offset, fmt::format("expected '{}'", text),
                token_.type == Token::Type::end ? "the expression ends too early" : "");
    return advance();
  }

  // Counts one level of nesting during its lifetime.
  struct Level {
    int& depth;
    ~Level() { --depth; }
  };
  Result<void> check_nesting() {
    if (nesting_ > expr_limits::kMaxNesting)
      return at(token_.offset,
                fmt::format("more than {} levels of nesting", expr_limits::kMaxNesting));
    return {};
  }

  Result<NodePtr> finish(ExprNode node) {
    for (const auto& child : node.children) node.depth = std::max(node.depth, child->depth + 1);
    if (node.depth > expr_limits::kMaxTreeDepth)
      return at(node.offset, "too many operations in one expression", "name parts in 'symbols'");
    return std::make_shared<const ExprNode>(std::move(node));
  }

  Result<NodePtr> conditional() {
    Level level{++nesting_};
    CG_CHECK(check_nesting());
    size_t offset = token_.offset;
    CG_TRY(NodePtr condition, binary(1));
    if (!is_op("?")) return condition;
    CG_CHECK(advance());
    CG_TRY(NodePtr then, conditional());
    CG_CHECK(expect(":"));
    CG_TRY(NodePtr otherwise, conditional());
    return finish(
        {.kind = Kind::conditional, .children = {condition, then, otherwise}, .offset = offset});
  }

  Result<NodePtr> binary(int least) {
    CG_TRY(NodePtr left, unary());
    for (int p; (p = precedence(token_)) >= least;) {
      ExprNode node{.kind = Kind::binary, .name = token_.text, .offset = token_.offset};
      CG_CHECK(advance());
      CG_TRY(NodePtr right, binary(p + 1));
      node.children = {left, right};
      CG_TRY(left, finish(std::move(node)));
    }
    return left;
  }

  Result<NodePtr> unary() {
    if (!is_op("-")) return primary();
    Level level{++nesting_};
    CG_CHECK(check_nesting());
    ExprNode node{.kind = Kind::negate, .offset = token_.offset};
    CG_CHECK(advance());
    CG_TRY(NodePtr operand, unary());
    node.children = {operand};
    return finish(std::move(node));
  }

  Result<NodePtr> primary() {
    Token token = token_;
    if (token.type == Token::Type::end) return at(token.offset, "the expression ends too early");
    if (token.type == Token::Type::op && token.text != "(")
      return at(token.offset, "unexpected '" + token.text + "'");
    CG_CHECK(advance());
    if (token.type == Token::Type::op) {
      CG_TRY(NodePtr inner, conditional());
      CG_CHECK(expect(")"));
      return inner;
    }
    if (token.type == Token::Type::integer)
      return finish({.kind = Kind::integer, .value = token.value, .offset = token.offset});
    if (token.type == Token::Type::real)
      return finish({.kind = Kind::real, .real = token.real, .offset = token.offset});
    return is_op("(") ? call(token) : symbol(token);
  }

  Result<NodePtr> symbol(const Token& token) {
    if (functions().contains(token.text))
      return at(token.offset, fmt::format("'{}' is a function", token.text),
                fmt::format("write {}; a symbol needs another name, because {} are reserved",
                            functions().at(token.text).signature, reserved_names()));
    if (token.text.starts_with("rng."))
      return at(token.offset, "'" + token.text + "' is reserved for a later version");
    if (token.text.find('.') != std::string::npos && token.text != "gpu.sms")
      return at(token.offset, "unknown name '" + token.text + "'",
                "read tensors with dim, size and stride, attributes with attr; of the device only "
                "gpu.sms is known");
    return finish({.kind = Kind::symbol, .name = token.text, .offset = token.offset});
  }

  Result<NodePtr> call(const Token& token) {
    auto it = functions().find(token.text);
    if (it == functions().end()) return unknown_function(token);
    ExprNode node{.kind = it->second.kind, .offset = token.offset};
    auto wrong = [&](const char* what) {
      return at(token_.offset, std::string("expected ") + what,
                std::string("write ") + it->second.signature);
    };
    CG_CHECK(advance());  // the parenthesis
    if (node.kind == Kind::ceil_div || node.kind == Kind::min || node.kind == Kind::max) {
      CG_TRY(NodePtr a, conditional());
      if (!is_op(",")) return wrong("','");
      CG_CHECK(advance());
      CG_TRY(NodePtr b, conditional());
      node.children = {a, b};
    } else {
      if (token_.type != Token::Type::name) return wrong("a name");
      node.name = token_.text;
      CG_CHECK(advance());
      if (node.kind == Kind::dim || node.kind == Kind::stride) {
        if (!is_op(",")) return wrong("','");
        CG_CHECK(advance());
        CG_CHECK(axis(node, it->second.signature));
      }
    }
    if (!is_op(")")) return wrong("')'");
    CG_CHECK(advance());
    return finish(std::move(node));
  }

  // Axes must be literals, so that check_plan() can check them without the values of symbols.
  // Negative axes count from the end.
  Result<void> axis(ExprNode& node, const char* signature) {
    bool negative = is_op("-");
    if (negative) CG_CHECK(advance());
    if (token_.type != Token::Type::integer)
      return at(token_.offset, "the axis must be an integer",
                std::string("write ") + signature + " with a literal axis");
    node.value = negative ? -token_.value : token_.value;
    return advance();
  }

  static tl::unexpected<Error> unknown_function(const Token& token) {
    std::vector<std::string> names;
    for (const auto& [name, function] : functions()) names.push_back(name);
    auto near = nearest(token.text, names);
    return at(token.offset, "unknown function '" + token.text + "'",
              near ? "did you mean '" + *near + "'?"
                   : "ceil_div, min, max, dim, size, stride, attr, arg, k and occupancy exist");
  }

  Lexer lexer_;
  Token token_;
  int nesting_ = 0;
};

}  // namespace

Result<NodePtr> parse_expression(const std::string& text) {
  if (text.size() > expr_limits::kMaxText)
    return user_error(
        fmt::format("expression of {} bytes; the limit is {}", text.size(), expr_limits::kMaxText));
  if (text.find_first_not_of(" \t") == std::string::npos) return user_error("empty expression");
  return Parser(text).run();
}

}  // namespace cutegen
