// SPDX-License-Identifier: Apache-2.0
// Tests the tools: their declarations, malformed calls, and a desk's answers without the engine.
#include "agent/tools.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "agent/library.h"
#include "agent/plan_edit.h"
#include "agent/testing/test_program.h"
#include "agent/tool_desk.h"
#include "llm/tokens.h"

namespace cutegen::agent {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing::SizeIs;

constexpr Offer kAllTools{.compile = true, .evaluate = true, .profile = true, .diff_best = true};

llm::ToolCall call(const std::string& name, const Json& arguments) {
  return {.id = "id", .name = name, .arguments = arguments};
}

std::string refusal(const llm::ToolCall& call) {
  auto use = read_tool_call(call);
  EXPECT_FALSE(use);
  return use ? "" : use.error().text();
}

TEST(Tools, SpecificationsAreClosedObjectsOfStrings) {
  auto specs = tool_specs(kAllTools);
  ASSERT_THAT(specs, SizeIs(5));
  EXPECT_THAT(tool_specs({}), SizeIs(1));
  for (const llm::ToolSpec& spec : specs) {
    EXPECT_FALSE(spec.description.empty()) << spec.name;
    EXPECT_EQ(spec.parameters["type"], "object");
    EXPECT_EQ(spec.parameters["additionalProperties"], false);
    for (const auto& [name, field] : spec.parameters["properties"].items()) {
      EXPECT_EQ(field["type"], "string") << spec.name << "/" << name;
      Json arguments{{"draft", "d1"}, {name, "d1"}};
      if (name == "name") arguments.erase("draft");
      EXPECT_TRUE(read_tool_call(call(spec.name, arguments))) << spec.name << "/" << name;
    }
  }
}

TEST(Tools, CallsAreReadWithWhatModelsMakeOfThem) {
  auto use = read_tool_call(
      call("compile", {{"kernel", "x"}, {"plan", {{"cutegen", 1}}}, {"draft", nullptr}}));
  ASSERT_TRUE(use) << use.error().text();
  EXPECT_EQ(use->tool, Tool::compile);
  EXPECT_EQ(use->plan, "{\n  \"cutegen\": 1\n}");
  EXPECT_TRUE(use->draft.empty());
}

TEST(Tools, OddCallsAreRefusedWithAReason) {
  EXPECT_THAT(refusal(call("exec", {})),
              AllOf(HasSubstr("no tool 'exec'"), HasSubstr("diff_best")));
  EXPECT_THAT(refusal(call("", {})), HasSubstr("no tool ''"));
  EXPECT_THAT(refusal({"id", "compile", Json::object(), "[1,"}), HasSubstr("not a JSON object"));
  EXPECT_THAT(refusal(call("compile", Json::array({1}))), HasSubstr("not a JSON object"));
  EXPECT_THAT(refusal(call("compile", {{"kernel", {1, 2}}})), HasSubstr("is not a string"));
  EXPECT_THAT(refusal(call("compile", {{"plan", true}})), HasSubstr("is not a string"));
  EXPECT_THAT(refusal(call("compile", {{"kernel", std::string(300 << 10, 'x')}})),
              HasSubstr("307200 bytes"));
  EXPECT_THAT(refusal(call("compile", {{"kernel", std::string(1, '\0')}})),
              HasSubstr("zero bytes"));
  EXPECT_THAT(refusal(call("compile", {{"summary", "x"}})), HasSubstr("no program"));
  EXPECT_THAT(refusal(call("profile", {{"kernel", "x"}})), HasSubstr("not an argument of profile"));
  EXPECT_THAT(refusal(call("read_docs", {{"name", std::string(500, 'x')}})), HasSubstr("120"));
}

TEST(Tools, DraftsAreNamedInALineOfProse) {
  EXPECT_EQ(named_draft("SUMMARY: x\n**DRAFT:** d2\n"), "d2");
  EXPECT_EQ(named_draft("draft: d1\nDRAFT: d3"), "d3");
  EXPECT_EQ(named_draft("```file kernel.cu\nDRAFT: d1\n```"), "");
  EXPECT_EQ(named_draft("The DRAFT: d1 is good"), "");
  KernelProgram base = test_program();
  auto alone = parse_reply("SUMMARY: this one\nDRAFT: d2\n", &base);
  ASSERT_TRUE(alone) << alone.error().text;
  EXPECT_TRUE(alone->changes.empty());
  EXPECT_EQ(alone->summary, "this one");
  EXPECT_FALSE(parse_reply("DRAFT: d2\n```diff\n-a\n+b\n```\n", &base));
  EXPECT_FALSE(parse_reply("No draft, no block.\n", &base));
}

// Stands in for the engine and counts the calls.
class CountingHost final : public ToolHost {
 public:
  Result<std::optional<ToolRecord>> recorded(const ToolRecord& call) override {
    if (past.empty()) return std::optional<ToolRecord>();
    ToolRecord next = past.front();
    past.erase(past.begin());
    if (next.arguments_hash != call.arguments_hash) return user_error("the run diverges");
    return std::optional(next);
  }
  Result<void> record(const ToolRecord& call) override {
    records.push_back(call);
    return {};
  }
  Result<Verdict> compile(const Context&, const KernelProgram&) override {
    ++compiled;
    return verdict;
  }
  Result<Evaluated> evaluate(const Context&, const Candidate& draft) override {
    return Evaluated{.candidate = "c" + std::to_string(++evaluated) + draft.edit.origin,
                     .verdict = verdict};
  }
  std::string diff_best(const KernelProgram&) const override { return diff; }

