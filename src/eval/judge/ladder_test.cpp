// SPDX-License-Identifier: Apache-2.0
#include "eval/judge/ladder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "device/testing/driver_process.h"
#include "eval/judge/time_shapes.h"
#include "eval/rungs/gpu_correctness.h"
#include "eval/rungs/prepare.h"
#include "eval/testing/ladder_world.h"

namespace cutegen::eval {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing_world::kTwice;
using testing_world::report_of;
using testing_world::twice;
using testing_world::World;

// A run's time includes zeroing scratch, so zeroing is a step.
TEST(PreparedShape, ZerosOfScratchAreSteps) {
  PreparedShape shape;
  shape.plan.scratch = {{.name = "garbage", .bytes = 64, .zero = false, .weights_life = false},
                        {.name = "sem", .bytes = 64, .zero = true, .weights_life = false},
                        {.name = "none", .bytes = 0, .zero = true}};
  shape.plan.prepare = {Fill{.step = "one", .buffer = "w", .value = 1, .dtype = DType::f32}};
  shape.plan.steps = {Launch{.step = "two"}};
  device::PlanSteps steps = shape.all_steps();
  ASSERT_EQ(steps.size(), 3u);
  EXPECT_EQ(std::get<Fill>(steps[0]).buffer, "sem");
  EXPECT_EQ(std::get<Fill>(steps[1]).buffer, "w");
  EXPECT_EQ(std::get<Launch>(steps[2]).step, "two");
}

TEST(Ladder, AnHonestProgramIsCorrectOnEverySet) {
  World w(twice);
  Verdict v = w.judge(World::kernel(kTwice));
  EXPECT_EQ(v.status, Status::correct) << v.feedback.headline;
  EXPECT_EQ(v.sets_judged, 3);
  EXPECT_EQ(w.toy.made, 3);
  for (Rung rung : {Rung::lint, Rung::compile, Rung::load, Rung::correctness})
    EXPECT_EQ(report_of(v, rung).result, RungResult::passed) << to_string(rung);
  EXPECT_EQ(report_of(v, Rung::correctness).detail, "3 sets on 1 shape");
  EXPECT_EQ(report_of(v, Rung::lint).detail, "1 source, plan valid");
  EXPECT_EQ(report_of(v, Rung::profile).detail, "not asked for");
  EXPECT_EQ(v.feedback.headline, "correct on 3 sets");
  EXPECT_THAT(v.skipped, Contains("timing: the official shape was not prepared"));
  EXPECT_THAT(v.build_ids, testing::ElementsAre("build-kernel.cu"));
  EXPECT_THAT(w.progress, Contains("correctness 3/3"));
  ASSERT_TRUE(v.compat);
  EXPECT_EQ(v.compat->elements, 2 * 2048);  // twice, with different poison
  EXPECT_EQ(v.compat->wrong, 0);
}

TEST(Ladder, TheSandboxGradeIsTheWeakestOfAll) {
  World w(twice);
  Verdict v = w.judge(World::kernel(kTwice), Rung::load);
  EXPECT_TRUE(v.sandbox.held.contains("namespaces"));
  EXPECT_EQ(v.sandbox.held.at("seccomp"), true);
  using sandbox::Grade;
  Grade full{.held = {{"a", true}, {"b", true}}, .label = Protection::full};
  Grade partial{.held = {{"a", false}}, .label = Protection::partial}, none{};
  EXPECT_EQ(weakest({full, full}).label, Protection::full);
  EXPECT_EQ(weakest({full, partial}).label, Protection::partial);
  EXPECT_EQ(weakest({full, none}).label, Protection::partial);
  EXPECT_EQ(weakest({none, none}).label, Protection::none);
  EXPECT_EQ(weakest({}).label, Protection::none);
  EXPECT_EQ(weakest({full, partial}).held.at("a"), false);
  EXPECT_EQ(weakest({full, partial}).held.at("b"), true);
}

TEST(Ladder, StopsWhereItIsAskedTo) {
  World w(twice);
  Verdict v = w.judge(World::kernel(kTwice), Rung::compile);
  EXPECT_EQ(v.status, Status::correct);
  EXPECT_EQ(report_of(v, Rung::compile).result, RungResult::passed);
  EXPECT_EQ(report_of(v, Rung::load).result, RungResult::skipped);
  EXPECT_EQ(v.feedback.headline, "no step failed; correctness was not judged");
  EXPECT_EQ(v.sets_judged, 0);
}

TEST(Ladder, WrongValuesAreFailedWithThePatternAndNoValue) {
  World w(twice);
  Verdict v = w.judge(World::kernel("mul.f32 %f2, %f1, 0f40001000;"));  // 2.0009765625
  EXPECT_EQ(v.status, Status::failed);
  EXPECT_EQ(report_of(v, Rung::correctness).result, RungResult::failed);
  EXPECT_EQ(report_of(v, Rung::timing).detail, "an earlier step failed");
  ASSERT_EQ(v.feedback.mismatches.size(), 1U);
  const Mismatch& m = v.feedback.mismatches[0];
  EXPECT_EQ(m.output, "out");
  EXPECT_EQ(m.shape, "small");
  EXPECT_EQ(m.family, "made");
  EXPECT_EQ(m.elements, 2048);
  EXPECT_GT(m.wrong, 1900);
  EXPECT_EQ(m.first.size(), 5U);
  EXPECT_GT(m.worst_ratio, 10);
  EXPECT_EQ(v.sets_judged, 1);  // ends at the first wrong set
  EXPECT_THAT(v.feedback.detail, HasSubstr("first wrong at [0, 0]"));
  ASSERT_TRUE(v.compat);
  EXPECT_GT(v.compat->wrong, 0);
}

TEST(Ladder, WhatIsRightOnOfficialInputsOnlyFailsOnAnotherFamily) {
  World w([](double x) { return x > 0 ? x : 0; });
  Verdict v = w.judge(World::kernel("mov.f32 %f2, %f1;"));
  EXPECT_EQ(v.status, Status::failed);
  ASSERT_FALSE(v.feedback.mismatches.empty());
  EXPECT_EQ(v.feedback.mismatches[0].family, "signed");
  EXPECT_EQ(v.compat->wrong, 0);
}

TEST(Ladder, UnwrittenElementsAreNamed) {
  World w(twice);
  Verdict v = w.judge(World::kernel(kTwice, "add.s32 %r6, %r1, -1; min.s32 %r1, %r1, %r6;"));
  EXPECT_EQ(v.status, Status::failed);
  ASSERT_FALSE(v.feedback.mismatches.empty());
  EXPECT_EQ(v.feedback.mismatches[0].wrong, 1);
  EXPECT_EQ(v.feedback.mismatches[0].unwritten, 1);
  EXPECT_THAT(v.feedback.detail, HasSubstr("never written: 1 of the wrong elements"));
}

// x becomes x + 1, the output is 2 x.
struct MutatingWorld : World {
  MutatingWorld() : World(twice) {
    toy.mutate([](double x) { return x + 1; });
  }
};

TEST(Ladder, AMutatedTensorIsReadAndWrittenInPlace) {
  MutatingWorld w;
  Verdict v = w.judge(World::kernel(
      "add.f32 %f2, %f1, %f1; add.f32 %f3, %f1, 0f3f800000; st.global.f32 [%rd4], %f3;"));
  EXPECT_EQ(v.status, Status::correct) << v.feedback.headline;
  EXPECT_EQ(v.sets_judged, 3);
  EXPECT_EQ(v.compat->elements, 2 * 2 * 2048);
}

TEST(Ladder, AMutatedTensorThatIsLeftAsItWasIsNamed) {
  MutatingWorld w;
  Verdict v = w.judge(World::kernel(kTwice));
  EXPECT_EQ(v.status, Status::failed);
  EXPECT_THAT(v.feedback.headline, HasSubstr("x: 2048 of 2048 elements wrong"));
  EXPECT_THAT(v.feedback.headline, HasSubstr("every element, never written"));
  ASSERT_EQ(v.feedback.mismatches.size(), 1U);
  EXPECT_EQ(v.feedback.mismatches[0].unwritten, 2048);
}

TEST(Ladder, AMutatedTensorThatIsUpdatedTwiceIsWrong) {
  MutatingWorld w;
  Verdict v = w.judge(World::kernel(
      "add.f32 %f2, %f1, %f1; add.f32 %f3, %f1, 0f40000000; st.global.f32 [%rd4], %f3;"));
  EXPECT_EQ(v.status, Status::failed);
  EXPECT_THAT(v.feedback.headline, HasSubstr("x: 2048 of 2048 elements wrong"));
  EXPECT_EQ(v.feedback.mismatches[0].unwritten, 0);
}

TEST(Ladder, OtherInputsStayReadOnly) {
  World w(twice);
  Verdict v = w.judge(World::kernel("add.f32 %f2, %f1, %f1; st.global.f32 [%rd4], %f2;"));
  EXPECT_EQ(v.status, Status::failed);
  EXPECT_THAT(v.feedback.headline, HasSubstr("read-only"));
}

TEST(Ladder, AnOfficialShapeWhoseMutatedTensorNoStepIsGivenFails) {
  MutatingWorld w;
  w.add_official(1 << 20);
  w.plan({{"steps",
           Json::array(
               {{{"kernel", "f"},
                 {"when", "dim(x,0) < 100"},
                 {"grid", {"ceil_div(n,256)"}},
                 {"block", {256}},
                 {"args", Json::array({{{"tensor", "x"}}, {{"tensor", "out"}}, {{"i32", "n"}}})}},
                {{"fill", "out"}, {"value", 0}, {"when", "dim(x,0) >= 100"}}})}});
  Verdict v = w.judge(World::kernel(
      "add.f32 %f2, %f1, %f1; add.f32 %f3, %f1, 0f3f800000; st.global.f32 [%rd4], %f3;"));
  EXPECT_EQ(v.status, Status::failed);
  EXPECT_THAT(v.feedback.headline, HasSubstr("nothing writes the mutated tensor 'x'"));
}

TEST(Ladder, AResultThatDependsOnUnwrittenMemoryIsFoundOut) {
  World w([](double x) { return x > 0 ? x : 0; });
  // max(x, output) swallows NaN but not a large number.
  Verdict v = w.judge(World::kernel(
      "ld.global.f32 %f3, [%rd5]; max.f32 %f2, %f1, %f3; max.f32 %f2, %f2, 0f00000000;"));
  EXPECT_EQ(v.status, Status::failed);
  // max(x, 0) + 0 * output survives a large number but not NaN, so the first set fails.
  v =
      w.judge(World::kernel("ld.global.f32 %f3, [%rd5]; max.f32 %f2, %f1, 0f00000000;\n"
                            "fma.rn.f32 %f2, %f3, 0f00000000, %f2;"));
  EXPECT_EQ(v.status, Status::failed);
  EXPECT_EQ(v.sets_judged, 1);
}

TEST(Ladder, OutOfBoundsIsAFinding) {
  World w(twice);
  Verdict v = w.judge(World::kernel(kTwice, "add.s32 %r1, %r1, 1; add.s32 %r5, %r5, 1;"));
  EXPECT_EQ(v.status, Status::failed);
  EXPECT_THAT(v.feedback.headline, HasSubstr("(shape small)"));
  EXPECT_THAT(v.feedback.mismatches, IsEmpty());
  EXPECT_EQ(v.sets_judged, 1);
}

TEST(Ladder, ARaceIsAFindingThoughTheValuesAreRight) {
  World w(twice);
  // Reads what a thread of the next warp writes, without a barrier between, but does not use it.
  const std::string racy =
      "mov.u32 %r6, s; shl.b32 %r7, %r4, 2; add.u32 %r8, %r6, %r7; st.shared.f32 [%r8], %f1;\n"
      "xor.b32 %r9, %r7, 128; add.u32 %r9, %r9, %r6; ld.shared.f32 %f3, [%r9];\n";
  Verdict v = w.judge(World::kernel(racy + kTwice, "", ".shared .align 4 .b8 s[1024];"));
  EXPECT_EQ(v.status, Status::failed);
  EXPECT_THAT(v.feedback.headline, HasSubstr("shared_race"));
  EXPECT_THAT(v.feedback.mismatches, IsEmpty());
}

TEST(Ladder, UnknownInstructionsAreUnsupported) {
  World w(twice);
  EXPECT_EQ(w.judge(World::kernel("pmevent 3; mov.f32 %f2, %f1;")).status, Status::unsupported);
}

TEST(Ladder, BrokenPtxFailsAtLoad) {
  World w(twice);
  Verdict v = w.judge("this is no PTX");
  EXPECT_EQ(v.status, Status::failed);
  EXPECT_EQ(report_of(v, Rung::load).result, RungResult::failed);
}

TEST(Ladder, LintComesFirstAndItsStatusIsTheWorst) {
  World w(twice);
  w.program.sources["kernel.cu"] +=
      "\n#include <iostream>\n__device__ int state;\n__device__ void g() { malloc(1); }";
  Verdict v = w.judge(World::kernel(kTwice));
  EXPECT_EQ(v.status, Status::rejected);
  EXPECT_THAT(v.feedback.headline, HasSubstr("keeps state"));
  EXPECT_THAT(v.feedback.detail, HasSubstr("iostream"));
  EXPECT_TRUE(w.toolchain.requests.empty());
  w.program.sources["kernel.cu"] = "extern \"C\" __global__ void g(float* x) {}";
  v = w.judge(World::kernel(kTwice));
  EXPECT_EQ(v.status, Status::failed);
  EXPECT_EQ(report_of(v, Rung::lint).result, RungResult::failed);
}

TEST(Ladder, CompileErrorsAreTheCandidatesAndTroubleIsOurs) {
  World w(twice);
  w.toolchain.digest = "In kernel.cu\nkernel.cu(3): error: no such thing\nmore";
  Verdict v = w.judge({});
  EXPECT_EQ(v.status, Status::failed);
  EXPECT_EQ(v.feedback.headline, "kernel.cu(3): error: no such thing");
  EXPECT_THAT(v.feedback.detail, HasSubstr("more"));
  w.toolchain.trouble = Error{.kind = ErrorKind::world, .message = "no compiler"};
  v = w.judge({});
  EXPECT_EQ(v.status, Status::aborted);
  EXPECT_THAT(v.feedback.headline, HasSubstr("no compiler"));
}

TEST(Ladder, ShapesThatThePlanRefusesAreLeftOutByName) {
  World w(twice);
  ShapeCase odd = w.toy.task.shapes[0];
  odd.name = "odd1";
  odd.kind = ShapeKind::odd;
  odd.tensors = {{"x", {7, 3}}, {"out", {7, 3}}};
  w.toy.task.shapes.push_back(odd);
  w.plan({{"requires", {"n % 256 == 0"}}});
  Verdict v = w.judge(World::kernel(kTwice));
  EXPECT_EQ(v.status, Status::correct) << v.feedback.headline;
  EXPECT_THAT(v.skipped, Contains(HasSubstr("shape odd1: ")));
  w.plan({{"requires", {"n > 5000"}}});
  v = w.judge(World::kernel(kTwice));
  EXPECT_EQ(v.status, Status::unsupported);
  EXPECT_THAT(v.feedback.headline, HasSubstr("no test shape is left: shape small"));
  w.toy.task.shapes[0].kind = ShapeKind::official;
  v = w.judge(World::kernel(kTwice));
  EXPECT_EQ(v.status, Status::unsupported);
  EXPECT_THAT(v.feedback.headline, HasSubstr("the plan rejects the official shape"));
}

// A task may have no test shape: its module may run only at the sizes in the task file.
TEST(Ladder, ASmallOfficialShapeIsEnoughAndTheVerdictSaysSo) {
  World w(twice);
  w.toy.task.shapes.clear();
  w.add_official(64);
  const Verdict v = w.judge(World::kernel(kTwice));
  EXPECT_EQ(v.status, Status::correct) << v.feedback.headline;
  EXPECT_EQ(v.sets_judged, 3);  // all families
  EXPECT_THAT(v.marks, Contains(HasSubstr("no other shape than the official one was tested")));
  EXPECT_EQ(w.judge(World::kernel("mov.f32 %f2, %f1;")).status, Status::failed);
}

TEST(Ladder, ALargeOfficialShapeAloneIsJudgedOnAGpuOnly) {
  World w(twice);
  w.toy.task.shapes.clear();
  w.add_official(1 << 20);
  const Verdict v = w.judge(World::kernel(kTwice));
  EXPECT_EQ(v.status, Status::unsupported);
  EXPECT_THAT(v.feedback.headline, HasSubstr("x.shape[0]"));
  EXPECT_THAT(v.feedback.headline, HasSubstr("a GPU judges the official shape"));
}

TEST(Ladder, ALargeOfficialShapeAloneNeedsAComparisonOnTheGpu) {
  device::cuda::with_driver(device::cuda::kNoDriver, [] {
    World w(twice);
    w.toy.task.shapes.clear();
    w.add_official(1 << 20);
    GpuTruths official(
        {.device = "cuda:0", .python = "/no/python", .toolchain = lent(w.toolchain)});
    w.services.official = lent(official);
    const Verdict v = w.judge(World::kernel(kTwice));
    EXPECT_EQ(v.status, Status::unsupported);
    EXPECT_THAT(v.feedback.headline, HasSubstr("outputs at the official shape cannot be compared"));
  });
}

TEST(Ladder, DefinesThatDifferByShapeAreCompiledApart) {
  World w(twice);
  ShapeCase other = w.toy.task.shapes[0];
  other.name = "odd1";
  w.toy.task.shapes.push_back(other);
  w.plan({{"defines", {{"ROWS", "dim(x,0)"}}}});
  Verdict v = w.judge(World::kernel(kTwice), Rung::load);
  EXPECT_EQ(w.toolchain.requests.size(), 1U);  // the same sizes share a module
  EXPECT_EQ(report_of(v, Rung::load).detail, "2 shapes resolved");
  w.toy.task.shapes[1].tensors = {{"x", {32, 64}}, {"out", {32, 64}}};
  w.toolchain.requests.clear();
  v = w.judge(World::kernel(kTwice), Rung::load);
  ASSERT_EQ(w.toolchain.requests.size(), 2U);
  EXPECT_NE(w.toolchain.requests[0].defines, w.toolchain.requests[1].defines);
  EXPECT_EQ(report_of(v, Rung::compile).detail, "2 modules, 0 from the cache");
}

TEST(Ladder, AnExpressionThatFailsAtOneShapeFailsTheProgram) {
  World w(twice);
  w.plan({{"symbols", {{"n", "size(x)"}, {"bad", "n / (dim(x,0) - 64)"}}},
          {"defines", {{"V", "bad"}}}});
  Verdict v = w.judge(World::kernel(kTwice));
  EXPECT_EQ(v.status, Status::failed);
  EXPECT_THAT(v.feedback.headline, HasSubstr("shape small: "));
  EXPECT_THAT(v.feedback.headline, HasSubstr("division by zero"));
}

TEST(Ladder, LimitsOfTheGpuAreNamedBeforeAnythingRuns) {
  World w(twice);
  w.plan({{"steps", Json::parse(R"json([{"kernel": "f", "grid": [8,1,1], "block": [1024,1,1],
      "cooperative": true, "shared_bytes": 240000,
      "args": [{"tensor": "x"}, {"tensor": "out"}, {"i32": "n"}]}])json")}});
  Verdict v = w.judge(World::kernel(kTwice));
  EXPECT_EQ(v.status, Status::failed);
  EXPECT_THAT(v.feedback.headline, HasSubstr("240000 bytes of shared memory: the limit is 232448"));
  EXPECT_EQ(v.sets_judged, 0);
}

TEST(Timing, TheOfficialShapeIsModelledFromASample) {
  World w(twice);
  w.add_official(1 << 20);
  Verdict v = w.judge(World::kernel(kTwice), Rung::profile);
  EXPECT_EQ(v.status, Status::correct) << v.feedback.headline;
  EXPECT_EQ(v.sets_judged, 3);  // without the official shape
  ASSERT_TRUE(v.timing);
  EXPECT_EQ(v.timing->origin, Origin::modelled);
  EXPECT_EQ(v.timing->shape, "official");
  EXPECT_GE(v.timing->time_ns, v.timing->floor_ns);
  EXPECT_NEAR(v.timing->floor_ns, ((1 << 20) * 32 * 8 - 52'428'800) / 4.8e12 * 1e9, 1);
  EXPECT_NEAR(v.timing->reachable_ns, (1 << 20) * 32 * 8 / 4.8e12 / 0.92 * 1e9 + 2000, 1);
  ASSERT_TRUE(v.profile);
  EXPECT_EQ(v.profile->kernels.size(), 1U);
  EXPECT_THAT(v.feedback.headline, HasSubstr("modelled, floor"));
  EXPECT_THAT(v.feedback.bottleneck, HasSubstr("x the floor of"));
}

TEST(Timing, AModelledTimeBelowTheRooflineIsReportedAsItIs) {
  World w(twice);
  w.add_official(1 << 20);
  const Verdict usual = w.judge(World::kernel(kTwice));
  w.toy.task.shapes[0].flops = Flops{1e15};  // as after an algebraic rewrite
  const Verdict v = w.judge(World::kernel(kTwice));
  ASSERT_TRUE(usual.timing && v.timing);
  EXPECT_EQ(v.status, Status::correct) << v.feedback.headline;
  EXPECT_LT(v.timing->time_ns, v.timing->roofline_ns);
  EXPECT_DOUBLE_EQ(v.timing->floor_ns, usual.timing->floor_ns);
  EXPECT_NEAR(v.timing->time_ns, usual.timing->time_ns, 0.1 * usual.timing->time_ns);
  EXPECT_LE(*v.timing->low_ns, v.timing->time_ns);
}

TEST(Timing, AModelledTimeBelowTheFloorKeepsItsValueIfTheTrafficIsThere) {
  World w(twice);
  w.add_official(1 << 20);
  const double least = (1 << 20) * 32 * 8;
  w.toy.task.shapes[0].least_bytes = Bytes{int64_t(3 * least)};  // three times the kernel's
  const Verdict v = w.judge(World::kernel(kTwice));
  EXPECT_EQ(v.status, Status::correct) << v.feedback.headline;
  ASSERT_TRUE(v.timing);
  EXPECT_LT(v.timing->time_ns, v.timing->floor_ns);
  EXPECT_THAT(report_of(v, Rung::timing).detail,
              HasSubstr("the time model underestimates this program"));
}

TEST(Timing, ASmallOfficialShapeIsJudgedToo) {
  World w(twice);
  w.toy.task.shapes[0].kind = ShapeKind::official;
  w.toy.task.shapes[0].least_bytes = Bytes{2048 * 8};
  Verdict v = w.judge(World::kernel(kTwice));
  EXPECT_EQ(v.sets_judged, 3);
  EXPECT_TRUE(v.timing);
}

TEST(Timing, ASmallOfficialShapeIsJudgedAfterTheOthers) {
  World w(twice);
  w.add_official(64);
  Verdict right = w.judge(World::kernel(kTwice));
  EXPECT_EQ(right.sets_judged, 6);
  Verdict wrong = w.judge(World::kernel("add.f32 %f2, %f1, 0f3f800000;"));
  ASSERT_FALSE(wrong.feedback.mismatches.empty());
  EXPECT_EQ(wrong.feedback.mismatches[0].shape, "small");
}

// Returns at once if n is large.
constexpr const char* kIdleIfLarge = "setp.gt.s32 %p2, %r1, 100000; @%p2 bra DONE;";

TEST(Timing, DoingNothingAtTheOfficialShapeIsFoundOut) {
  World w(twice);
  w.add_official(1 << 21);
  Verdict v = w.judge(World::kernel(kTwice, kIdleIfLarge));
  EXPECT_EQ(v.status, Status::rejected);
  EXPECT_EQ(report_of(v, Rung::timing).result, RungResult::failed);
  EXPECT_THAT(v.feedback.headline, HasSubstr("it omits work"));
  w.plan({{"steps", Json::parse(R"json([{"kernel": "f", "grid": ["ceil_div(n,256)",1,1],
      "block": [256,1,1], "when": "n < 100000",
      "args": [{"tensor": "x"}, {"tensor": "out"}, {"i32": "n"}]}])json")}});
  v = w.judge(World::kernel(kTwice));
  EXPECT_EQ(v.status, Status::failed);
  EXPECT_EQ(v.feedback.headline, "nothing writes the output 'out' at the official shape");
}

// The floor contains no writes that the L2 may keep. The empty blocks take longer than this floor,
// so only the missing stores prove that the program is wrong.
TEST(Timing, TheTimeOfWritesThatTheL2KeepsIsNoFloor) {
  World w(twice);
  w.add_official(1 << 19);
  const Verdict v = w.judge(World::kernel(kTwice, kIdleIfLarge));
  EXPECT_EQ(v.status, Status::failed);
  EXPECT_THAT(v.feedback.headline, HasSubstr("the blocks write 0 B of 67.1 MB"));
}

// Three of four blocks have nothing to do. For one seed in six, a sample of eight blocks has only
// idle ones besides the first block.
TEST(Timing, BlocksThatWriteNothingAreNoProofOfWorkLeftOut) {
  World w(twice);
  w.add_official(1 << 20);
  w.plan({{"steps", Json::parse(R"json([{"kernel": "f", "grid": ["4*ceil_div(n,256)",1,1],
      "block": [256,1,1],
      "args": [{"tensor": "x"}, {"tensor": "out"}, {"i32": "n"}]}])json")}});
  const std::string ptx = World::kernel(
      kTwice,
      "and.b32 %r6, %r2, 3; setp.ne.s32 %p2, %r6, 0; @%p2 bra DONE; shr.u32 %r6, %r2, 2; "
      "mad.lo.s32 %r5, %r6, %r3, %r4;");
  for (uint64_t seed = 1; seed <= 24; ++seed) {
    w.services.sample_seed = seed;
    const Verdict v = w.judge(ptx);
    EXPECT_EQ(v.status, Status::correct) << v.feedback.headline << ", seed " << seed;
  }
}

TEST(Timing, FindingsAtTheOfficialShapeCount) {
  World w(twice);
  w.add_official(1 << 20);
  Verdict v = w.judge(World::kernel(
      kTwice, "setp.gt.s32 %p2, %r1, 100000; @%p2 add.s32 %r5, %r5, 1; @%p2 add.s32 %r1, %r1, 1;"));
  EXPECT_EQ(v.status, Status::failed);
  EXPECT_THAT(v.feedback.headline, HasSubstr("(official shape)"));
}

// A shape that the user adds, with twice as many rows.
ShapeCase weighted(const World& w, const std::string& name, double weight) {
  ShapeCase out = w.toy.task.shapes[0];
  out.name = name, out.kind = ShapeKind::user, out.weight = weight;
  for (auto& [tensor, shape] : out.tensors) shape[0] *= 2;
  out.least_bytes = Bytes{2 * out.least_bytes.value};
  out.flops = Flops{2 * out.flops.value};
  return out;
}

TEST(WeightedShapes, EachIsTimedAndTheHeadlineIsTheirWeightedGeometricMean) {
  World w(twice);
  w.add_official(1 << 20);
  w.toy.task.shapes.push_back(weighted(w, "wide", 3));
  w.toy.task.shapes.push_back(weighted(w, "tested", 0));
  w.toy.task.shapes.back().tensors = {{"x", {64, 32}}, {"out", {64, 32}}};
  Verdict v = w.judge(World::kernel(kTwice), Rung::profile);
  EXPECT_EQ(v.status, Status::correct) << v.feedback.headline;
  EXPECT_EQ(v.sets_judged, 6) << "small and tested; the timed ones are too large";
  ASSERT_TRUE(v.timing);
  const Timing& t = *v.timing;
  EXPECT_EQ(t.shape, "weighted shapes");
  ASSERT_EQ(t.shapes.size(), 2U);
  EXPECT_EQ(t.shapes[0].shape, "official");
  EXPECT_EQ(t.shapes[1].shape, "wide");
  EXPECT_EQ(t.shapes[1].weight, 3);
  EXPECT_GT(t.shapes[1].time_ns, 1.5 * t.shapes[0].time_ns);
  EXPECT_NEAR(std::log(t.time_ns),
              (std::log(t.shapes[0].time_ns) + 3 * std::log(t.shapes[1].time_ns)) / 4, 1e-9);
  EXPECT_NEAR(t.floor_ns, floor_of(w.services.gpu, w.toy.task).floor_ns, 1e-6);
  EXPECT_NEAR(std::log(t.floor_ns),
              (std::log(t.shapes[0].floor_ns) + 3 * std::log(t.shapes[1].floor_ns)) / 4, 1e-9);
  EXPECT_LE(*t.low_ns, t.time_ns);
  EXPECT_GE(*t.high_ns, t.time_ns);
  EXPECT_THAT(v.feedback.headline, HasSubstr("weighted geometric mean of 2 shapes: official "));
  EXPECT_THAT(v.feedback.headline, HasSubstr("(weight 3)"));
  ASSERT_TRUE(v.profile);
  EXPECT_EQ(v.profile->shape, "official");
  EXPECT_EQ(v.profile->kernels.size(), 1U) << "only the official shape's";
  auto back = read_json<Verdict>(to_json(v));
  ASSERT_TRUE(back) << back.error().text();
  EXPECT_EQ(to_json(*back), to_json(v));
}

TEST(Headline, SaysThatWithoutTimingNothingIsComparedAtLargeShapes) {
  World w(twice);
  w.add_official(1 << 20);
  Verdict v = w.judge(World::kernel(kTwice), Rung::correctness);
  EXPECT_EQ(v.feedback.headline,
            "correct on 3 sets; outputs of the official shape were not compared (only the timing "
            "step compares them, and it did not run)");
  EXPECT_THAT(v.official_not_compared, HasSubstr("did not run"));
  w.toy.task.shapes.push_back(weighted(w, "wide", 1));
  v = w.judge(World::kernel(kTwice), Rung::correctness);
  EXPECT_THAT(
      v.feedback.headline,
      HasSubstr("; outputs of the official shape and the shape 'wide' were not compared ("));
  auto back = read_json<Verdict>(to_json(v));
  ASSERT_TRUE(back) << back.error().text();
  EXPECT_EQ(back->weighted_not_compared, v.weighted_not_compared);
  v = w.judge(World::kernel(kTwice), Rung::load);
  EXPECT_EQ(v.feedback.headline, "no step failed; correctness was not judged");
  World small(twice);
  small.add_official(64);  // a test shape
  v = small.judge(World::kernel(kTwice), Rung::correctness);
  EXPECT_EQ(v.feedback.headline, "correct on 6 sets");
}

// Above the official size, the blocks are of 512 kinds, and the simulator does not run all of them.
TEST(Headline, NamesAWeightedShapeThatTheSimulatorDidNotCompare) {
  World w(twice);
  w.add_official(1 << 20);
  w.toy.task.shapes.push_back(weighted(w, "wide", 1));
  std::string kinds =
      ".reg .b32 %k<9>, %b<9>; .reg .pred %q<9>; setp.gt.s32 %p2, %r1, 40000000; "
      "selp.b32 %r6, %r2, 0, %p2; ";
  for (int bit = 0; bit < 9; ++bit)
    kinds += fmt::format(
        "shr.u32 %k{0}, %r6, {0}; and.b32 %b{0}, %k{0}, 1; setp.ne.u32 %q{0}, %b{0}, 0; "
        "@%q{0} add.s32 %r7, %r4, {0}; ",
        bit);
  const Verdict v = w.judge(World::kernel(kTwice, kinds));
  ASSERT_EQ(v.status, Status::correct) << v.feedback.headline;
  EXPECT_EQ(v.official_not_compared, "");
  EXPECT_THAT(v.weighted_not_compared,
              testing::ElementsAre(testing::Pair("wide", HasSubstr("kinds of blocks of f"))));
  EXPECT_THAT(v.feedback.headline, HasSubstr("; outputs of the shape 'wide' were not compared ("));
}

TEST(Headline, NamesTheShapesThatAGpuDidNotCompare) {
  device::cuda::with_driver(device::cuda::kNoDriver, [] {
    World w(twice);
    w.add_official(1 << 20);
    w.toy.task.shapes.push_back(weighted(w, "wide", 1));
    GpuTruths official(
        {.device = "cuda:0", .python = "/no/python", .toolchain = lent(w.toolchain)});
    w.services.official = lent(official);
    w.services.device_name = "cuda:0";
    const Verdict v = w.judge(World::kernel(kTwice), Rung::correctness);
    ASSERT_EQ(v.status, Status::correct) << v.feedback.headline;
    EXPECT_THAT(
        v.feedback.headline,
        testing::StartsWith("correct on 3 sets; outputs of the official shape and the shape 'wide' "
                            "were not compared ("));
    EXPECT_THAT(v.feedback.headline, HasSubstr("there is no GPU driver here"));
    EXPECT_THAT(v.weighted_not_compared, testing::ElementsAre(testing::Key("wide")));
  });
}

TEST(Headline, KeepsTheShapesOfALongOne) {
  Verdict v;
  v.official_not_compared = std::string(900, 'x');
  const std::string out = with_not_compared(std::string(900, 'y'), v);
  EXPECT_THAT(out, HasSubstr("; outputs of the official shape were not compared (xxx"));
  EXPECT_LT(out.size(), 700U);
  EXPECT_EQ(with_not_compared("correct", Verdict{}), "correct");
}

TEST(WeightedShapes, ASmallOneIsJudgedAsATestShapeToo) {
  World w(twice);
  w.add_official(1 << 20);
  ShapeCase thin = w.toy.task.shapes[1];
  thin.name = "thin", thin.kind = ShapeKind::user;
  w.toy.task.shapes.push_back(thin);
  Verdict v = w.judge(World::kernel(kTwice));
  EXPECT_EQ(v.sets_judged, 6);
  ASSERT_TRUE(v.timing);
  EXPECT_EQ(v.timing->shapes.size(), 2U);
}

TEST(WeightedShapes, OneThatDoesNothingThereIsFoundOut) {
  World w(twice);
  w.add_official(1 << 20);
  w.toy.task.shapes.push_back(weighted(w, "wide", 1));
  // Returns at once above the official size.
  Verdict v = w.judge(World::kernel(kTwice, "setp.gt.s32 %p2, %r1, 40000000; @%p2 bra DONE;"));
  EXPECT_EQ(v.status, Status::rejected);
  EXPECT_FALSE(v.timing);
  EXPECT_THAT(v.feedback.headline, HasSubstr("at the shape 'wide' the program moves"));
}

TEST(WeightedShapes, APlanThatRefusesOneIsUnsupported) {
  World w(twice);
  w.add_official(1 << 20);
  w.toy.task.shapes.push_back(weighted(w, "wide", 1));
  w.plan({{"requires", {"n < 40000000"}}});
  Verdict v = w.judge(World::kernel(kTwice));
  EXPECT_EQ(v.status, Status::unsupported);
  EXPECT_THAT(v.feedback.headline,
              HasSubstr("the plan rejects the shape 'wide', which has a weight: "));
  w.toy.task.shapes.back().weight = 0;
  w.pool.reset();
  w.toy.task.shapes.back().tensors = {{"x", {1 << 21, 32}}, {"out", {1 << 21, 32}}};
  v = w.judge(World::kernel(kTwice));
  EXPECT_EQ(v.status, Status::correct) << v.feedback.headline;
  EXPECT_THAT(v.skipped, Contains(HasSubstr("shape wide: ")));
}

// A mean over fewer shapes would not be comparable with other programs' means.
TEST(WeightedShapes, OneThatCannotBeTimedLeavesTheProgramWithoutATime) {
  World w(twice);
  w.add_official(1 << 20);
  w.toy.task.shapes.push_back(weighted(w, "wide", 1));
  w.toolchain.ptx = World::kernel(kTwice);
  Prepared prepared(w.program, w.toy.task);
  w.pool.emplace(w.toy.task, w.toy.source());
  w.services.pool = lent(*w.pool);
  ASSERT_TRUE(prepared.compile(Context(), w.services)->passed);
  ASSERT_TRUE(prepared.load(Context(), w.services)->passed);
  std::vector<std::string> asked;
  auto timed = time_shapes(prepared, [&](const PreparedShape& shape) -> Result<TimingOutcome> {
    asked.push_back(shape.shape->name);
    TimingOutcome out;
    out.marks = {"a mark"};
    if (asked.size() == 2) {
      out.result = RungResult::skipped;
      out.end = rung_passed("no time: it needs 300 GB");
      return out;
    }
    out.timing = Timing{};
    out.timing->time_ns = 5;
    out.kernels.resize(1);
    return out;
  });
  ASSERT_TRUE(timed) << timed.error().text();
  EXPECT_THAT(asked, testing::ElementsAre("official", "wide"));
  EXPECT_FALSE(timed->outcome.timing);
  EXPECT_EQ(timed->outcome.result, RungResult::skipped);
  EXPECT_EQ(timed->outcome.end.detail, "no time: it needs 300 GB (shape 'wide')");
  EXPECT_EQ(timed->outcome.kernels.size(), 1U);
  ASSERT_TRUE(timed->official);
  EXPECT_EQ(timed->official->time_ns, 5);
  EXPECT_THAT(timed->outcome.marks, testing::ElementsAre("a mark", "shape 'wide': a mark"));
}

TEST(Timing, WithoutTimingThereIsNoProfile) {
  World w(twice);
  Verdict v = w.judge(World::kernel(kTwice), Rung::correctness, true);
  EXPECT_EQ(report_of(v, Rung::profile).result, RungResult::skipped);
  EXPECT_THAT(v.skipped, Contains("profile: no profile: nothing was timed"));
}

TEST(Ladder, ACancelledContextIsAnErrorNotAVerdict) {
  World w(twice);
  std::stop_source stop;
  stop.request_stop();
  auto verdict = climb(Context(stop.get_token()), w.services, w.toy.task,
                       {.program = w.program, .up_to = Rung::lint, .profile = false},
                       [](const std::string&) {});
  ASSERT_FALSE(verdict);
  EXPECT_EQ(verdict.error().kind, ErrorKind::cancelled);
}

TEST(Ladder, NotesOfSetsBecomeMarksOnce) {
  World w(twice);
  auto source = w.toy.source();
  w.pool.emplace(w.toy.task,
                 [&](const Context& c, const ShapeCase& s, const std::string& f,
                     uint64_t seed) -> Result<torch::TensorSet> {
                   CG_TRY(torch::TensorSet set, source(c, s, f, seed));
                   set.notes = {"float64 does not run: no"};
                   return set;
                 });
  w.services.pool = lent(*w.pool);
  Verdict v = w.judge(World::kernel(kTwice));
  EXPECT_THAT(v.marks, testing::ElementsAre("float64 does not run: no"));
}

}  // namespace
}  // namespace cutegen::eval
