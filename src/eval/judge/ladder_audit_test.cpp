// SPDX-License-Identifier: Apache-2.0
// How the ladder judges audits, modules with state, and programs with unusual plans.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "eval/rungs/prepare.h"
#include "eval/testing/ladder_world.h"

namespace cutegen::eval {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing_world::kTwice;
using testing_world::report_of;
using testing_world::twice;
using testing_world::World;

// A report of one kernel f that has this many registers.
toolchain::AssemblyReport assembled(int registers) {
  toolchain::AssemblyReport out;
  out.audit.assembler = "ptxas 13", out.audit.disassembler = "nvdisasm 13";
  KernelAudit k;
  k.kernel = "f", k.registers = registers, k.code = CodeAudit{};
  out.audit.kernels = {k};
  return out;
}

TEST(LadderAudit, WhatWasFoundIsInTheVerdict) {
  World w(twice);
  w.assembler.report = assembled(24);
  w.assembler.report.audit.kernels[0].code->clock_reads = 2;
  w.assembler.report.audit.skipped = {"half of it"};
  w.plan({{"defines", {{"V", "4"}}}});
  Verdict v = w.judge(World::kernel(kTwice));
  EXPECT_EQ(v.status, Status::correct) << v.feedback.headline;
  EXPECT_EQ(report_of(v, Rung::audit).result, RungResult::passed);
  ASSERT_TRUE(v.audit);
  EXPECT_EQ(v.audit->assembler, "ptxas 13");
  EXPECT_EQ(v.audit->disassembler, "nvdisasm 13");
  ASSERT_EQ(v.audit->kernels.size(), 1U);
  EXPECT_EQ(v.audit->kernels[0].module, "kernel.cu|V=4");
  EXPECT_THAT(v.feedback.resources, HasSubstr("f: 24 registers"));
  EXPECT_THAT(v.marks, ElementsAre(HasSubstr("f reads the clock")));
  EXPECT_THAT(v.skipped, Contains("audit: half of it"));
}

// The listing runs beside later rungs; the verdict has its findings even if one of these fails.
TEST(LadderAudit, TheListingIsWaitedFor) {
  World w(twice);
  w.assembler.report = assembled(24);
  w.assembler.listing = [](std::vector<toolchain::AssemblyReport>& reports) -> Result<void> {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    reports[0].audit.kernels[0].code->clock_reads = 2;
    reports[0].audit.skipped = {"half of it"};
    return {};
  };
  for (const char* body : {kTwice, "mov.f32 %f2, %f1;"}) {
    Verdict v = w.judge(World::kernel(body));
    EXPECT_EQ(v.status, body == kTwice ? Status::correct : Status::failed) << v.feedback.headline;
    EXPECT_EQ(report_of(v, Rung::audit).result, RungResult::passed);
    EXPECT_THAT(v.marks, Contains(HasSubstr("f reads the clock")).Times(1));
    EXPECT_THAT(v.skipped, Contains("audit: half of it").Times(1));
    EXPECT_THAT(v.feedback.resources, HasSubstr("f: 24 registers"));
  }
}

TEST(LadderAudit, TroubleWithTheListingIsOurs) {
  World w(twice);
  w.assembler.report = assembled(24);
  w.assembler.listing = [](auto&) { return Result<void>(world_error("no process available")); };
  Verdict v = w.judge(World::kernel(kTwice));
  EXPECT_EQ(v.status, Status::aborted);
  EXPECT_THAT(v.feedback.headline, HasSubstr("no process available"));
  v = w.judge(World::kernel(kTwice), Rung::correctness);  // no later rung waits for the listing
  EXPECT_EQ(v.status, Status::aborted);
}

// If measuring cannot prove the math mode, the machine code decides before anything runs.
TEST(LadderAudit, TheListingComesFirstWhereItDecides) {
  World w(twice);
  w.services.precision_tells = false;
  w.assembler.report = assembled(24);
  w.assembler.listing = [](std::vector<toolchain::AssemblyReport>& reports) -> Result<void> {
    reports[0].audit.kernels[0].code->mma = {{"HMMA.1688.F32.TF32", 1}};
    return {};
  };
  Verdict v = w.judge(World::kernel(kTwice));
  EXPECT_EQ(v.status, Status::rejected);
  EXPECT_EQ(report_of(v, Rung::audit).result, RungResult::failed);
  EXPECT_EQ(report_of(v, Rung::load).result, RungResult::skipped);
}

TEST(LadderAudit, WithoutToolsItIsSkipped) {
  World w(twice);
  Verdict v = w.judge(World::kernel(kTwice));
  EXPECT_EQ(report_of(v, Rung::audit).result, RungResult::skipped);
  EXPECT_EQ(report_of(v, Rung::audit).detail, "no assembler here");
  EXPECT_THAT(v.skipped, Contains("audit: no assembler here").Times(1));
}

TEST(LadderAudit, ARefusalNamesTheModule) {
  World w(twice);
  w.assembler.report = {.ok = false, .digest = "ptxas: line 7: no\nmore of it"};
  Verdict v = w.judge(World::kernel(kTwice));
  EXPECT_EQ(v.status, Status::failed);
  EXPECT_EQ(v.feedback.headline, "kernel.cu: the assembler rejects its PTX: ptxas: line 7: no");
  EXPECT_THAT(v.feedback.detail, HasSubstr("more of it"));
}

TEST(LadderAudit, StateAndCallsEndTheLadder) {
  World w(twice);
  w.assembler.report = assembled(24);
  w.assembler.report.audit.globals = {
      {.module = "", .name = "counter", .bytes = 4, .written = true}};
  Verdict v = w.judge(World::kernel(kTwice));
  EXPECT_EQ(v.status, Status::rejected);
  EXPECT_THAT(v.feedback.headline, HasSubstr("may write the variable 'counter'"));
  ASSERT_TRUE(v.audit);
  EXPECT_EQ(v.audit->globals[0].module, "kernel.cu");
  w.assembler.report.audit.globals.clear();
  w.assembler.report.audit.device_calls = {"malloc"};
  v = w.judge(World::kernel(kTwice));
  EXPECT_EQ(v.status, Status::failed);
  EXPECT_EQ(v.feedback.headline, "the device heap is not available");
}

TEST(LadderAudit, PrecisionIsJudgedByTheMachineCodeWhereNothingElseTells) {
  World w(twice);
  w.assembler.report = assembled(24);
  w.assembler.report.audit.kernels[0].code->mma["HMMA.1688.F32.TF32"] = 1;
  EXPECT_EQ(w.judge(World::kernel(kTwice)).status, Status::correct);
  w.services.precision_tells = false;
  EXPECT_EQ(w.judge(World::kernel(kTwice)).status, Status::rejected);
}

TEST(LadderAudit, RegistersOfTheAssemblerLimitTheBlock) {
  World w(twice);
  w.plan({{"steps", Json::parse(R"json([{"kernel": "f", "grid": ["ceil_div(n,1024)", 1, 1],
      "block": [1024, 1, 1], "args": [{"tensor": "x"}, {"tensor": "out"}, {"i32": "n"}]}])json")}});
  w.assembler.report = assembled(64);
  EXPECT_EQ(w.judge(World::kernel(kTwice)).status, Status::correct);
  w.assembler.report = assembled(65);
  Verdict v = w.judge(World::kernel(kTwice));
  EXPECT_EQ(v.status, Status::failed);
  EXPECT_THAT(v.feedback.headline, HasSubstr("1024 threads with 65 registers"));
}

TEST(LadderState, VariablesOfTheModuleAreFreshForEveryRun) {
  World w(twice);
  // Thread 0 is right only the first time.
  const std::string body =
      "mov.f32 %f2, %f1; setp.ne.s32 %p2, %r5, 0; mov.u32 %r8, 1; @%p2 bra GO;\n"
      "ld.global.u32 %r7, [state]; st.global.u32 [state], %r8; setp.ne.s32 %p3, %r7, 0;\n"
      "@%p3 mov.f32 %f2, 0f00000000;\nGO: add.f32 %f2, %f2, %f1;";
  for (const char* linkage : {".visible ", "", ".weak ", "\t.common "}) {
    std::string state = std::string(linkage) + ".global .align 4 .u32 state;";
    Verdict v = w.judge(World::kernel(body, {}, state), Rung::correctness);
    EXPECT_EQ(v.status, Status::correct) << linkage << v.feedback.headline;
  }
}

TEST(LadderPlan, LongMessagesAreCut) {
  World w(twice);
  w.toolchain.digest = "kernel.cu(3): error: " + std::string(3000, 'x') + "\n";
  Verdict v = w.judge({});
  EXPECT_GT(v.feedback.headline.size(), 300U);
  EXPECT_LT(v.feedback.headline.size(), 450U);
  EXPECT_GT(v.feedback.detail.size(), 1400U);
  EXPECT_LT(v.feedback.detail.size(), 1600U);
}

TEST(LadderPlan, TheErrorLineOfADigestIsTheHeadline) {
  World w(twice);
  w.toolchain.digest = "first line\nsecond line";
  EXPECT_EQ(w.judge({}).feedback.headline, "first line");
  w.toolchain.digest = "note\nan error here";
  EXPECT_EQ(w.judge({}).feedback.headline, "an error here");
}

TEST(LadderPlan, TooManyDistinctDefinesFail) {
  World w(twice);
  w.plan({{"defines", {{"ROWS", "dim(x,0)"}}}});
  for (int64_t i = 1; i < 65; ++i) {
    ShapeCase s = w.toy.task.shapes[0];
    s.name = "user" + std::to_string(i);
    s.kind = ShapeKind::user;
    s.tensors = {{"x", {64 + i, 32}}, {"out", {64 + i, 32}}};
    w.toy.task.shapes.push_back(s);
    if (i == 63) {
      Verdict v = w.judge(World::kernel(kTwice), Rung::compile);
      EXPECT_EQ(report_of(v, Rung::compile).detail, "64 modules, 0 from the cache");
      EXPECT_EQ(v.build_ids.size(), 64U);
    }
  }
  Verdict v = w.judge(World::kernel(kTwice), Rung::compile);
  EXPECT_EQ(v.status, Status::failed);
  EXPECT_EQ(v.feedback.headline, "the defines take more than 64 distinct values");
}

TEST(LadderPlan, SeveralProblemsOfThePlanAreAllTold) {
  World w(twice);
  w.plan({{"steps", Json::parse(R"json([{"kernel": "g", "grid": [1,1,1], "block": [1,1,1],
      "args": [{"tensor": "nothing"}]}])json")}});
  Verdict v = w.judge(World::kernel(kTwice));
  EXPECT_EQ(v.status, Status::failed);
  EXPECT_EQ(report_of(v, Rung::lint).result, RungResult::failed);
  EXPECT_THAT(v.feedback.detail, HasSubstr("no source declares a kernel named 'g'"));
  EXPECT_THAT(v.feedback.detail, HasSubstr("nothing"));
}

TEST(LadderPlan, AnotherArchitectureIsRefused) {
  World w(twice);
  w.plan({{"arch", {"sm_100a"}}});
  Verdict v = w.judge(World::kernel(kTwice));
  EXPECT_NE(v.status, Status::correct);
  EXPECT_EQ(report_of(v, Rung::compile).result, RungResult::failed);
  EXPECT_THAT(v.feedback.headline, HasSubstr("sm_100a"));
}

TEST(LadderPlan, ModulesThatDoNotLoadNameTheRunner) {
  World w(twice);
  Verdict v = w.judge(World::kernel("bra NOWHERE;"));
  EXPECT_EQ(v.status, Status::failed);
  EXPECT_EQ(report_of(v, Rung::load).result, RungResult::failed);
  EXPECT_THAT(v.feedback.headline, HasSubstr("NOWHERE"));
}

TEST(LadderProfile, AskingForAProfileTimesToo) {
  World w(twice);
  w.add_official(1 << 20);
  Verdict v = w.judge(World::kernel(kTwice), Rung::correctness, true);
  EXPECT_EQ(v.status, Status::correct) << v.feedback.headline;
  EXPECT_TRUE(v.timing);
  ASSERT_TRUE(v.profile);
  EXPECT_EQ(v.profile->shape, "official");
  EXPECT_THAT(report_of(v, Rung::profile).detail, testing::MatchesRegex("1 kernel, counters .*%"));
  for (const char* rung : {"lint", "compile", "audit", "load", "correctness", "timing", "profile"})
    EXPECT_THAT(w.progress, Contains(rung));
  EXPECT_EQ(v.program_id, program_id(w.program));
  EXPECT_EQ(v.task_id, "toy");
  EXPECT_EQ(v.device, "sim:h200");
  EXPECT_GT(v.elapsed, report_of(v, Rung::correctness).elapsed);
  EXPECT_GT(report_of(v, Rung::correctness).elapsed.count(), 0);
  Verdict no = w.judge(World::kernel(kTwice), Rung::timing);
  EXPECT_TRUE(no.timing);
  EXPECT_FALSE(no.profile);
  Verdict up = w.judge(World::kernel(kTwice), Rung::load, false);
  EXPECT_FALSE(up.timing);
}

TEST(LadderProfile, TimesOfSeveralKernelsAdd) {
  World w(twice);
  w.add_official(1 << 20);
  Verdict one = w.judge(World::kernel(kTwice), Rung::profile);
  Json step = Json::parse(R"json({"kernel": "f", "grid": ["ceil_div(n,256)", 1, 1],
      "block": [256, 1, 1], "args": [{"tensor": "x"}, {"tensor": "out"}, {"i32": "n"}]})json");
  w.plan({{"steps", {step, step}}});
  Verdict two = w.judge(World::kernel(kTwice), Rung::profile);
  ASSERT_TRUE(one.timing && two.timing && two.profile);
  EXPECT_EQ(two.profile->kernels.size(), 2U);
  EXPECT_THAT(report_of(two, Rung::profile).detail, HasSubstr("2 kernels"));
  EXPECT_GT(two.timing->time_ns, 1.8 * one.timing->time_ns);
  EXPECT_LE(two.timing->low_ns, two.timing->time_ns);
  EXPECT_GE(two.timing->high_ns, two.timing->time_ns);
  EXPECT_GE(two.timing->low_ns, two.timing->floor_ns);
  EXPECT_FALSE(two.timing->bound_by.empty());
  const KernelProfile& k = two.profile->kernels[0];
  EXPECT_EQ(k.origin, Origin::modelled);
  EXPECT_FALSE(k.lines.empty());
}

TEST(LadderProfile, ScratchAndPreparationAreThereAtTheOfficialShape) {
  World w(twice);
  w.add_official(1 << 20);
  Json to_tmp = Json::parse(R"json({"kernel": "f", "grid": ["ceil_div(n,256)", 1, 1],
      "block": [256, 1, 1], "args": [{"tensor": "x"}, {"tensor": "tmp"}, {"i32": "n"}]})json");
  Json from_tmp = to_tmp;
  from_tmp["args"][0]["tensor"] = "tmp", from_tmp["args"][1]["tensor"] = "out";
  w.plan({{"scratch", {{{"name", "tmp"}, {"dtype", "f32"}, {"shape", {"n"}}}}},
          {"steps", {to_tmp, from_tmp}}});
  Verdict v = w.judge(World::kernel("mul.f32 %f2, %f1, 0f3FB504F3;"), Rung::timing);  // sqrt(2)
  EXPECT_EQ(v.status, Status::correct) << v.feedback.headline;
  ASSERT_TRUE(v.timing);
}

// A program that runs long only at the official shape.
std::string long_when_large() {
  return World::kernel(
      "add.f32 %f2, %f1, %f1; mov.u32 %r7, 0;\n"
      "setp.lt.s32 %p3, %r1, 100000; @%p3 bra GO;\n"
      "L: add.s32 %r7, %r7, 1; setp.lt.s32 %p2, %r7, 100000000;\n"
      "@%p2 bra L;\nGO:");
}

TEST(LadderProfile, AKernelThatDoesNotEndAtTheOfficialShapeHasFailed) {
  World w(twice);
  w.add_official(1 << 20);
  Verdict v = w.judge(long_when_large());
  EXPECT_EQ(v.status, Status::failed) << v.feedback.headline;
  EXPECT_EQ(report_of(v, Rung::timing).result, RungResult::failed);
  EXPECT_THAT(v.feedback.headline, HasSubstr("f does not end at the official shape"));
  EXPECT_FALSE(v.timing);
}

TEST(LadderOfficial, ARunnerThatDoesNotComeBackIsUnsupported) {
  World w(twice);
  w.add_official(1 << 20);
  w.services.official_limit = std::chrono::milliseconds(1);
  const Verdict v = w.judge(long_when_large());
  EXPECT_EQ(v.status, Status::unsupported) << v.feedback.headline;
  EXPECT_EQ(report_of(v, Rung::correctness).result, RungResult::passed);
  EXPECT_EQ(report_of(v, Rung::timing).result, RungResult::failed);
  EXPECT_THAT(v.feedback.headline, HasSubstr("the official shape does not end: no answer within"));
  EXPECT_THAT(v.feedback.detail, HasSubstr("Neither its time nor its results are known"));
  EXPECT_FALSE(v.timing);
}

// Gives these outcomes at the official shape, one after another.
class ScriptedRunner : public Runner {
 public:
  explicit ScriptedRunner(std::vector<RunnerOutcome> outcomes)
      : Runner({.device = "sim:h200", .threads = 1}), outcomes_(std::move(outcomes)) {}
  Result<RunnerOutcome> run(const Context& ctx, const RunRequest& request) override {
    if (request.settings.sample_ctas == 0) return Runner::run(ctx, request);
    return outcomes_.at(asked++);
  }
  size_t asked = 0;

