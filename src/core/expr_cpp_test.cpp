// SPDX-License-Identifier: Apache-2.0
#include "core/expr_cpp.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace cutegen {
namespace {

Result<std::string> any_leaf(const ExprLeaf& leaf) {
  if (leaf.kind == ExprLeaf::Kind::occupancy) return unsupported_error("no occupancy here");
  return "<" + leaf.name + (leaf.axis ? std::to_string(leaf.axis) : "") + ">";
}

std::string as_cpp(const std::string& text) {
  auto out = cpp_text(Expr::parse(text).value(), any_leaf);
  return out ? *out : out.error().message;
}

TEST(ExprCpp, WritesEveryKindOfNode) {
  EXPECT_EQ(as_cpp("ceil_div(n, 128)"), "ceil_over(<n>, INT64_C(128))");
  EXPECT_EQ(as_cpp("min(a+1, max(b, 2))"), "least((<a> + INT64_C(1)), most(<b>, INT64_C(2)))");
  EXPECT_EQ(as_cpp("-a/b%3"), "rest(over((-<a>), <b>), INT64_C(3))");
  EXPECT_EQ(as_cpp("a % 4 == 0 ? 4 : 1"),
            "(int64_t(rest(<a>, INT64_C(4)) == INT64_C(0)) != 0 ? INT64_C(4) : INT64_C(1))");
  EXPECT_EQ(as_cpp("dim(x,-1)*attr(eps)*1e-5"), "((<x-1> * <eps>) * double(1e-05))");
  EXPECT_EQ(as_cpp("gpu.sms*2"), "(<gpu.sms> * INT64_C(2))");
  EXPECT_EQ(as_cpp("2*occupancy(f)"), "no occupancy here");
}

TEST(ExprCpp, ALeafIsKnown) {
  ExprLeaf leaf;
  EXPECT_TRUE(is_leaf(Expr::parse("dim(x,1)").value(), leaf));
  EXPECT_EQ(leaf.kind, ExprLeaf::Kind::dim);
  EXPECT_EQ(leaf.axis, 1);
  EXPECT_FALSE(is_leaf(Expr::parse("n+0").value(), leaf));
  EXPECT_FALSE(is_leaf(Expr::parse("7").value(), leaf));
}

}  // namespace
}  // namespace cutegen
