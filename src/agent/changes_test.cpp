// SPDX-License-Identifier: Apache-2.0
// Programs shown as changes: applying the changes gives the program, or it is shown whole.
#include "agent/changes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "agent/describe.h"
#include "agent/edit.h"
#include "agent/line_diff.h"
#include "agent/plan_edit.h"
#include "agent/testing/test_program.h"
#include "base/text.h"
#include "llm/tokens.h"

namespace cutegen::agent {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

KernelProgram with(KernelProgram p, const std::string& from, const std::string& to) {
  std::string& source = p.sources["kernel.cu"];
  size_t at = source.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  source.replace(at, from.size(), to);
  return p;
}

void expect_same(const KernelProgram& base, const KernelProgram& program, const std::string& text) {
  auto reply = parse_reply(text, &base);
  ASSERT_TRUE(reply) << reply.error().text << text;
  auto applied = apply_reply(*reply, &base, {});
  ASSERT_TRUE(applied) << applied.error().text << text;
  EXPECT_EQ(applied->sources, program.sources) << text;
  EXPECT_EQ(plan_text(applied->plan), plan_text(program.plan)) << text;
}

TEST(Changes, AShortFunctionIsShownWholeAsItIsNow) {
  KernelProgram base = long_program();
  KernelProgram now = with(base, "y = x * 7.5f", "y = x * 7.75f");
  auto text = changes_text(base, now);
  ASSERT_TRUE(text);
  EXPECT_THAT(*text,
              AllOf(HasSubstr("```function kernel.cu\n__device__ float stage_7("),
                    HasSubstr("7.75f"), HasSubstr("return y + 7.25f;"), Not(HasSubstr("stage_8"))));
  EXPECT_THAT(*text, HasSubstr("kernel.cu, lines 55 to 59 now:"));
  expect_same(base, now, *text);
}

TEST(Changes, OfALongFunctionTheLinesWithSomeAround) {
  KernelProgram base = long_program();
  // The line occurs twice, so the lines around it decide.
  KernelProgram now = with(base, "  x = stage_5(x);\n", "  x = stage_5(x) * 2.0f;\n");
  auto text = changes_text(base, now);
  ASSERT_TRUE(text);
  EXPECT_THAT(*text, AllOf(HasSubstr("```edit kernel.cu\n<<<<<<< SEARCH\n"),
                           HasSubstr("stage_5(x) * 2.0f;"), HasSubstr("stage_4(x)"),
                           Not(HasSubstr("stage_9(x)"))));
  expect_same(base, now, *text);
}

TEST(Changes, ThePlanAsPointersAndManyPlacesAtOnce) {
  KernelProgram base = long_program();
  KernelProgram now = with(base, "float a, b;", "float a, b, c;");
  now = with(now, "#include <cutegen/vec.cuh>\n", "");
  now = with(now, "// The sum of both.\n", "__device__ float none() {\n  return 0.0f;\n}\n\n");
  now.plan.steps[0].block[0] = Expr(128);
  auto text = changes_text(base, now);
  ASSERT_TRUE(text);
  EXPECT_THAT(*text, AllOf(HasSubstr("/steps/0/block/0"), HasSubstr("struct Pair"),
                           HasSubstr("__device__ float none()")));
  expect_same(base, now, *text);
}

TEST(Changes, WhatIsShortLongOrElsewhereIsShownWhole) {
  KernelProgram small = test_program(), base = long_program();
  EXPECT_FALSE(changes_text(small, with(small, "0.5f", "0.25f"))) << "a short program";
  EXPECT_FALSE(changes_text(small, base)) << "most of it is new";
  EXPECT_FALSE(changes_text(base, base)) << "nothing has changed";
  KernelProgram other = base;
  other.sources["more.cu"] = other.sources["kernel.cu"];
  EXPECT_FALSE(changes_text(base, other)) << "another source";
  KernelProgram open = with(base, "0.5f;\n}\n", "0.25f;\n}");
  EXPECT_FALSE(changes_text(base, open)) << "no line end at the end";
  // Text that looks like the end of the block.
  KernelProgram odd = with(base, "x = stage_5(x);\n", "x = stage_5(x);\n=======\n");
  if (auto text = changes_text(base, odd)) expect_same(base, odd, *text);
}

// For random edits, applying the text gives the program, or there is no text.
TEST(Changes, RandomEditsComeOutAsTheyWentIn) {
  std::mt19937 random(7);
  auto pick = [&](size_t n) { return std::uniform_int_distribution<size_t>(0, n - 1)(random); };
  const KernelProgram base = long_program();
  int told = 0;
  for (int round = 0; round < 300; ++round) {
    auto lines = split(base.sources.at("kernel.cu"), '\n');
    for (size_t edits = 1 + pick(3); edits-- > 0;) {
      auto at = lines.begin() + long(1 + pick(lines.size() - 2));
      switch (pick(4)) {
        case 0:
          lines.erase(at);
          break;
        case 1:
          lines.insert(at, *(lines.begin() + long(pick(lines.size()))));
          break;
        case 2:
          lines.insert(at, "");
          break;
        default:
          *at += "  // " + std::to_string(round);
      }
    }
    KernelProgram now = base;
    now.sources["kernel.cu"] = join(lines, "\n");
    auto text = changes_text(base, now);
    if (!text) continue;
    ++told;
    expect_same(base, now, *text);
    EXPECT_LT(4 * llm::estimate_tokens(*text), llm::estimate_tokens(describe_program(now)) + 4);
  }
  EXPECT_GT(told, 150);
}

TEST(Hunks, AreTheLinesThatDiffer) {
  auto hunks = hunks_of("a\nb\nc\nd\n", "a\nx\ny\nc\n");
  ASSERT_EQ(hunks.size(), 2U);
  EXPECT_EQ(hunks[0].before, 1U);
  EXPECT_EQ(hunks[0].before_end, 2U);
  EXPECT_EQ(hunks[0].after_end, 3U);
  EXPECT_EQ(hunks[1].before, 3U);
  EXPECT_EQ(hunks[1].before_end, 4U);
  EXPECT_EQ(hunks[1].after, 4U);
  EXPECT_EQ(hunks[1].after_end, 4U);
  EXPECT_TRUE(hunks_of("a\n", "a\n").empty());
}

}  // namespace
}  // namespace cutegen::agent
