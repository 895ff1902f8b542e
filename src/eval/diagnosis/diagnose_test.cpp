// SPDX-License-Identifier: Apache-2.0
#include "eval/diagnosis/diagnose.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "eval/diagnosis/measured_remarks.h"

namespace cutegen::eval {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

KernelProfile measured(double compute, double memory) {
  KernelProfile k;
  k.kernel = "f", k.origin = Origin::measured, k.time_ns = 1e5;
  k.counters = {{"compute_pct", compute}, {"memory_pct", memory}, {"waves", 8}};
  return k;
}

std::vector<std::string> kinds_of(const KernelProfile& k) {
  std::vector<std::string> out;
  for (const ProfileRemark& r : k.remarks) out.push_back(r.kind);
  return out;
}

TEST(Diagnose, ClassesAreThoseOfNcusRule) {
  EXPECT_EQ(bound_of(20, 90), Bound::memory);
  EXPECT_EQ(bound_of(85, 82), Bound::compute);
  EXPECT_EQ(bound_of(82, 85), Bound::memory);
  EXPECT_EQ(bound_of(59.9, 59.9), Bound::latency);
  EXPECT_EQ(bound_of(60, 50), Bound::compute);
  EXPECT_EQ(bound_of(50, 70), Bound::memory);
  EXPECT_EQ(bound_of(65, 70), Bound::balanced);
  EXPECT_EQ(bound_of(0, 0), Bound::latency);
}

TEST(Diagnose, MeasuredFiguresNameTheBusiestUnit) {
  const GpuSpec gpu = *find_gpu("h200");
  KernelProfile k = measured(30, 88);
  k.counters["dram_pct"] = 88, k.counters["l2_pct"] = 40;
  diagnose(k, gpu);
  EXPECT_EQ(k.diagnosis.bound, Bound::memory);
  EXPECT_EQ(k.diagnosis.unit, "dram");
  EXPECT_EQ(k.bound_by, "dram");
  EXPECT_EQ(k.diagnosis.origin, Origin::measured);
  EXPECT_THAT(k.diagnosis.summary, HasSubstr("memory bound: dram at 88% of its peak"));
  EXPECT_EQ(k.diagnosis.evidence[1].value, 88);

  k = measured(10, 20);
  k.counters["stall_pct.long_scoreboard"] = 71, k.counters["stall_pct.selected"] = 90;
  diagnose(k, gpu);
  EXPECT_EQ(k.diagnosis.bound, Bound::latency);
  EXPECT_EQ(k.bound_by, "latency");
  EXPECT_THAT(k.diagnosis.summary, HasSubstr("wait for long_scoreboard 71%"));

  k = measured(10, 20);
  k.counters["waves"] = 0.25;
  diagnose(k, gpu);
  EXPECT_THAT(k.diagnosis.summary, HasSubstr("the grid fills 0.25 of a wave"));
}

TEST(Diagnose, WithoutTheSumsThereIsNoDiagnosis) {
  KernelProfile k = measured(10, 20);
  k.counters.erase("memory_pct");
  diagnose(k, *find_gpu("h200"));
  EXPECT_EQ(k.diagnosis.bound, Bound::unknown);
}

TEST(Diagnose, ModelledTermsAreHeldAgainstTheTimeWithoutTheLaunch) {
  const GpuSpec gpu = *find_gpu("h200");
  KernelProfile k;
  k.kernel = "f", k.time_ns = 102e3, k.bound_by = "fma";
  k.counters = {{"modelled_ns.launch", 2e3},
                {"modelled_ns.fma", 90e3},
                {"modelled_ns.l2", 30e3},
                {"dram_read_bytes", 4.8e3},
                {"dram_write_bytes", 0}};
  diagnose(k, gpu);
  EXPECT_EQ(k.diagnosis.bound, Bound::compute);
  EXPECT_EQ(k.diagnosis.unit, "fma");
  EXPECT_NEAR(k.diagnosis.evidence[0].value, 90, 0.1);
  EXPECT_NEAR(k.diagnosis.evidence[1].value, 30, 0.1);
  EXPECT_EQ(k.bound_by, "fma") << "the time model's limit stays";
  diagnose(k, gpu, 202e3);
  EXPECT_EQ(k.diagnosis.bound, Bound::latency) << "the GPU takes twice as long";
  EXPECT_NEAR(k.diagnosis.evidence[0].value, 45, 0.1);
  EXPECT_EQ(k.diagnosis.evidence.back().name, "measured_ns");
}

TEST(Diagnose, TheRooflineAloneSaysWhatItDoesNotSee) {
  KernelProfile k;
  k.kernel = "f", k.origin = Origin::measured, k.time_ns = 1e6;
  const GpuSpec gpu = *find_gpu("h200");
  diagnose_by_roofline(k, gpu,
                       {.bytes = gpu.dram_bytes_per_s * 0.9e-3,
                        .flops = 1e9,
                        .time_ns = 1e6,
                        .math_mode = MathMode::fp32});
  EXPECT_EQ(k.diagnosis.bound, Bound::memory);
  EXPECT_THAT(k.diagnosis.summary, HasSubstr("least work"));
  KernelProfile none;
  diagnose_by_roofline(none, gpu,
                       {.bytes = 1, .flops = 1, .time_ns = 0, .math_mode = MathMode::fp32});
  EXPECT_EQ(none.diagnosis.bound, Bound::unknown);
}

TEST(Diagnose, EachHabitOfTheHardwareHasItsRemark) {
  KernelProfile k = measured(20, 30);
  k.limited_by = CtaLimit::registers;
  k.counters.insert({{"stall_pct.long_scoreboard", 40},
                     {"stall_pct.barrier", 30},
                     {"stall_pct.wait", 10},
                     {"occupancy", 0.25},
                     {"global_load_requests", 100},
                     {"global_load_sectors", 3200},
                     {"global_store_requests", 100},
                     {"global_store_sectors", 400},
                     {"shared_wavefronts", 100},
                     {"shared_conflicts", 90},
                     {"local_sectors", 500},
                     {"active_lanes", 8}});
  k.counters["waves"] = 2.25;
  remark_on_measured(k);
  EXPECT_THAT(kinds_of(k),
              testing::ElementsAre("stalls", "stalls", "occupancy", "uncoalesced", "bank_conflicts",
                                   "local_memory", "divergence", "tail"));
  EXPECT_THAT(k.remarks[0].message, HasSubstr("40%"));
  EXPECT_EQ(k.remarks[0].origin, Origin::measured);
}

TEST(Diagnose, AHealthyKernelHasNoRemark) {
  KernelProfile k = measured(20, 92);
  k.counters.insert({{"stall_pct.long_scoreboard", 20},
                     {"occupancy", 1},
                     {"occupancy_achieved", 0.9},
                     {"global_load_requests", 100},
                     {"global_load_sectors", 1600},
                     {"shared_wavefronts", 100},
                     {"shared_conflicts", 1},
                     {"local_sectors", 0},
                     {"active_lanes", 32}});
  remark_on_measured(k);
  EXPECT_THAT(k.remarks, IsEmpty());
  remark_on_measured(k = measured(1, 1));
  EXPECT_THAT(k.remarks, IsEmpty());
}

}  // namespace
}  // namespace cutegen::eval
