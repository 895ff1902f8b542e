// SPDX-License-Identifier: Apache-2.0
#include "agent/metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "base/text.h"

namespace cutegen::agent {
namespace {

using testing::HasSubstr;
using testing::Not;

KernelProfile simulated(const std::string& name = "scale", double time_ns = 10'000) {
  KernelProfile k;
  k.kernel = name;
  k.time_ns = time_ns;
  k.counters = {{"occupancy", 0.5},
                {"warp_instructions", 40'000},
                {"modelled_ns.fma", 2000},
                {"modelled_ns.tensor", 0},
                {"modelled_ns.dram", 8000},
                {"modelled_ns.l1", 1000},
                {"modelled_ns.lsu", 3000},
                {"modelled_ns.shared", 500},
                {"modelled_ns.l2", 4000},
                {"limit_ctas.blocks", 32},
                {"limit_ctas.registers", 5},
                {"limit_ctas.shared memory", 7},
                {"registers", 40},
                {"dram_read_bytes", 16e6},
                {"dram_write_bytes", 8e6},
                {"global_load_sectors", 1'000'000},
                {"l1_hit_sectors", 250'000},
                {"global_store_sectors", 240'000},
                {"global_atomic_sectors", 10'000},
                {"branches", 200},
                {"divergent_branches", 50}};
  return k;
}

GpuSpec h200() {
  return find_gpu("h200").value();
}

Metric metric(const KernelProfile& k, const std::string& name) {
  for (const Metric& m : judge_metrics(k, h200()))
    if (m.name == name) return m;
  ADD_FAILURE() << "no metric " << name;
  return {};
}

TEST(Metrics, AreTheTwentyFourWithNamesOfTheirOwn) {
  std::set<std::string> names, nearest;
  for (const Metric& m : judge_metrics(simulated(), h200())) {
    names.insert(m.name);
    nearest.insert(m.nearest);
    EXPECT_NE(m.value.has_value(), !m.why.empty()) << m.name;
  }
  EXPECT_EQ(names.size(), kJudgeMetrics);
  EXPECT_EQ(nearest.size(), kJudgeMetrics);
}

TEST(Metrics, FollowFromTheCounters) {
  const KernelProfile k = simulated();
  const std::pair<const char*, double> expected[] = {
      {"elapsed_cycles", 1e-5 * h200().clock_hz},
      {"occupancy_pct", 50},
      {"warp_instructions", 40'000},
      {"fp32_pipe_pct", 20},
      {"tensor_pipe_pct", 0},
      {"limit_by_block_slots", 32},
      {"limit_by_registers", 5},
      {"limit_by_shared_memory", 7},
      {"registers_per_thread", 40},
      {"dram_read_bytes", 16e6},
      {"dram_write_bytes", 8e6},
      {"dram_bytes_per_s", 2.4e12},
      {"dram_busy_pct", 80},
      {"dram_of_peak_pct", 100 * 2.4e12 / h200().dram_bytes_per_s},
      {"l1_hit_pct", 25},
      {"l1_busy_pct", 30},
      {"l2_hit_pct", 25},  // 750,000 of 1,000,000 sectors come from DRAM
      {"l2_busy_pct", 40},
      {"uniform_branches_pct", 75}};
  for (const auto& [name, value] : expected) {
    Metric m = metric(k, name);
    ASSERT_TRUE(m.value) << name;
    EXPECT_NEAR(*m.value, value, 1e-6 * (1 + value)) << name;
  }
}

TEST(Metrics, WhatASimulatorCannotGiveIsSkipped) {
  for (const char* what : {"memory_dependency", "short_scoreboard", "long_scoreboard", "barrier",
                           "branch_resolving"}) {
    Metric m = metric(simulated(), std::string("stalled_") + what + "_pct");
    EXPECT_FALSE(m.value);
    EXPECT_THAT(m.why, HasSubstr("simulator"));
    EXPECT_THAT(m.nearest, HasSubstr(what));
  }
}

TEST(Metrics, AMissingCounterMakesNoFigureUp) {
  KernelProfile empty;
  for (const Metric& m : judge_metrics(empty, h200())) {
    EXPECT_FALSE(m.value) << m.name;
    EXPECT_FALSE(m.why.empty()) << m.name;
  }
  KernelProfile k = simulated();
  k.counters.erase("dram_write_bytes");
  EXPECT_FALSE(metric(k, "dram_bytes_per_s").value);
  EXPECT_FALSE(metric(k, "l2_hit_pct").value);
  EXPECT_TRUE(metric(k, "dram_read_bytes").value);
  k = simulated();
  k.counters["branches"] = k.counters["divergent_branches"] = 0;
  EXPECT_EQ(metric(k, "uniform_branches_pct").value, 100);
  k.counters["modelled_ns.dram"] = 99'999;
  EXPECT_EQ(metric(k, "dram_busy_pct").value, 100);
}

TEST(Metrics, OfAGpuTheHardwaresOwnFiguresAreShown) {
  KernelProfile k = simulated();
  k.origin = Origin::measured;
  k.counters.insert({{"cycles_active", 1234},
                     {"occupancy_achieved", 0.5},
                     {"dram_pct", 77},
                     {"l2_hit_pct", 12},
                     {"uniform_branches_pct", 99},
                     {"pipe_pct.tensor", 3},
                     {"stall_pct.barrier", 23.7}});
  EXPECT_EQ(metric(k, "elapsed_cycles").value, 1234);
  EXPECT_EQ(metric(k, "occupancy_pct").value, 50);
  EXPECT_EQ(metric(k, "dram_of_peak_pct").value, 77);
  EXPECT_EQ(metric(k, "l2_hit_pct").value, 12);
  EXPECT_EQ(metric(k, "uniform_branches_pct").value, 99);
  EXPECT_EQ(metric(k, "tensor_pipe_pct").value, 3);
  EXPECT_EQ(metric(k, "stalled_barrier_pct").value, 23.7);
  EXPECT_THAT(metric(k, "stalled_long_scoreboard_pct").why, HasSubstr("not counted"));
}

TEST(Metrics, AreShownOfTheSlowestKernels) {
  Profile p{
      .kernels = {simulated("fast", 10), simulated("slow\x1b[31m\n", 9000), simulated("mid", 100)},
      .shape = "official"};
  const std::string text = describe_metrics(p, h200(), 2);
  EXPECT_LT(text.find("slow"), text.find("mid"));
  EXPECT_THAT(text, Not(HasSubstr("fast")));
  EXPECT_EQ(text.find('\x1b'), std::string::npos);
  EXPECT_THAT(text, HasSubstr("- registers_per_thread = 40 (launch__registers_per_thread)"));
  EXPECT_THAT(text, HasSubstr("stalled_barrier_pct = skipped: a simulator"));
  EXPECT_EQ(split(text, '\n').size(), 2 * (kJudgeMetrics + 1) + 1);
}

}  // namespace
}  // namespace cutegen::agent
