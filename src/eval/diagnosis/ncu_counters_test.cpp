// SPDX-License-Identifier: Apache-2.0
// Turns the output of ncu on an H200 (tests/golden/toolchain) into a profile and its diagnosis.
#include "eval/diagnosis/ncu_counters.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "base/file.h"
#include "eval/diagnosis/diagnose.h"
#include "eval/diagnosis/measured_remarks.h"

namespace cutegen::eval {
namespace {

using testing::Contains;
using testing::Field;
using testing::HasSubstr;
using testing::SizeIs;

std::vector<KernelProfile> profiles_of(const char* name) {
  auto text = read_file(std::filesystem::path(CUTEGEN_SOURCE_DIR) / "tests/golden/toolchain" / name,
                        1 << 20);
  EXPECT_TRUE(text) << text.error().text();
  auto report = toolchain::read_ncu_report(*text);
  EXPECT_EQ(report.problem, "");
  std::vector<KernelProfile> out;
  for (const auto& kernel : report.kernels) {
    out.push_back(measured_profile(kernel));
    diagnose(out.back(), *find_gpu("h200"));
    remark_on_measured(out.back());
  }
  return out;
}

TEST(NcuCounters, TheDetailsOfAnH200BecomeProfilesThatAgreeWithNcusRule) {
  const auto kernels = profiles_of("ncu_details.csv");
  ASSERT_THAT(kernels, SizeIs(8));
  struct Expected {
    const char* kernel;
    Bound bound;
    const char *unit, *rule;
  };
  const Expected expected[] = {
      {"copy", Bound::memory, "dram", "analyzing DRAM"},
      {"strided", Bound::latency, "dram", "latency issues"},
      {"fma_loop", Bound::compute, "", "analyzing workloads in the Compute"},
      {"one_thread", Bound::latency, "", "too small to fill"},
      {"conflicts", Bound::memory, "l1", "analyzing L1"},
      {"spills", Bound::latency, "dram", "latency issues"},
      {"exps", Bound::compute, "", "analyzing workloads in the Compute"},
      {"says", Bound::latency, "", "too small to fill"},
  };
  for (size_t i = 0; i < kernels.size(); ++i) {
    const KernelProfile& k = kernels[i];
    EXPECT_EQ(k.kernel, expected[i].kernel);
    EXPECT_EQ(k.diagnosis.bound, expected[i].bound) << k.kernel;
    if (*expected[i].unit) {
      EXPECT_EQ(k.diagnosis.unit, expected[i].unit) << k.kernel;
    }
    EXPECT_THAT(k.remarks, Contains(Field(&ProfileRemark::message, HasSubstr(expected[i].rule))));
    EXPECT_GT(k.time_ns, 0);
    EXPECT_GT(k.counters.at("warp_instructions"), 0);
  }
  const KernelProfile& copy = kernels[0];
  EXPECT_EQ(copy.time_ns, 131136);
  EXPECT_EQ(copy.counters.at("global_load_sectors"), 8388608);
  EXPECT_NEAR(copy.counters.at("dram_read_bytes"), 268.4e6, 0.1e6);
  EXPECT_NEAR(copy.counters.at("occupancy"), 1, 1e-9);
  EXPECT_THAT(kernels[1].remarks, Contains(Field(&ProfileRemark::kind, "uncoalesced")));
  EXPECT_THAT(kernels[3].remarks, Contains(Field(&ProfileRemark::kind, "grid")));
  EXPECT_THAT(kernels[4].remarks, Contains(Field(&ProfileRemark::kind, "bank_conflicts")));
  EXPECT_THAT(kernels[5].remarks, Contains(Field(&ProfileRemark::kind, "local_memory")));
}

TEST(NcuCounters, TheRawPageIsReadToo) {
  const auto kernels = profiles_of("ncu_raw.csv");
  ASSERT_THAT(kernels, SizeIs(2));
  EXPECT_EQ(kernels[0].kernel, "copy");
  EXPECT_GT(kernels[0].counters.at("memory_pct"), 75);
  EXPECT_EQ(kernels[0].counters.at("registers"), 18);
}

TEST(NcuCounters, AnotherUnitThanExpectedIsLeftOut) {
  toolchain::NcuKernel kernel;
  kernel.metrics["gpu__time_duration.sum"] = {.value = 5, .unit = "cycle"};
  kernel.metrics["dram__bytes_read.sum"] = {.value = 5, .unit = "byte"};
  KernelProfile k = measured_profile(kernel);
  EXPECT_EQ(k.time_ns, 0);
  EXPECT_EQ(k.counters.at("dram_read_bytes"), 5);
}

TEST(NcuCounters, EveryMetricIsAskedForOnce) {
  auto metrics = ncu_metrics();
  std::sort(metrics.begin(), metrics.end());
  EXPECT_EQ(std::adjacent_find(metrics.begin(), metrics.end()), metrics.end());
}

}  // namespace
}  // namespace cutegen::eval
