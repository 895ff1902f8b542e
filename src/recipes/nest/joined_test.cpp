// SPDX-License-Identifier: Apache-2.0
#include "recipes/nest/joined.h"

#include <gmock/gmock.h>

#include "recipes/nest/stages.h"
#include "recipes/testing/test_tasks.h"

namespace cutegen::recipes {
namespace {

using testing::HasSubstr;

Stages joined_stages(const std::string& name, bool hopper = true) {
  auto result = make_stages(golden_task(name), {.hopper = hopper, .join = true});
  if (!result) throw std::runtime_error(result.error().text());
  return *result;
}

const Contraction& first_product(const Stages& stages) {
  return std::get<Contraction>(stages.list.at(0));
}

// One kernel writes q, k and v: no stage copies parts of a stored product.
TEST(Joined, EachPartOfAProductIsWrittenDirectly) {
  const Stages stages = joined_stages("joined_qkv");
  ASSERT_EQ(stages.list.size(), 1u);
  EXPECT_TRUE(stages.scratch.empty());
  const Contraction& c = first_product(stages);
  ASSERT_EQ(c.parts.size(), 2u);
  EXPECT_EQ(c.size(c.n), 32);
  EXPECT_EQ(c.start, "0");
  EXPECT_THAT(c.parts[1].start, HasSubstr("2*"));
  EXPECT_EQ(c.parts[1].b.operand.tensor, "l.weight");
  EXPECT_EQ(c.parts[1].size(c.parts[1].n), 32);
  EXPECT_TRUE(c.partners.empty());
}

TEST(Joined, ProductsWithTheirOwnWeightsAreParts) {
  const Stages stages = joined_stages("joined_weights", false);
  ASSERT_EQ(stages.list.size(), 1u);
  const Contraction& c = first_product(stages);
  ASSERT_EQ(c.parts.size(), 1u);
  EXPECT_EQ(c.b.operand.tensor, "q.weight");
  EXPECT_EQ(c.parts[0].b.operand.tensor, "k.weight");
  EXPECT_EQ(c.size(c.n), 48);
  EXPECT_EQ(c.parts[0].extent(c.parts[0].n), "dim(k_bias,0)");
}

// Neither gate nor up reaches memory. The sizes of x's own axes follow the product.
TEST(Joined, GateAndUpArePartnersInATile) {
  const Stages stages = joined_stages("joined_gate");
  ASSERT_EQ(stages.list.size(), 2u);
  ASSERT_EQ(stages.scratch.size(), 1u);
  const Contraction& c = first_product(stages);
  ASSERT_EQ(c.partners.size(), 1u);
  EXPECT_NE(c.b.operand.tensor, c.partners[0].b.operand.tensor);
  EXPECT_TRUE(c.parts.empty());
  // Only wgmma has such tiles.
  EXPECT_EQ(joined_stages("joined_gate", false).list.size(), 3u);
}

TEST(Joined, HalvesOfAPackedWeightArePartners) {
  const Stages stages = joined_stages("joined_packed");
  ASSERT_EQ(stages.list.size(), 1u);
  const Contraction& c = first_product(stages);
  ASSERT_EQ(c.partners.size(), 1u);
  EXPECT_EQ(c.partners[0].b.operand.tensor, "l.weight");
  EXPECT_EQ(c.partners[0].columns, "dim(l_weight,0)");
  EXPECT_NE(c.start, c.partners[0].start);
  EXPECT_EQ(c.size(c.n), 48);
}

// Columns that two outputs need are computed once, and each part has neighbouring columns.
TEST(Joined, OverlappingOrStridedPartsAreCopied) {
  for (const char* name : {"joined_overlap", "joined_strided"}) {
    const Stages stages = joined_stages(name);
    EXPECT_GT(stages.list.size(), 1u) << name;
    EXPECT_FALSE(first_product(stages).joined()) << name;
  }
}

TEST(Joined, OnlyIfTheCallerWantsIt) {
  auto apart = make_stages(golden_task("joined_qkv"), {.hopper = true});
  ASSERT_TRUE(apart);
  EXPECT_FALSE(first_product(*apart).joined());
}

}  // namespace
}  // namespace cutegen::recipes
