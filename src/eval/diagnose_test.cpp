// SPDX-License-Identifier: Apache-2.0
#include "eval/diagnose.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace cutegen {
namespace {

using testing::HasSubstr;

using CounterMap = std::map<std::string, double>;

// A healthy kernel: coalesced, conflict-free, full warps, enough in flight.
KernelProfile healthy() {
  KernelProfile k;
  k.kernel = "f", k.bound_by = "dram", k.limited_by = "threads";
  k.counters = {{"issue_slots", 1000},
                {"warp_instructions", 1000},
                {"global_load_requests", 100},
                {"global_load_sectors", 400},
                {"global_load_bytes", 12800},
                {"shared_requests", 50},
                {"shared_wavefronts", 50},
                {"occupancy", 1},
                {"waves", 10},
                {"last_wave", 0.1},
                {"bytes_in_flight", 4e6},
                {"bytes_to_saturate", 2e6},
                {"modelled_ns.dram", 100},
                {"modelled_ns.xu", 10}};
  k.lines = {
      {3, "", {{"issue_slots", 900}, {"warp_instructions", 900}, {"thread_instructions", 28800}}},
      {2,
       "",
       {{"issue_slots", 100},
        {"warp_instructions", 100},
        {"thread_instructions", 3200},
        {"global_load_requests", 100},
        {"global_load_sectors", 400},
        {"global_load_bytes", 12800},
        {"shared_requests", 50},
        {"shared_wavefronts", 50}}}};
  return k;
}

const char* kSource = "__global__ void f() {\n  float a = x[i];\n\tb = expf(a);\n}\n";

std::string remark(const KernelProfile& k, const std::string& kind) {
  for (const ProfileRemark& r : k.remarks)
    if (r.kind == kind) return "line " + std::to_string(r.line) + ": " + r.message;
  return "none";
}

TEST(Diagnose, AHealthyKernelHasNoRemark) {
  KernelProfile k = healthy();
  explain(k, kSource);
  EXPECT_TRUE(k.remarks.empty()) << k.remarks[0].message;
}

TEST(Diagnose, LinesAreSortedByWhatBindsAndShowTheirText) {
  KernelProfile k = healthy();
  explain(k, kSource);
  EXPECT_EQ(k.lines[0].line, 2);  // all of the memory
  EXPECT_EQ(k.lines[0].text, "float a = x[i];");
  EXPECT_DOUBLE_EQ(k.lines[0].counters.at("memory_share"), 1);
  EXPECT_DOUBLE_EQ(k.lines[0].counters.at("issue_share"), 0.1);
  k = healthy(), k.bound_by = "fma";
  explain(k, kSource);
  EXPECT_EQ(k.lines[0].line, 3);
  EXPECT_EQ(k.lines[0].text, "b = expf(a);");
}

TEST(Diagnose, UncoalescedAccess) {
  KernelProfile k = healthy();
  k.lines[1].counters["global_load_sectors"] = k.counters["global_load_sectors"] = 3200;
  explain(k, kSource);
  EXPECT_THAT(remark(k, "uncoalesced"), HasSubstr("line 2: loads touch 32.0 sectors a request "
                                                  "where 4.0 would do (8.0x"));
}

TEST(Diagnose, BankConflicts) {
  KernelProfile k = healthy();
  k.lines[1].counters["shared_wavefronts"] = k.counters["shared_wavefronts"] = 1600;
  k.lines[1].counters["shared_conflicts"] = 1550;
  explain(k, kSource);
  EXPECT_THAT(remark(k, "bank_conflicts"),
              HasSubstr("32.0 wavefronts a request where 1.0 would do"));
}

TEST(Diagnose, DivergenceAndLocalMemory) {
  KernelProfile k = healthy();
  k.lines[0].counters["thread_instructions"] = 900 * 4;
  k.lines[0].counters["local_sectors"] = k.counters["local_sectors"] = 64;
  explain(k, kSource);
  EXPECT_THAT(remark(k, "divergence"), HasSubstr("line 3: 4.0 of 32 lanes"));
  EXPECT_THAT(remark(k, "local_memory"), HasSubstr("line 3: 64 sectors"));
}

TEST(Diagnose, OccupancyNamesItsLimiter) {
  for (const char* limiter : {"registers", "shared memory", "grid", "blocks", "threads"}) {
    KernelProfile k = healthy();
    k.counters["occupancy"] = 0.125, k.counters["registers"] = 168, k.limited_by = limiter;
    explain(k, kSource);
    EXPECT_THAT(remark(k, "occupancy"), HasSubstr(std::string("limited by ") + limiter));
  }
  KernelProfile busy = healthy();
  busy.counters["occupancy"] = 0.125, busy.bound_by = "tensor";
  explain(busy, kSource);
  EXPECT_EQ(remark(busy, "occupancy"), "none") << "what does not wait needs no more warps";
}

TEST(Diagnose, BytesInFlightSpecialFunctionsAndTail) {
  KernelProfile k = healthy();
  k.counters["bytes_in_flight"] = 1e5;
  k.counters["modelled_ns.xu"] = 90;
  k.counters["waves"] = 2, k.counters["last_wave"] = 0.05;
  explain(k, kSource);
  EXPECT_THAT(remark(k, "bytes_in_flight"), HasSubstr("100 KB are on their way"));
  EXPECT_NE(remark(k, "special_functions"), "none");
  EXPECT_THAT(remark(k, "tail"), HasSubstr("2 waves of CTAs, the last one 5% full"));
}

TEST(Diagnose, ForeignTextIsHarmlessAndListsAreBounded) {
  KernelProfile k = healthy();
  for (int i = 0; i < 200; ++i)
    k.lines.push_back(
        {4 + i,
         "",
         {{"issue_slots", 400}, {"warp_instructions", 400}, {"thread_instructions", 400}}});
  explain(k, "a\n\x1b[31mred();\nb\n");
  EXPECT_LE(k.lines.size(), 24u);
  EXPECT_LE(k.remarks.size(), 16u);
  for (const LineProfile& l : k.lines) EXPECT_EQ(l.text.find('\x1b'), std::string::npos);
}

}  // namespace
}  // namespace cutegen
