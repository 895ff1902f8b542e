// SPDX-License-Identifier: Apache-2.0
#include "recipes/fuse/ties.h"

#include <gmock/gmock.h>

#include "recipes/graph/names.h"
#include "recipes/testing/test_tasks.h"

namespace cutegen::recipes {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Pair;

Attempt fuse_region(const std::string& name, const EqualSizes& equal = {}) {
  const Task task = golden_task(name);
  auto source = decompose(task.graph, task);
  if (!source) throw std::runtime_error(source.error().text());
  Region region{.source = *source,
                .names = short_names(task),
                .kept = {},
                .outputs = outputs_of(task, task.graph),
                .equal = equal};
  return fuse(region);
}

// x * 2 and y + 1 have one shape in the task file only.
TEST(Ties, OutputsOfTwoTensorsMayDiffer) {
  const Attempt apart = fuse_region("outputs_of_two_tensors");
  ASSERT_FALSE(apart.fused);
  EXPECT_THAT(apart.fused.error().message, HasSubstr("may differ at other shapes"));
  EXPECT_THAT(apart.apart, ElementsAre(ElementsAre(0), ElementsAre(1)));
  EXPECT_THAT(apart.equal, ElementsAre(Pair("dim(x,0)", "dim(y,0)"), Pair("dim(x,1)", "dim(y,1)"),
                                       Pair("dim(x,2)", "dim(y,2)")));
  EXPECT_TRUE(fuse_region("outputs_of_two_tensors", apart.equal).fused);
}

TEST(Ties, ReductionsOfTwoTensorsMayDiffer) {
  const Attempt sums = fuse_region("sums_of_two_tensors");
  ASSERT_FALSE(sums.fused);
  EXPECT_EQ(sums.cut, "sum");
  EXPECT_THAT(sums.apart, IsEmpty());
  EXPECT_THAT(sums.equal, ElementsAre(Pair("dim(x,1)", "dim(y,1)")));  // the sum ties the rows
}

TEST(Ties, OperatorsTieTheirOperands) {
  for (const char* name : {"mse", "kl_div", "cosine", "two_outputs", "gelu_bias", "layer_norm"}) {
    const Attempt attempt = fuse_region(name);
    EXPECT_THAT(attempt.apart, IsEmpty()) << name;
    EXPECT_THAT(attempt.equal, IsEmpty()) << name;
  }
}

}  // namespace
}  // namespace cutegen::recipes
