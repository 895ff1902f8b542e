// SPDX-License-Identifier: Apache-2.0
#include "core/expr.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <limits>
#include <map>
#include <optional>

namespace cutegen {
namespace {

// x is [7, 9]; M = 7, K = 9, zero = 0; attr eps = 0.5, n = 3.
class TestScope final : public Scope {
 public:
  Result<Number> symbol(const std::string& n) const override {
    static const std::map<std::string, int64_t> table{
        {"M", 7}, {"K", 9}, {"zero", 0}, {"big", INT64_MAX}, {"gpu.sms", 132}};
    auto it = table.find(n);
    if (it == table.end()) return user_error("unknown symbol '" + n + "'");
    return Number(it->second);
  }
  Result<int64_t> dim(const std::string& t, int64_t axis) const override {
    if (t != "x" && t != "xs.0") return user_error("unknown tensor '" + t + "'");
    return axis == 0 || axis == -2 ? 7 : 9;
  }
  Result<int64_t> size(const std::string&) const override { return 63; }
  Result<int64_t> stride(const std::string&, int64_t axis) const override {
    return axis == 0 ? 9 : 1;
  }
  Result<Number> attribute(const std::string& n) const override {
    return n == "act.eps" ? Number(0.5) : Number(int64_t{3});
  }
  Result<Number> argument(const std::string&) const override { return Number(2.25); }
  Result<int64_t> module_constant(const std::string&) const override { return 49152; }
  Result<int64_t> occupancy(const std::string&) const override { return 2; }
};

Result<Number> value(const std::string& text) {
  CG_TRY(Expr e, Expr::parse(text));
  return e.evaluate(TestScope());
}

int64_t integer(const std::string& text) {
  auto v = value(text);
  if (!v) ADD_FAILURE() << text << ": " << v.error().text();
  return v ? std::get<int64_t>(*v) : -999;
}

std::string error(const std::string& text) {
  auto v = value(text);
  return v ? "no error" : v.error().text();
}

TEST(Expr, PrecedenceAndAssociativity) {
  EXPECT_EQ(integer("1 + 2 * 3"), 7);
  EXPECT_EQ(integer("10 - 3 - 2"), 5);
  EXPECT_EQ(integer("100 / 7 % 5"), 4);
  EXPECT_EQ(integer("-7 / 2"), -3);
  EXPECT_EQ(integer("-7 % 3"), -1);
  EXPECT_EQ(integer("--3"), 3);
  EXPECT_EQ(integer("1 < 2 == 1"), 1);
  EXPECT_EQ(integer("0 ? 1 : 0 ? 2 : 3"), 3);
  EXPECT_EQ(integer("M > 64 ? 1 : (2 + 3) * 4"), 20);
}

TEST(Expr, FunctionsAndNames) {
  EXPECT_EQ(integer("ceil_div(M, 4)"), 2);
  EXPECT_EQ(integer("ceil_div(8, 4)"), 2);
  EXPECT_EQ(integer("ceil_div(0, 4)"), 0);
  EXPECT_EQ(integer("ceil_div(-7, 4)"), -1);
  EXPECT_EQ(integer("min(M, K) + max(M, K)"), 16);
  EXPECT_EQ(integer("dim(x,0) * stride(x, 0) + size(x) + dim(xs.0, -1)"), 7 * 9 + 63 + 9);
  EXPECT_EQ(integer("gpu.sms * occupancy(gemm)"), 264);
  EXPECT_EQ(integer("k(cg_smem)"), 49152);
}

TEST(Expr, FloatingPoint) {
  EXPECT_EQ(std::get<double>(*value("attr(act.eps) * 2")), 1.0);
  EXPECT_EQ(std::get<double>(*value("arg(alpha) - 1e-1 * 0")), 2.25);
  EXPECT_EQ(std::get<double>(*value("1.5e2")), 150.0);
  EXPECT_EQ(integer("attr(act.eps) < 1"), 1);
  EXPECT_EQ(std::get<int64_t>(*value("attr(n)")), 3);
  auto e = Expr::parse("attr(act.eps) * 4").value().integer(TestScope());
  ASSERT_FALSE(e);
  EXPECT_NE(e.error().text().find("an integer is needed"), std::string::npos);
}

TEST(Expr, OnlyTheTakenBranchIsEvaluated) {
  EXPECT_EQ(integer("zero == 0 ? 5 : 1 / zero"), 5);
  EXPECT_NE(error("zero != 0 ? 5 : 1 / zero").find("division by zero"), std::string::npos);
}

TEST(Expr, ArithmeticErrors) {
  EXPECT_NE(error("big + 1").find("integer overflow in 'big + 1' at column 5"), std::string::npos);
  EXPECT_NE(error("0 - big - 2").find("overflow"), std::string::npos);
  EXPECT_NE(error("big * 2").find("overflow"), std::string::npos);
  EXPECT_NE(error("-(0 - big - 1)").find("overflow"), std::string::npos);
  EXPECT_NE(error("(0 - big - 1) / -1").find("overflow"), std::string::npos);
  EXPECT_NE(error("(0 - big - 1) % -1").find("overflow"), std::string::npos);
  EXPECT_NE(error("M % zero").find("division by zero"), std::string::npos);
  EXPECT_NE(error("1.0 / zero").find("division by zero"), std::string::npos);
  EXPECT_NE(error("1e300 * 1e300").find("floating-point overflow"), std::string::npos);
  EXPECT_NE(error("5 % 1.5").find("needs integers"), std::string::npos);
  EXPECT_NE(error("ceil_div(5, 0)").find("must be positive"), std::string::npos);
  EXPECT_NE(error("ceil_div(5, 0 - 2)").find("must be positive"), std::string::npos);
  EXPECT_NE(error("ceil_div(5.0, 2)").find("needs integers"), std::string::npos);
}

TEST(Expr, SyntaxErrorsNameTheColumn) {
  const std::map<std::string, std::string> cases{
      {"", "empty expression"},
      {"  ", "empty expression"},
      {"1 +", "ends too early at column 4"},
      {"(1 + 2", "expected ')' at column 7"},
      {"1 2", "unexpected '2' at column 3"},
      {"M $ 2", "unexpected character '$' at column 3"},
      {"a && b", "expressions have no logical operators at column 3"},
      {"!a", "no logical operators"},
      {"12abc", "malformed number at column 1"},
      {"1.", "malformed number"},
      {"1e", "malformed number"},
      {"99999999999999999999", "does not fit"},
      {"1e999", "does not fit"},
      {"dim(x)", "expected ',' at column 6"},
      {"dim(x, y)", "the axis must be an integer at column 8"},
      {"dim(3, 0)", "expected a name"},
      {"min(1)", "expected ','"},
      {"ceil_dv(1, 2)", "did you mean 'ceil_div'?"},
      {"min", "'min' is a function"},
      {"gpu.smx", "unknown name 'gpu.smx'"},
      {"rng.seed", "reserved for a later version"},
      {"1 ? 2", "expected ':'"},
      {"\x01", "unexpected byte 0x01"},
      {"\xff\xff", "unexpected byte 0xff"}};
  for (const auto& [text, message] : cases)
    EXPECT_NE(error(text).find(message), std::string::npos) << text << " -> " << error(text);
}

TEST(Expr, IsBounded) {
  EXPECT_NE(error(std::string(5000, '1')).find("limit is 4096"), std::string::npos);
  EXPECT_NE(error(std::string(100, '(') + "1" + std::string(100, ')')).find("levels of nesting"),
            std::string::npos);
  EXPECT_NE(error(std::string(1000, '-') + "1").find("levels of nesting"), std::string::npos);
  std::string chain = "1";
  for (int i = 0; i < 200; ++i) chain += "+1";
  EXPECT_EQ(integer(chain), 201);
  for (int i = 0; i < 200; ++i) chain += "+1";
  EXPECT_NE(error(chain).find("too many operations"), std::string::npos);
  std::string ternary = "1";
  for (int i = 0; i < 100; ++i) ternary = "0?0:" + ternary;
  EXPECT_NE(error(ternary).find("levels of nesting"), std::string::npos);
}

TEST(Expr, MentionsEachNameOnce) {
  Expr e =
      Expr::parse("M + M*dim(x,0) + attr(eps) + arg(p) + k(s) + occupancy(g) + gpu.sms").value();
  EXPECT_EQ(e.mentions(), (std::vector<std::string>{"M", "tensor:x", "attr:eps", "arg:p", "k:s",
                                                    "occupancy:g", "gpu.sms"}));
}

TEST(Expr, JsonKeepsWhatWasWritten) {
  for (const Json& j : {Json(7), Json(-7), Json(0.5), Json("M+1"), Json("M + 1"), Json("007")})
    EXPECT_EQ(Expr::from_json(j, "w").value().json(), j) << j;
  EXPECT_EQ(Expr::from_json("7", "w").value().json(), Json(7));
  EXPECT_EQ(Expr::from_json(uint64_t{1} << 63, "w").value().json(), Json(9223372036854775808.0));
  EXPECT_EQ(Expr::from_json("M +", "plan.json#/grid").error().where, "plan.json#/grid");
  EXPECT_EQ(Expr::from_json(Json::array(), "w").error().kind, ErrorKind::user);
}

// A random expression and its value in wide arithmetic, independent of the code under test.
struct Tree {
  std::string text;
  int level;                       // precedence of the outermost operator
  std::optional<__int128> result;  // nullopt: evaluation must fail
};

std::optional<__int128> in_range(__int128 v) {
  if (v < INT64_MIN || v > INT64_MAX) return std::nullopt;
  return v;
}

std::optional<__int128> apply(const std::string& op, __int128 a, __int128 b) {
  if (op == "+") return in_range(a + b);
  if (op == "-") return in_range(a - b);
  if (op == "*") return in_range(a * b);
  if (op == "<") return a < b;
  if (op == "<=") return a <= b;
  if (op == ">") return a > b;
  if (op == ">=") return a >= b;
  if (op == "==") return a == b;
  if (op == "!=") return a != b;
  if (b == 0) return std::nullopt;
  return op == "/" ? in_range(a / b) : a % b;
}

std::string wrapped(const Tree& t, bool parentheses) {
  return parentheses ? "(" + t.text + ")" : t.text;
}

Tree leaf() {
  if (*rc::gen::inRange(0, 4) == 0) return {"M", 9, 7};
  int64_t v = *rc::gen::oneOf(rc::gen::inRange<int64_t>(0, 20),
                              rc::gen::element<int64_t>(INT64_MAX, INT64_MAX / 2, 4294967296));
  return {std::to_string(v), 9, v};
}

Tree tree(int depth) {
  if (depth == 0 || *rc::gen::inRange(0, 5) == 0) return leaf();
  if (*rc::gen::inRange(0, 6) == 0) {
    Tree c = tree(depth - 1), a = tree(depth - 1), b = tree(depth - 1);
    std::optional<__int128> r = !c.result ? c.result : *c.result != 0 ? a.result : b.result;
    return {wrapped(c, c.level == 0) + " ? " + a.text + " : " + b.text, 0, r};
  }
  static const std::map<std::string, int> ops{{"==", 1}, {"!=", 1}, {"<", 2}, {"<=", 2},
                                              {">", 2},  {">=", 2}, {"+", 3}, {"-", 3},
                                              {"*", 4},  {"/", 4},  {"%", 4}};
  auto it = std::next(ops.begin(), *rc::gen::inRange<int>(0, int(ops.size())));
  Tree a = tree(depth - 1), b = tree(depth - 1);
  std::optional<__int128> r;
  if (a.result && b.result) r = apply(it->first, *a.result, *b.result);
  const char* space = *rc::gen::element("", " ");
  // Add only the parentheses that the grammar needs.
  return {wrapped(a, a.level < it->second) + space + it->first + space +
              wrapped(b, b.level <= it->second),
          it->second, r};
}

TEST(Expr, PropertyAgreesWithWideArithmetic) {
  bool ok = rc::check([] {
    Tree t = tree(5);
    RC_PRE(t.text.size() < 4000);
    auto v = value(t.text);
    RC_ASSERT(v.has_value() == t.result.has_value());
    if (v) RC_ASSERT(std::get<int64_t>(*v) == int64_t(*t.result));
  });
  EXPECT_TRUE(ok);
}

TEST(Expr, PropertyNeverCrashesOnNoise) {
  bool ok = rc::check([] {
    auto alphabet = rc::gen::elementOf(std::string("MKx0127.()+-*/%?:<>=!, dimceil_v&\x80"));
    auto parsed = Expr::parse(*rc::gen::container<std::string>(alphabet));
    if (!parsed) {
      RC_ASSERT(parsed.error().kind == ErrorKind::user);
      return;
    }
    Json json = parsed->json();
    RC_ASSERT(Expr::from_json(json, "w").value().json() == json);
    (void)parsed->evaluate(TestScope());
  });
  EXPECT_TRUE(ok);
}

}  // namespace
}  // namespace cutegen