 private:
  std::vector<RunnerOutcome> outcomes_;
};

RunnerOutcome ended(RunnerOutcome::Kind kind) {
  RunnerOutcome out;
  out.kind = kind;
  out.text = "as the test wants";
  return out;
}

RunnerOutcome out_of_budget() {
  RunnerOutcome out;
  out.report.status = device::RunReport::Status::out_of_budget;
  device::LaunchTrace trace;
  trace.kernel = "f";
  trace.ctas_total = 1000;
  trace.longest_cta = 5;  // not an endless loop, so a larger budget may help
  out.report.traces.push_back(trace);
  return out;
}

TEST(LadderOfficial, ARunnerThatGivesNoReportIsNeverCorrect) {
  using Kind = RunnerOutcome::Kind;
  const RunnerOutcome hung = ended(Kind::hung), died = ended(Kind::died), more = out_of_budget();
  struct Case {
    std::vector<RunnerOutcome> outcomes;
    Status status;
  };
  for (const Case& c :
       {Case{{hung}, Status::unsupported}, Case{{died, hung}, Status::unsupported},
        Case{{more, hung}, Status::unsupported}, Case{{died, died}, Status::failed},
        Case{{more, died, hung}, Status::unsupported}, Case{{more, died, died}, Status::failed},
        Case{{died, more, hung}, Status::unsupported}}) {
    World w(twice);
    w.add_official(1 << 20);
    ScriptedRunner runner(c.outcomes);
    w.services.runner = lent(runner);
    const Verdict v = w.judge(World::kernel(kTwice));
    EXPECT_EQ(v.status, c.status) << v.feedback.headline;
    EXPECT_EQ(runner.asked, c.outcomes.size());
    EXPECT_EQ(report_of(v, Rung::timing).result, RungResult::failed);
    EXPECT_THAT(v.feedback.headline, HasSubstr("as the test wants"));
    EXPECT_FALSE(v.timing);
  }
}

TEST(LadderBudget, AnEndlessLoopFailsWithAHint) {
  World w(twice);
  Verdict v =
      w.judge(World::kernel("L: add.f32 %f2, %f1, %f1; setp.ne.s32 %p2, %r5, -1; @%p2 bra L;"),
              Rung::correctness);
  EXPECT_EQ(v.status, Status::failed);
  EXPECT_THAT(v.feedback.headline, HasSubstr("an endless loop?"));
  EXPECT_THAT(v.feedback.headline, HasSubstr("on shape small"));
}

TEST(LadderTrouble, ASourceThatFailsIsOurs) {
  World w(twice);
  w.pool.emplace(w.toy.task,
                 [](const Context&, const ShapeCase&, const std::string&,
                    uint64_t) -> Result<torch::TensorSet> { return world_error("no worker"); });
  w.services.pool = lent(*w.pool);
  Verdict v = w.judge(World::kernel(kTwice));
  EXPECT_EQ(v.status, Status::aborted);
  EXPECT_THAT(v.feedback.headline, HasSubstr("no worker"));
  EXPECT_EQ(v.sets_judged, 0);
}

}  // namespace
}  // namespace cutegen::eval