  std::vector<ToolRecord> past, records;
  Verdict verdict;
  std::string diff;
  int compiled = 0, evaluated = 0;
};

class Desk : public testing::Test {
 protected:
  Desk() {
    subject_.id = "c1";
    subject_.program = test_program();
    host_.verdict.status = Status::correct;
    host_.verdict.timing = Timing{.shape = "official", .time_ns = 1000};
  }
  ToolSetting setting(Role role = Role::coder) const {
    ToolSetting set;
    set.question.role = role;
    set.question.subject = &subject_;
    set.check = [](const KernelProgram&) { return std::vector<Error>(); };
    set.tried = [](const KernelProgram&) { return std::optional<Reask>(); };
    set.limits.run_calls = 100;
    set.limits.run_evaluations = 100;
    set.offer = kAllTools;
    return set;
  }
  static llm::ToolCall edit(const std::string& tool, const std::string& factor) {
    return call(tool, {{"edits",
                        "```edit kernel.cu\n<<<<<<< SEARCH\n  out[i] = out[i] * 0.5f;\n"
                        "=======\n  out[i] = out[i] * " +
                            factor + ";\n>>>>>>> REPLACE\n```\n"}});
  }
  std::string one(ToolDesk& desk, const llm::ToolCall& call) {
    auto results = desk.answer({}, {call});
    EXPECT_TRUE(results) << results.error().text();
    return results ? results->at(0).text : "";
  }
  Candidate subject_;
  CountingHost host_;
};

TEST_F(Desk, PagesAreThoseOfTheLibrary) {
  ToolDesk desk(setting(), host_);
  EXPECT_THAT(one(desk, call("read_docs", {{"name", "combine_row"}})),
              HasSubstr(find_component("combine_row")->example.substr(0, 60)));
  EXPECT_THAT(one(desk, call("read_docs", {})), HasSubstr("- gemm: "));
  EXPECT_THAT(one(desk, call("read_docs", {{"name", "combine_rwo"}})),
              AllOf(HasSubstr("did you mean 'combine_row'"), HasSubstr("- gemm: ")));
}

TEST_F(Desk, EqualProgramsAreOneDraft) {
  ToolDesk desk(setting(), host_);
  EXPECT_THAT(one(desk, edit("compile", "0.25f")), HasSubstr("Draft d1 compiles"));
  EXPECT_THAT(one(desk, edit("compile", "0.125f")), HasSubstr("Draft d2 compiles"));
  EXPECT_THAT(one(desk, edit("evaluate", "0.25f")), HasSubstr("Draft d1 is kept as c1"));
  one(desk, edit("evaluate", "0.25f"));
  EXPECT_EQ(host_.evaluated, 1) << "what is known is not asked again";
  EXPECT_EQ(desk.drafts().names(), "d1, d2");
}

TEST_F(Desk, WhatDoesNotApplyIsSaidAndMakesNoDraft) {
  ToolDesk desk(setting(), host_);
  EXPECT_THAT(one(desk, call("compile", {{"edits", "use more threads"}})), HasSubstr("no block"));
  EXPECT_THAT(one(desk, edit("compile", "0.5f")), HasSubstr("does not change the program"));
  EXPECT_THAT(one(desk, call("compile", {{"plan", "{\"cutegen\": 1"}})), HasSubstr("plan.json"));
  EXPECT_EQ(desk.drafts().names(), "none");
  EXPECT_EQ(host_.compiled, 0);
  EXPECT_THAT(host_.records, SizeIs(3)) << "every call is on record";
}

TEST_F(Desk, ResultsAreCappedAndClean) {
  host_.verdict.status = Status::failed;
  host_.verdict.feedback.headline = "\x1b[31mred\x1b[0m";
  host_.verdict.feedback.detail = std::string(100'000, 'x');
  ToolDesk desk(setting(), host_);
  std::string text = one(desk, edit("compile", "0.25f"));
  EXPECT_LT(text.size(), 6200u);
  EXPECT_THAT(text, AllOf(HasSubstr("does not compile"), Not(HasSubstr("\x1b"))));
  host_.diff = std::string(100'000, 'y');
  EXPECT_LT(one(desk, call("diff_best", {})).size(), 6200u);
}

TEST_F(Desk, WhatIsOnRecordIsNotDoneAgain) {
  ToolDesk first(setting(), host_);
  std::string said = one(first, edit("compile", "0.25f"));
  host_.past = host_.records;
  ToolDesk again(setting(), host_);
  EXPECT_EQ(one(again, edit("compile", "0.25f")), said);
  EXPECT_EQ(host_.compiled, 1);
  EXPECT_EQ(again.drafts().names(), "d1");
  host_.past = host_.records;
  ToolDesk other(setting(), host_);
  EXPECT_FALSE(other.answer({}, {edit("compile", "0.75f")}));
}

TEST_F(Desk, ProfilesAreShownWhereTheQuestionMaySeeThem) {
  Verdict seen;
  seen.profile = Profile{.kernels = {KernelProfile{.kernel = "scale",
                                                   .time_ns = 900,
                                                   .bound_by = "dram",
                                                   .counters = {{"warp_instructions", 4096},
                                                                {"modelled_ns.dram", 890},
                                                                {"modelled_ns.issue", 412}}}},
                         .shape = "official"};
  ToolSetting set = setting(Role::judge);
  set.question.verdict = &seen;
  set.offer = {};
  ToolDesk blind(set, host_);
  EXPECT_THAT(one(blind, call("profile", {})), HasSubstr("does not offer 'profile'"));
  set.offer.profile = true;
  ToolDesk desk(set, host_);
  EXPECT_THAT(one(desk, call("profile", {})),
              AllOf(HasSubstr("bound by dram, then by issue (412 ns)"),
                    HasSubstr("advice: move fewer bytes"), Not(HasSubstr("warp_instructions"))));
  EXPECT_THAT(one(desk, call("profile", {{"draft", "d1"}})), HasSubstr("no draft 'd1'"));
  EXPECT_THAT(one(desk, edit("evaluate", "0.25f")), HasSubstr("does not offer 'evaluate'"));
}

TEST_F(Desk, TheBestIsComparedWithTheProgramInQuestion) {
  host_.diff = "-a\n+b\n";
  ToolDesk desk(setting(), host_);
  EXPECT_THAT(one(desk, call("diff_best", {})), HasSubstr("From the best program to c1:\n-a"));
  one(desk, edit("compile", "0.25f"));
  EXPECT_THAT(one(desk, call("diff_best", {})), HasSubstr("From the best program to d1:"));
  host_.diff.clear();
  EXPECT_THAT(one(desk, call("diff_best", {})), HasSubstr("d1 is the best program"));
  ToolSetting none = setting();
  none.question.subject = nullptr;
  ToolDesk first(none, host_);
  EXPECT_THAT(one(first, call("diff_best", {})), HasSubstr("no draft and no program"));
}

TEST_F(Desk, TheAnswerMeetsTheDraftsOnEqualTerms) {
  ToolDesk desk(setting(), host_);
  one(desk, edit("evaluate", "0.25f"));
  Candidate answer = subject_;
  answer.program.sources["kernel.cu"] += "// other\n";
  host_.verdict.timing->time_ns = 1005;  // the draft gains too little, so the answer stays
  auto kept = desk.choose({}, answer);
  ASSERT_TRUE(kept && *kept);
  EXPECT_EQ((*kept)->id, "c2");
  answer.program.sources["kernel.cu"] += "// worse\n";
  host_.verdict.status = Status::failed;
  kept = desk.choose({}, answer);
  EXPECT_EQ((*kept)->id, "c1") << "the fastest correct one of all";
  kept = desk.choose({}, std::nullopt);
  EXPECT_EQ((*kept)->id, "c1");
}

TEST_F(Desk, WithoutDraftsTheAnswerIsUntouched) {
  ToolDesk desk(setting(), host_);
  auto kept = desk.choose({}, subject_);
  ASSERT_TRUE(kept && *kept);
  EXPECT_EQ(host_.evaluated, 0);
  EXPECT_TRUE((*kept)->id.empty()) << "the run gives it one";
  EXPECT_FALSE(*ToolDesk(setting(), host_).choose({}, std::nullopt));
}

// Random combinations of known calls: each gets a result, and nothing crashes.
TEST_F(Desk, AnyCallsGetResults) {
  std::mt19937 random(7);
  auto pick = [&](auto& from) { return from[random() % from.size()]; };
  std::vector<std::string> names{"read_docs", "compile", "evaluate", "profile", "diff_best", "x"};
  std::vector<std::string> keys{"name", "kernel", "plan", "edits", "draft", "summary", "y"};
  std::vector<Json> values{
      "d1",          "",
      nullptr,       7,
      Json::array(), {{"steps", 1}},
      test_source(), "```edit kernel.cu\n<<<<<<< SEARCH\n=======\n>>>>>>> REPLACE\n```",
      "\xff\xfe",    std::string(70'000, '{')};
  for (int round = 0; round < 300; ++round) {
    ToolDesk desk(setting(), host_);
    std::vector<llm::ToolCall> calls;
    for (size_t i = 0; i < 1 + random() % 10; ++i) {
      Json arguments = Json::object();
      for (size_t k = random() % 4; k > 0; --k) arguments[pick(keys)] = pick(values);
      calls.push_back(call(pick(names), arguments));
      if (random() % 8 == 0) calls.back().malformed = "{";
    }
    auto results = desk.answer({}, calls);
    ASSERT_TRUE(results) << results.error().text();
    ASSERT_EQ(results->size(), calls.size());
  }
}

// Six drafts, each with another line changed, and all given as whole programs.
struct Dialogue {
  std::vector<llm::Message> told, plain;
  std::vector<KernelProgram> programs;
};

int64_t call_tokens(const std::vector<llm::Message>& messages) {
  int64_t out = 0;
  for (const llm::Message& m : messages)
    for (const llm::ToolCall& c : m.calls) out += llm::estimate_tokens(dump_json(c.arguments));
  return out;
}

KernelProgram long_draft(int n) {
  KernelProgram out = long_program();
  std::string& source = out.sources["kernel.cu"];
  const std::string line = "stage_" + std::to_string(n) + "(float x) {\n";
  source.insert(source.find(line) + line.size(), "  // " + std::to_string(n) + "\n");
  return out;
}

TEST_F(Desk, WholeProgramsAreToldAsChangesInLaterRequests) {
  Dialogue d;
  Candidate subject{.id = "c1", .program = long_program()};
  ToolSetting set = setting();
  set.question.subject = &subject;
  set.limits.calls = 6;
  ToolDesk desk(set, host_);
  for (int n = 1; n <= 6; ++n) {
    d.programs.push_back(long_draft(n));
    llm::Message message{.speaker = llm::Speaker::assistant};
    message.calls = {{.id = "call",
                      .name = "compile",
                      .arguments = {{"kernel", d.programs.back().sources["kernel.cu"]},
                                    {"plan", plan_text(d.programs.back().plan)},
                                    {"summary", "step"}}}};
    d.plain.push_back(message);
    ASSERT_TRUE(desk.answer({}, message.calls));
    desk.tell_as_changes(message);
    d.told.push_back(message);
  }
  EXPECT_LE(double(call_tokens(d.told)), 0.4 * double(call_tokens(d.plain)));
  // The calls as told give the same drafts, in the same order.
  ToolDesk again(set, host_);
  for (size_t n = 0; n < d.told.size(); ++n) {
    ASSERT_TRUE(again.answer({}, d.told[n].calls));
    ASSERT_NE(again.drafts().last(), nullptr);
    EXPECT_EQ(program_id(again.drafts().last()->candidate.program), program_id(d.programs[n]));
    EXPECT_EQ(d.told[n].calls[0].arguments["summary"], "step");
  }
}

// A provider's own data repeats the call as it was, so the call stays, too.
TEST_F(Desk, CallsWithDataOfTheProviderStayAsTheyAre) {
  Candidate subject{.id = "c1", .program = long_program()};
  ToolSetting set = setting();
  set.question.subject = &subject;
  ToolDesk desk(set, host_);
  const KernelProgram draft = long_draft(1);
  llm::Message message{.speaker = llm::Speaker::assistant};
  message.calls = {
      {.id = "call", .name = "compile", .arguments = {{"kernel", draft.sources.at("kernel.cu")}}}};
  message.opaque = {{"api", "other"}};
  ASSERT_TRUE(desk.answer({}, message.calls));
  desk.tell_as_changes(message);
  EXPECT_TRUE(message.calls[0].arguments.contains("kernel"));
  message.opaque = Json();
  desk.tell_as_changes(message);
  EXPECT_FALSE(message.calls[0].arguments.contains("kernel"));
  EXPECT_TRUE(message.calls[0].arguments.contains("edits"));
}

}  // namespace
}  // namespace cutegen::agent
