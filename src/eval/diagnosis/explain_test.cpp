// SPDX-License-Identifier: Apache-2.0
#include "eval/diagnosis/explain.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace cutegen::eval {
namespace {

using testing::HasSubstr;

using CounterMap = std::map<std::string, double>;

// A healthy kernel: coalesced, conflict-free, full warps, enough in flight.
KernelProfile healthy() {
  KernelProfile k;
  k.kernel = "f", k.bound_by = "dram", k.limited_by = CtaLimit::threads;
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
  k.lines = {{.line = 3,
              .text = "",
              .counters = {{"issue_slots", 900},
                           {"warp_instructions", 900},
                           {"thread_instructions", 28800}}},
             {.line = 2,
              .text = "",
              .counters = {{"issue_slots", 100},
                           {"warp_instructions", 100},
                           {"thread_instructions", 3200},
                           {"global_load_requests", 100},
                           {"global_load_sectors", 400},
                           {"global_load_bytes", 12800},
                           {"shared_requests", 50},
                           {"shared_wavefronts", 50}}}};
  return k;
}

const char* kExpSource = "__global__ void f() {\n  float a = x[i];\n\tb = expf(a);\n}\n";

std::string remark(const KernelProfile& k, const std::string& kind) {
  for (const ProfileRemark& r : k.remarks)
    if (r.kind == kind) return "line " + std::to_string(r.line) + ": " + r.message;
  return "none";
}

TEST(Explain, AHealthyKernelHasNoRemark) {
  KernelProfile k = healthy();
  explain(k, kExpSource);
  EXPECT_TRUE(k.remarks.empty()) << k.remarks[0].message;
}

TEST(Explain, LinesAreSortedByWhatBindsAndShowTheirText) {
  KernelProfile k = healthy();
  explain(k, kExpSource);
  EXPECT_EQ(k.lines[0].line, 2);  // this line has all the memory traffic
  EXPECT_EQ(k.lines[0].text, "float a = x[i];");
  EXPECT_DOUBLE_EQ(k.lines[0].counters.at("memory_share"), 1);
  EXPECT_DOUBLE_EQ(k.lines[0].counters.at("issue_share"), 0.1);
  k = healthy(), k.bound_by = "fma";
  explain(k, kExpSource);
  EXPECT_EQ(k.lines[0].line, 3);
  EXPECT_EQ(k.lines[0].text, "b = expf(a);");
}

TEST(Explain, UncoalescedAccess) {
  KernelProfile k = healthy();
  k.lines[1].counters["global_load_sectors"] = k.counters["global_load_sectors"] = 3200;
  explain(k, kExpSource);
  EXPECT_THAT(remark(k, "uncoalesced"),
              HasSubstr("line 2: loads touch 32.0 sectors per request; 4.0 would suffice (8.0x"));
}

TEST(Explain, BankConflicts) {
  KernelProfile k = healthy();
  k.lines[1].counters["shared_wavefronts"] = k.counters["shared_wavefronts"] = 1600;
  k.lines[1].counters["shared_conflicts"] = 1550;
  explain(k, kExpSource);
  EXPECT_THAT(remark(k, "bank_conflicts"),
              HasSubstr("32.0 wavefronts per request; 1.0 would suffice"));
}

TEST(Explain, DivergenceAndLocalMemory) {
  KernelProfile k = healthy();
  k.lines[0].counters["thread_instructions"] = 900 * 4;
  k.lines[0].counters["local_sectors"] = k.counters["local_sectors"] = 64;
  explain(k, kExpSource);
  EXPECT_THAT(remark(k, "divergence"), HasSubstr("line 3: 4.0 of 32 lanes"));
  EXPECT_THAT(remark(k, "local_memory"), HasSubstr("line 3: 64 sectors"));
}

TEST(Explain, OccupancyNamesItsLimiter) {
  for (const auto& [limiter, name] : enum_names(CtaLimit{})) {
    if (limiter == CtaLimit::unknown) continue;
    KernelProfile k = healthy();
    k.counters["occupancy"] = 0.125, k.counters["registers"] = 168, k.limited_by = limiter;
    explain(k, kExpSource);
    EXPECT_THAT(remark(k, "occupancy"), HasSubstr(std::string("12% of the SM's warps are in use, "
                                                              "limited by ") +
                                                  name + ": "));
  }
  KernelProfile busy = healthy();
  busy.counters["occupancy"] = 0.125, busy.bound_by = "tensor";
  explain(busy, kExpSource);
  EXPECT_EQ(remark(busy, "occupancy"), "none") << "a kernel that does not wait needs no more warps";
}

TEST(Explain, BytesInFlightSpecialFunctionsAndTail) {
  KernelProfile k = healthy();
  k.counters["bytes_in_flight"] = 1e5;
  k.counters["modelled_ns.xu"] = 90;
  k.counters["waves"] = 2, k.counters["last_wave"] = 0.05;
  explain(k, kExpSource);
  EXPECT_THAT(remark(k, "bytes_in_flight"), HasSubstr("100 KB are in flight"));
  EXPECT_NE(remark(k, "special_functions"), "none");
  EXPECT_THAT(remark(k, "tail"), HasSubstr("2 waves of CTAs, the last one 5% full"));
}

// Changes a healthy kernel and explains it.
template <class F>
KernelProfile changed(F change) {
  KernelProfile k = healthy();
  change(k);
  explain(k, kExpSource);
  return k;
}

TEST(Explain, RemarksBeginAtTheirThresholds) {
  auto sectors = [](double n) {
    return remark(changed([n](KernelProfile& k) {
                    k.lines[1].counters["global_load_sectors"] = n;
                    k.counters["global_load_sectors"] = n;
                  }),
                  "uncoalesced");
  };
  EXPECT_EQ(sectors(599), "none");
  EXPECT_NE(sectors(600), "none");  // 1.5 times the 400 that suffice
  auto store = remark(changed([](KernelProfile& k) {
                        auto& c = k.lines[0].counters;
                        c["global_store_requests"] = 10, c["global_store_sectors"] = 320;
                        c["global_store_bytes"] = 1280, k.counters["global_store_sectors"] = 320;
                      }),
                      "uncoalesced");
  EXPECT_THAT(store, HasSubstr("line 3: stores touch 32.0 sectors per request; 4.0 would suffice"));
  auto cold = [](double all) {
    return remark(changed([all](KernelProfile& k) {
                    k.lines[1].counters["global_load_sectors"] = 4000;
                    k.counters["global_load_sectors"] = all;
                  }),
                  "uncoalesced");
  };
  EXPECT_NE(cold(80000), "none");  // 5% of all sectors
  EXPECT_EQ(cold(80001), "none");
  auto conflicts = [](double n) {
    return remark(changed([n](KernelProfile& k) { k.lines[1].counters["shared_conflicts"] = n; }),
                  "bank_conflicts");
  };
  EXPECT_EQ(conflicts(9), "none");
  EXPECT_NE(conflicts(10), "none");  // 20% of 50
  auto lanes = [](double n) {
    return remark(
        changed([n](KernelProfile& k) { k.lines[0].counters["thread_instructions"] = 900 * n; }),
        "divergence");
  };
  EXPECT_EQ(lanes(24), "none");
  EXPECT_NE(lanes(23.9), "none");
  auto local = [](double n) {
    return remark(changed([n](KernelProfile& k) {
                    k.lines[0].counters["local_sectors"] = n, k.counters["local_sectors"] = n;
                  }),
                  "local_memory");
  };
  EXPECT_EQ(local(4), "none");
  EXPECT_NE(local(5), "none");  // about 1% of 405
}

TEST(Explain, KernelsRemarksBeginAtTheirThresholds) {
  auto with = [](const char* counter, double value, const char* kind) {
    return remark(changed([=](KernelProfile& k) { k.counters[counter] = value; }), kind) != "none";
  };
  EXPECT_TRUE(with("occupancy", 0.39, "occupancy"));
  EXPECT_FALSE(with("occupancy", 0.4, "occupancy"));
  EXPECT_FALSE(with("occupancy", 0, "occupancy"));
  EXPECT_TRUE(with("bytes_in_flight", 1.99e6, "bytes_in_flight"));
  EXPECT_FALSE(with("bytes_in_flight", 2e6, "bytes_in_flight"));
  EXPECT_FALSE(with("bytes_in_flight", 0, "bytes_in_flight"));
  EXPECT_TRUE(with("modelled_ns.xu", 70, "special_functions"));
  EXPECT_FALSE(with("modelled_ns.xu", 69, "special_functions"));
  for (auto [waves, told] : {std::pair{1.9, false}, {2.0, true}, {5.0, true}, {5.1, false}})
    EXPECT_EQ(with("waves", waves, "tail"), told) << waves;
  auto last = [](double share) {
    return remark(changed([=](KernelProfile& k) {
                    k.counters["waves"] = 3, k.counters["last_wave"] = share;
                  }),
                  "tail") != "none";
  };
  EXPECT_TRUE(last(0.5));
  EXPECT_FALSE(last(0.51));
  for (const char* bound : {"latency", "dram", "l2"})
    EXPECT_NE(remark(changed([=](KernelProfile& k) {
                       k.counters["occupancy"] = 0.1, k.bound_by = bound;
                     }),
                     "occupancy"),
              "none")
        << bound;
  EXPECT_EQ(remark(changed([](KernelProfile& k) {
                     k.counters["bytes_in_flight"] = 1, k.bound_by = "l2";
                   }),
                   "bytes_in_flight"),
            "none");
}

TEST(Explain, OfEqualSharesTheOtherResourcesDecide) {
  auto first = [](const char* bound, const char* more, double of_3, double of_2) {
    return changed([=](KernelProfile& k) {
             k.bound_by = bound;
             for (LineProfile& line : k.lines) line.counters.clear();
             k.lines[0].counters[more] = of_3, k.lines[1].counters[more] = of_2;
             k.counters[more] = of_3 + of_2;
           })
        .lines[0]
        .line;
  };
  for (const char* bound : {"dram", "shared"}) {
    EXPECT_EQ(first(bound, "issue_slots", 1, 2), 2) << bound;
    EXPECT_EQ(first(bound, "issue_slots", 2, 1), 3) << bound;
  }
  auto few_sectors = [](const char* bound, const char* what) {  // line 3 has all issue slots
    KernelProfile k = changed([=](KernelProfile& p) {
      p.bound_by = bound;
      for (LineProfile& line : p.lines) line.counters.clear();
      p.lines[0].counters = {{what, 4}, {"issue_slots", 100}};
      p.lines[1].counters = {{what, 6}};
      p.counters[what] = 10, p.counters["issue_slots"] = 100;
    });
    return k.lines[0].line;
  };
  EXPECT_EQ(few_sectors("dram", "global_load_sectors"), 2);  // the limiting resource decides
  EXPECT_EQ(few_sectors("shared", "shared_wavefronts"), 2);
  for (const char* counter : {"global_store_sectors", "shared_wavefronts"}) {
    EXPECT_EQ(first("fma", counter, 1, 2), 2) << counter;
    EXPECT_EQ(first("fma", counter, 2, 1), 3) << counter;
  }
}

TEST(Explain, LinesAreSortedByMemoryWhereMemoryOrWaitingBinds) {
  for (const char* bound : {"dram", "l2", "l1", "latency", "launch", "shared"}) {
    KernelProfile k = changed([=](KernelProfile& p) { p.bound_by = bound; });
    EXPECT_EQ(k.lines[0].line, 2) << bound;
  }
  KernelProfile shared = changed([](KernelProfile& p) {
    p.bound_by = "shared";
    p.lines[0].counters["global_load_sectors"] = 4000;
    p.counters["global_load_sectors"] = 4400;
  });
  EXPECT_EQ(shared.lines[0].line, 2);  // all of the shared memory, 10% of the rest
  EXPECT_DOUBLE_EQ(shared.lines[0].counters.at("shared_share"), 1);
  KernelProfile none = changed([](KernelProfile& p) { p.counters["shared_wavefronts"] = 0; });
  for (const LineProfile& line : none.lines) EXPECT_EQ(line.counters.at("shared_share"), 0);
  KernelProfile outside = changed([](KernelProfile& p) { p.lines[0].line = 6; });
  EXPECT_EQ(outside.lines[1].text, "");
  KernelProfile last = healthy();
  last.lines.resize(1), last.lines[0].line = 2;
  explain(last, "first\nlast");
  EXPECT_EQ(last.lines[0].text, "last");
  KernelProfile nowhere = changed([](KernelProfile& p) { p.lines[0].line = 0; });
  EXPECT_EQ(nowhere.lines[1].text, "");
}

TEST(Explain, ForeignTextIsHarmlessAndListsAreBounded) {
  KernelProfile k = healthy();
  for (int i = 0; i < 200; ++i)
    k.lines.push_back(
        {.line = 4 + i,
         .text = "",
         .counters = {
             {"issue_slots", 400}, {"warp_instructions", 400}, {"thread_instructions", 400}}});
  explain(k, "a\n\x1b[31mred();\nb\n");
  EXPECT_EQ(k.lines.size(), 24u);
  EXPECT_EQ(k.remarks.size(), 16u);
  for (const LineProfile& l : k.lines) EXPECT_EQ(l.text.find('\x1b'), std::string::npos);
}

}  // namespace
}  // namespace cutegen::eval
