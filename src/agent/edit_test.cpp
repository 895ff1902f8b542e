// SPDX-License-Identifier: Apache-2.0
// Handwritten replies: the effect of each form, and the answer to each fault.
#include "agent/edit.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "agent/plan_edit.h"
#include "agent/testing/test_program.h"
#include "base/text.h"

namespace cutegen::agent {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

// Checks that the sources define every kernel of the plan.
std::vector<Error> kernels_exist(const KernelProgram& p) {
  std::vector<Error> out;
  for (const Step& step : p.plan.steps)
    if (p.sources.at("kernel.cu").find(step.kernel + "(") == std::string::npos)
      out.push_back({.kind = ErrorKind::user,
                     .message = "no kernel '" + step.kernel + "'",
                     .where = "plan.json#/steps/0",
                     .remedy = ""});
  return out;
}

tl::expected<KernelProgram, Reask> answer(const std::string& text, const KernelProgram* base) {
  auto reply = parse_reply(text, base);
  if (!reply) return tl::unexpected(reply.error());
  return apply_reply(*reply, base, kernels_exist);
}

tl::expected<KernelProgram, Reask> answer(const std::string& text) {
  static const KernelProgram kBase = test_program();
  return answer(text, &kBase);
}

std::string source_after(const std::string& text) {
  auto program = answer(text);
  EXPECT_TRUE(program) << program.error().reason << ": " << program.error().text;
  return program ? program->sources.at("kernel.cu") : std::string();
}

// The test program with one line changed.
std::string expected(const std::string& from, const std::string& to) {
  std::string text = test_source();
  EXPECT_NE(text.find(from), std::string::npos) << from;
  return replace_all(text, from, to);
}

std::string edit(const std::string& search, const std::string& replace) {
  return "<<<<<<< SEARCH\n" + search + "\n=======\n" + replace + "\n>>>>>>> REPLACE\n";
}

std::string edit_block(const std::string& search, const std::string& replace) {
  return "```edit kernel.cu\n" + edit(search, replace) + "```\n";
}

void expect_reask(const std::string& reply, const std::string& reason,
                  const testing::Matcher<const std::string&>& part) {
  auto got = answer(reply);
  ASSERT_FALSE(got) << "applied:\n" << got->sources["kernel.cu"];
  EXPECT_EQ(got.error().reason, reason) << got.error().text;
  EXPECT_THAT(got.error().text, part);
}
#define EXPECT_REASK(...)      \
  do {                         \
    SCOPED_TRACE("");          \
    expect_reask(__VA_ARGS__); \
  } while (0)

TEST(Reply, SummaryAndReason) {
  auto r = parse_reply("**SUMMARY:** wider loads\nWHY: fewer instructions\n" +
                           edit_block("  float value = x[i];", "  float value = x[i] + 1;"),
                       nullptr);
  ASSERT_TRUE(r);
  EXPECT_EQ(r->summary, "wider loads");
  EXPECT_EQ(r->rationale, "fewer instructions");
  r = parse_reply("\n# I widen the loads.\nMore words.\n" + edit_block("a", "b"), nullptr);
  EXPECT_EQ(r->summary, "I widen the loads.");
}

TEST(Edit, ReplacesTheAnchoredText) {
  EXPECT_EQ(source_after(edit_block("  float value = x[i];", "  float value = 2 * x[i];")),
            expected("float value = x[i];", "float value = 2 * x[i];"));
  // Within a line, only whole words match.
  EXPECT_EQ(source_after(edit_block("x[i];", "x[i] + 1;")), expected("= x[i];", "= x[i] + 1;"));
  EXPECT_REASK(edit_block("alue = widen", "alue = narrow"), "anchor_missing", HasSubstr("SEARCH"));
}

TEST(Edit, IndentationAndBlanksOfTheAnchorMayDiffer) {
  EXPECT_EQ(
      source_after(edit_block("float value = x[i];  \n      value = widen<1>(value);  // \" { "
                              "in a string is no brace",
                              "  float value = widen<1>(x[i]);")),
      expected("  float value = x[i];\n  value = widen<1>(value);  // \" { in a string is no brace",
               "  float value = widen<1>(x[i]);"));
}

TEST(Edit, DeletesWholeLines) {
  EXPECT_EQ(source_after(edit_block("  float value = x[i];", "")),
            expected("  float value = x[i];\n", ""));
}

TEST(Edit, AnchorThatIsThereTwiceIsShownWithItsLines) {
  EXPECT_REASK(edit_block("  if (i >= n) return;", "  if (i > n) return;"), "anchor_repeated",
               AllOf(HasSubstr("2 times"), HasSubstr("lines 29, 37")));
}

TEST(Edit, MissingAnchorShowsTheMostSimilarLines) {
  EXPECT_REASK(
      edit_block("  float val = x[i] * scale;", "  float val = 1;"), "anchor_missing",
      AllOf(HasSubstr("float val = x[i] * scale;"), HasSubstr("30 |   float value = x[i];")));
  EXPECT_REASK(edit_block("nothing alike", "b"), "anchor_missing", Not(HasSubstr("similar")));
}

TEST(Edit, SeveralEditsAreAllOrNothing) {
  std::string two = "```edit kernel.cu\n" + edit("  float value = x[i];", "  float value = 1.0f;") +
                    edit("constexpr int kThreads = 256;", "constexpr int kThreads = 128;") +
                    "```\n";
  EXPECT_THAT(source_after(two), AllOf(HasSubstr("value = 1.0f"), HasSubstr("kThreads = 128;")));
  EXPECT_REASK(two + edit_block("gone", "here"), "anchor_missing", HasSubstr("Edit 3"));
  EXPECT_REASK(edit_block("  float value = x[i];\n  value", "  float value = 1;\n  value") +
                   edit_block("  float value = x[i];", "  float value = 3;"),
               "overlap", HasSubstr("edit 1 and edit 2"));
}

TEST(Edit, WithoutFenceAndUnderATitle) {
  std::string wanted = expected("float value = x[i];", "float value = 3 * x[i];");
  std::string plain = edit("  float value = x[i];", "  float value = 3 * x[i];");
  EXPECT_EQ(source_after("I change one line.\n\n" + plain + "\nThat is all."), wanted);
  EXPECT_EQ(source_after("**kernel.cu**\n" + plain), wanted);
  EXPECT_EQ(source_after("```cuda\n" + plain + "```"), wanted);
  EXPECT_EQ(source_after("### `kernel.cu`:\n```cpp\n" + plain + "```"), wanted);
  EXPECT_REASK("**other.cu**\n" + plain, "no_file", HasSubstr("other.cu"));
}

TEST(Edit, MarkersThatDoNotFit) {
  EXPECT_REASK("```edit kernel.cu\n<<<<<<< SEARCH\na\n>>>>>>> REPLACE\n```", "bad_edit",
               HasSubstr("no ======="));
  EXPECT_REASK("```edit kernel.cu\n<<<<<<< SEARCH\na\n=======\nb\n```", "bad_edit",
               HasSubstr("lacks its >>>>>>> REPLACE"));
  EXPECT_REASK("```edit kernel.cu\nchange a to b\n```", "bad_edit", HasSubstr("no edit"));
  EXPECT_REASK("```edit kernel.cu\n" + edit("a\n<<<<<<< SEARCH", "b") + "```", "bad_edit",
               HasSubstr("within another"));
  EXPECT_REASK(edit_block("  ", "x"), "anchor_empty", HasSubstr("empty"));
}

TEST(Function, ReplacesTheDefinitionOfItsName) {
  std::string body = "template <int V>\n__device__ float widen(float x) {\n  return x;\n}";
  std::string text = source_after("```function kernel.cu\n" + body + "\n```");
  EXPECT_THAT(text, AllOf(HasSubstr("float widen(float x) {\n  return x;\n}\n\nextern"),
                          HasSubstr("int kThreads = 256"), Not(HasSubstr("return x * V"))));
}

TEST(Function, NewHelpersAndCommentsComeAlong) {
  std::string text = source_after(
      "```function kernel.cu\n__device__ float half_of(float x) { return x / 2; }\n\n"
      "// The sum of both, halved.\n__device__ float total(Pair p) { return half_of(p.a + p.b); "
      "}\n```");
  EXPECT_THAT(
      text, HasSubstr("};\n\n__device__ float half_of(float x) { return x / 2; }\n\n// The sum of "
                      "both, halved.\n__device__ float total"));
  text = source_after(
      "```function kernel.cu\n// Both.\n__device__ float total(Pair p) { return p.a; }\n```");
  EXPECT_THAT(text,
              AllOf(HasSubstr("};\n\n// Both.\n__device__"), Not(HasSubstr("The sum of both"))));
}

TEST(Function, FaultsAreNamed) {
  EXPECT_REASK("```function kernel.cu\nvoid other() {}\n```", "function_missing",
               AllOf(HasSubstr("(other)"), HasSubstr("scale, finish")));
  EXPECT_REASK("```function kernel.cu\n__device__ float total(Pair p) {\n```", "unbalanced",
               HasSubstr("never closed"));
  EXPECT_REASK(
      "```function kernel.cu\nint total(int) { return 1; }\nint total(float) { return 2; "
      "}\n```",
      "function_repeated", HasSubstr("more than once"));
}

TEST(File, WholeFilesInManyFences) {
  std::string changed = expected("kThreads = 256", "kThreads = 64");
  for (const char* open : {"```file kernel.cu", "```cuda", "```cpp kernel.cu", "```", "````c++",
                           "~~~cu", "```cuda:kernel.cu", "```cpp title=\"kernel.cu\"",
                           "```kernel.cu", "**kernel.cu**\n```cpp"}) {
    std::string close = std::string(open).find("````") == 0 ? "````"
                        : open[0] == '~'                    ? "~~~"
                                                            : "```";
    EXPECT_EQ(source_after("Here:\n" + std::string(open) + "\n" + changed + close), changed)
        << open;
  }
  EXPECT_EQ(source_after(changed), changed);
  EXPECT_EQ(source_after("```markdown\nHere:\n```file kernel.cu\n" + changed + "```\n```\n"),
            changed);
  EXPECT_EQ(source_after("<think>\n```cuda\n__global__ x {}\n```</think>\n```file kernel.cu\n" +
                         changed + "```"),
            changed);
  EXPECT_EQ(source_after("\xEF\xBB\xBF```file kernel.cu\n" + changed + "```"), changed);
  EXPECT_EQ(source_after(replace_all("```file kernel.cu\n" + changed + "```", "\n", "\r\n")),
            changed);
}

TEST(File, WhatHasTwoMeaningsIsAskedAgain) {
  std::string one = expected("kThreads = 256", "kThreads = 64");
  std::string two = expected("kThreads = 256", "kThreads = 32");
  EXPECT_REASK("```cuda\n" + one + "```\nor\n```cuda\n" + two + "```", "ambiguous",
               HasSubstr("both"));
  EXPECT_REASK(
      "```file kernel.cu\n" + one + "```\n" + edit_block("  float value = x[i];", "  int a;"),
      "ambiguous", HasSubstr("either"));
  EXPECT_REASK("```file kernel.cu\n" + one + "```\n```file kernel.cu\n" + two + "```", "ambiguous",
               HasSubstr("once"));
  // An example beside the marked file does not make the reply ambiguous, nor does a repeated block.
  EXPECT_EQ(source_after("```cuda\n" + two + "```\n```file kernel.cu\n" + one + "```"), one);
  EXPECT_EQ(source_after("```file kernel.cu\n" + one + "```\n```file kernel.cu\n" + one + "```"),
            one);
}

TEST(File, PartsOfAFileAreNotTakenForTheWhole) {
  EXPECT_REASK(
      "```cuda\nextern \"C\" __global__ void scale(const float* x, float* out, int n) {}\n```",
      "snippet", HasSubstr("line 1"));
  EXPECT_REASK("```cuda\n  float value = x[i];\n```", "snippet", HasSubstr("```function"));
  std::string gap = expected("  return x;\n", "  // ... rest unchanged ...\n");
  EXPECT_REASK("```file kernel.cu\n" + gap + "```", "gap", HasSubstr("rest unchanged"));
  EXPECT_REASK(edit_block("  float value = x[i];", "  int a;\n  ..."), "gap", HasSubstr("'...'"));
  EXPECT_REASK("```file kernel.cu\n" + std::string(test_source()).substr(0, 400), "cut",
               HasSubstr("is not closed"));
}

TEST(File, FirstProgramNeedsBothFiles) {
  std::string source = std::string("```file kernel.cu\n") + test_source() + "```\n";
  std::string plan = "```file plan.json\n" + plan_text(test_program().plan) + "```\n";
  auto program = answer(source + plan, nullptr);
  ASSERT_TRUE(program) << program.error().text;
  EXPECT_EQ(program_id(*program), program_id(test_program()));
  EXPECT_THAT(answer(source, nullptr).error().text, HasSubstr("plan.json is missing"));
  EXPECT_THAT(answer(plan, nullptr).error().text, HasSubstr("kernel.cu is missing"));
  EXPECT_EQ(answer(edit_block("a", "b"), nullptr).error().reason, "incomplete");
  auto renamed = answer(replace_all(source, "kernel.cu", "softmax.cu") + plan, nullptr);
  EXPECT_THAT(renamed.error().text, HasSubstr("lists the source 'kernel.cu'"));
}

TEST(Plan, PointerEdits) {
  auto after = [](const std::string& text) {
    auto p = answer(text);
    EXPECT_TRUE(p) << p.error().text;
    return p ? to_json(p->plan) : Json();
  };
  Json plan = after(
      "```plan\n[{\"path\": \"/steps/0/block/0\", \"value\": 128},\n"
      "{\"op\": \"add\", \"path\": \"/symbols/m\", \"value\": \"n + 1\"},\n"
      "{\"op\": \"remove\", \"path\": \"/defines\"}]\n```");
  EXPECT_EQ(plan["steps"][0]["block"][0], 128);
  EXPECT_EQ(plan["symbols"]["m"], "n + 1");
  EXPECT_FALSE(plan.contains("defines"));
  plan = after(
      "```json\n{\"path\": \"/steps/1/args/-\", \"op\": \"add\", \"value\": {\"f32\": 1}}\n```");
  EXPECT_EQ(plan["steps"][1]["args"].size(), 3u);
  plan = after(
      "```edit plan.json\n" +
      edit("  \"symbols\": {\"n\":\"size(x)\"},", "  \"symbols\": {\"n\":\"size(x)\", \"m\": 3},") +
      "```");
  EXPECT_EQ(plan["symbols"]["m"], 3);
}

TEST(Plan, PointersThatLeadNowhere) {
  auto plan = [](const std::string& edits) { return "```plan\n" + edits + "\n```"; };
  EXPECT_REASK(plan(R"([{"path": "/steps/0/gird/0", "value": 1}])"), "bad_pointer",
               AllOf(HasSubstr("\"gird\" is not in the plan"), HasSubstr("grid, block")));
  EXPECT_REASK(plan(R"([{"path": "/steps/5/block/0", "value": 1}])"), "bad_pointer",
               HasSubstr("an array of 2"));
  EXPECT_REASK(plan(R"([{"op": "remove", "path": "/scratch"}])"), "bad_pointer",
               HasSubstr("not there"));
  EXPECT_REASK(plan(R"([{"path": "steps", "value": 1}])"), "bad_pointer",
               HasSubstr("JSON pointer"));
  EXPECT_REASK(plan(R"([{"op": "move", "path": "/steps", "value": 1}])"), "bad_plan_edit",
               HasSubstr("\"op\": \"set\""));
  EXPECT_REASK(plan(R"([{"path": "/steps/0/block/0"}])"), "bad_plan_edit", HasSubstr("value"));
  EXPECT_REASK(plan("[{\"path\": \"/steps\", }]"), "bad_json", HasSubstr("trailing commas"));
}

TEST(Plan, FaultsAreFoundBeforeCompiling) {
  EXPECT_REASK("```plan\n[{\"path\": \"/steps/0/threads\", \"value\": 1}]\n```", "bad_plan",
               HasSubstr("threads"));
  EXPECT_REASK(
      "```plan\n[{\"path\": \"/steps/0/kernel\", \"value\": \"scales\"}]\n```", "checks",
      AllOf(HasSubstr("no kernel 'scales'"), HasSubstr("plan.json:"), HasSubstr("not compiled")));
  EXPECT_REASK("```plan\n[{\"path\": \"/sources/-\", \"op\": \"add\", \"value\": \"b.cu\"}]\n```",
               "bad_plan", HasSubstr("'b.cu', which does not exist"));
}

// The Reask lists all faults, so that one answer can correct them.
TEST(Edit, AllFaultsAreNamedAtOnce) {
  auto got = answer(
      "```edit kernel.cu\n<<<<<<< SEARCH\nnever_there\n=======\nx\n>>>>>>> REPLACE\n"
      "<<<<<<< SEARCH\n  if (i >= n) return;\n=======\ny\n>>>>>>> REPLACE\n```\n"
      "```plan\n[{\"path\": \"/steps/9/block/0\", \"value\": 3}]\n```\n");
  ASSERT_FALSE(got);
  EXPECT_EQ(got.error().reason, "anchor_missing") << "the first one";
  EXPECT_THAT(
      got.error().text,
      AllOf(HasSubstr("3 changes do not apply"), HasSubstr("Edit 1: its SEARCH text is not"),
            HasSubstr("Edit 2: its SEARCH text occurs"), HasSubstr("Plan edit 1")));
}

TEST(Edit, ResultMustDifferAndBeInBalance) {
  EXPECT_REASK(edit_block("  float value = x[i];", "  float value = x[i];"), "no_change",
               HasSubstr("does not change the program"));
  EXPECT_REASK(edit_block("    return x * V;\n  }", "    return x * V;"), "unbalanced",
               AllOf(HasSubstr("never closed"), HasSubstr("|")));
}

TEST(Reply, NothingToApply) {
  EXPECT_REASK("", "empty", HasSubstr("empty"));
  EXPECT_REASK(" \n\t", "empty", HasSubstr("empty"));
  EXPECT_REASK("I would widen the loads.", "no_block", HasSubstr("```edit"));
  EXPECT_REASK("```diff\n--- a\n+++ b\n@@ -1 +1 @@\n-a\n+b\n```", "diff", HasSubstr("diff"));
  EXPECT_REASK("```python\nprint(1)\n```", "no_block", HasSubstr("no block"));
  EXPECT_REASK(std::string("a\0b", 3), "no_text", HasSubstr("zero"));
  EXPECT_REASK("<think>never ends", "empty", HasSubstr("empty"));
  KernelProgram base = test_program();
  auto cut = parse_reply(edit_block("  float value = x[i];", "  int a;"), &base, true);
  ASSERT_FALSE(cut);
  EXPECT_EQ(cut.error().reason, "cut");
  EXPECT_EQ(parse_reply(std::string(2 << 20, 'a'), &base).error().reason, "too_long");
}

TEST(Program, OfTwoSourcesWantsNames) {
  KernelProgram two = test_program();
  two.sources["more.cu"] = "extern \"C\" __global__ void more() {}\n";
  two.plan.sources.push_back("more.cu");
  auto unnamed = answer("```cuda\n" + std::string(test_source()) + "// end\n```", &two);
  ASSERT_FALSE(unnamed);
  EXPECT_EQ(unnamed.error().reason, "no_file");
  EXPECT_THAT(unnamed.error().text, HasSubstr("kernel.cu, more.cu"));
  auto named = answer("```edit more.cu\n" + edit("void more()", "void more(int a)") + "```", &two);
  ASSERT_TRUE(named);
  EXPECT_THAT(named->sources.at("more.cu"), HasSubstr("more(int a)"));
}

#undef EXPECT_REASK

}  // namespace
}  // namespace cutegen::agent
