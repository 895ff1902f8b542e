// SPDX-License-Identifier: Apache-2.0
// The three sources of a profile on a GPU, with a fake driver and an ncu that counts nothing.
#include "eval/profile/gpu_profile.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "eval/profile/hardware_counters.h"
#include "eval/testing/fake_ncu.h"
#include "eval/testing/ladder_world.h"

namespace cutegen::eval {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;

struct ProfileStage {
  explicit ProfileStage(const std::string& body)
      : world([](double x) { return 2 * x; }),
        runner({.device = "cuda:0"}),
        counters("cuda:0", false) {
    world.add_official(1 << 14);  // too large for a test shape
    world.toolchain.ptx = testing_world::World::kernel(body);
    world.services.runner = lent(runner);
    world.services.counters = lent(counters);
    EXPECT_TRUE(runner.start(Context()));
    world.services.device_name = "cuda:0";
    world.services.identity = runner.identity();
    world.pool.emplace(world.toy.task, world.toy.source());
    world.services.pool = lent(*world.pool);
    prepared.emplace(world.program, world.toy.task);
    EXPECT_TRUE(prepared->compile(Context(), world.services)->passed);
    auto loaded = prepared->load(Context(), world.services);
    EXPECT_TRUE(loaded && loaded->passed);
  }

  GpuProfile profile() {
    KernelProfile timed;
    timed.kernel = "f", timed.origin = Origin::measured, timed.time_ns = 5e5;
    KernelProfile fill;
    fill.kernel = "fill out", fill.origin = Origin::measured, fill.time_ns = 1e3;
    BinaryAudit audit;
    audit.kernels.push_back({.module = "m",
                             .kernel = "f",
                             .registers = 255,
                             .barriers = 0,
                             .stack_bytes = 16,
                             .spill_store_bytes = 8,
                             .spill_load_bytes = 24});
    Timing timing;
    timing.time_ns = 5e5;
    auto made = profile_on_gpu(
        {.ctx = Context(),
         .services = world.services,
         .task = world.toy.task,
         .prepared = *prepared,
         .progress = [](const std::string&) {}},
        {.program_id = "p", .timed = {timed, fill}, .timing = &timing, .audit = &audit});
    EXPECT_TRUE(made) << made.error().text();
    return made ? *made : GpuProfile{};
  }

  testing_world::World world;
  Runner runner;
  HardwareCounters counters;
  std::optional<Prepared> prepared;
};

constexpr const char* kDouble = "add.f32 %f2, %f1, %f1;";
constexpr const char* kStrange =
    "tanh.approx.f32 %f2, %f1; nanotrap.b32;";  // the simulator does not know nanotrap

TEST(GpuProfile, HardwareCountersHaveTheSimulatorsBesideThem) {
  with_fakes("works.f", [] {
    ProfileStage stage(kDouble);
    auto made = stage.profile();
    EXPECT_EQ(made.profile.source.text(), "ncu 2025.3.1.0") << made.profile.note;
    EXPECT_THAT(made.profile.note, IsEmpty());
    ASSERT_THAT(made.profile.kernels, SizeIs(1));
    const KernelProfile& k = made.profile.kernels[0];
    EXPECT_EQ(k.origin, Origin::measured);
    EXPECT_EQ(k.diagnosis.bound, Bound::memory);
    EXPECT_GT(k.modelled.at("warp_instructions"), 0);
    std::set<std::string> kinds;
    for (const ProfileRemark& r : k.remarks) kinds.insert(r.kind);
    EXPECT_TRUE(kinds.contains("ncu_rule") && kinds.contains("simulator"));
    ASSERT_TRUE(made.grade);
    EXPECT_FALSE(made.grade->held.at("seccomp"));
  });
}

TEST(GpuProfile, WithoutThemTheSimulatorServesAndTheNoteSaysWhy) {
  with_fakes("refused", [] {
    ProfileStage stage(kDouble);
    auto made = stage.profile();
    EXPECT_EQ(made.profile.source.text(), "simulator");
    EXPECT_THAT(made.profile.note, HasSubstr("ERR_NVGPUCTRPERM"));
    ASSERT_THAT(made.profile.kernels, SizeIs(1));
    EXPECT_EQ(made.profile.kernels[0].origin, Origin::modelled);
    EXPECT_NE(made.profile.kernels[0].diagnosis.bound, Bound::unknown);
  });
}

TEST(GpuProfile, LaunchesThatAreNotThePlansAreNotTaken) {
  with_fakes("another_kernel", [] {
    ProfileStage stage(kDouble);
    auto made = stage.profile();
    EXPECT_EQ(made.profile.source.text(), "simulator");
    EXPECT_THAT(made.profile.note, HasSubstr("differ from the 1 of the plan"));
  });
}

TEST(GpuProfile, WithNeitherTheRooflineAndTheAssemblerSpeak) {
  with_fakes("refused", [] {
    ProfileStage stage(kStrange);
    auto made = stage.profile();
    EXPECT_EQ(made.profile.source.text(), "resources");
    EXPECT_THAT(made.profile.note, HasSubstr("no counters of the simulator"));
    ASSERT_THAT(made.profile.kernels, SizeIs(1)) << "a fill launches nothing";
    const KernelProfile& k = made.profile.kernels[0];
    EXPECT_EQ(k.origin, Origin::measured);
    EXPECT_EQ(k.counters.at("registers"), 255);
    EXPECT_EQ(k.counters.at("spill_bytes"), 32);
    EXPECT_EQ(k.diagnosis.bound, Bound::latency);
    EXPECT_THAT(k.diagnosis.summary, HasSubstr("least work"));
    ASSERT_FALSE(k.remarks.empty());
    EXPECT_EQ(k.remarks[0].kind, "spills");
  });
}

}  // namespace
}  // namespace cutegen::eval
