// SPDX-License-Identifier: Apache-2.0
// Runs ncu around the real runner, without a GPU: tests/fake_ncu and tests/fake_cuda.
#include "eval/profile/hardware_counters.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "base/text.h"
#include "eval/testing/fake_ncu.h"

namespace cutegen::eval {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

HardwareCounters::Answer probed(HardwareCounters& counters) {
  auto answer = counters.probe(Context());
  EXPECT_TRUE(answer) << answer.error().text();
  return answer ? *answer : HardwareCounters::Answer();
}

TEST(HardwareCounters, ATableIsReadOfARunnerThatEndsByItself) {
  with_fakes("works", [] {
    HardwareCounters counters("cuda:0", false);
    auto answer = probed(counters);
    EXPECT_EQ(answer.tool, "ncu 2025.3.1.0");
    EXPECT_THAT(answer.problem, IsEmpty());
    ASSERT_THAT(answer.kernels, SizeIs(1));
    EXPECT_EQ(answer.kernels[0].name, "probe");
    EXPECT_EQ(answer.kernels[0].metrics.at("sm__cycles_active.avg").value, 42);
  });
}

TEST(HardwareCounters, ARefusalIsRememberedWithItsRemedy) {
  with_fakes("refused", [] {
    HardwareCounters counters("cuda:0", false);
    for (int i = 0; i < 2; ++i) {
      auto answer = probed(counters);
      EXPECT_THAT(answer.kernels, IsEmpty());
      EXPECT_THAT(answer.problem, HasSubstr("ERR_NVGPUCTRPERM"));
      EXPECT_THAT(answer.remedy, HasSubstr("NVreg_RestrictProfilingToAdminUsers=0"));
      ::setenv("CUTEGEN_NCU", "/no/such/ncu", 1);  // no effect: the object remembers the refusal
    }
  });
}

TEST(HardwareCounters, RootKeepsItsRightsWhereTheyAreNeededUnlessTheSandboxIsRequired) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root";
  with_fakes("refused_to_users", [] {
    HardwareCounters counters("cuda:0", false);
    auto answer = probed(counters);
    ASSERT_THAT(answer.kernels, SizeIs(1)) << answer.problem;
    EXPECT_FALSE(answer.grade.held.at("capabilities"));
    HardwareCounters strict("cuda:0", true);
    EXPECT_THAT(probed(strict).kernels, IsEmpty());
  });
}

TEST(HardwareCounters, WhereNcuFailsInNamespacesItIsTriedWithoutThemAndTheGradeTells) {
  if (sandbox::probe().held["bubblewrap"] || !sandbox::probe().held["namespaces"])
    GTEST_SKIP() << "needs namespaces of our own";
  with_fakes("fails_in_namespaces", [] {
    HardwareCounters counters("cuda:0", false);
    auto answer = probed(counters);
    ASSERT_THAT(answer.kernels, SizeIs(1)) << answer.problem;
    EXPECT_FALSE(answer.grade.held.contains("namespaces"));
    HardwareCounters strict("cuda:0", true);
    EXPECT_THAT(probed(strict).kernels, IsEmpty());
  });
}

TEST(HardwareCounters, WhatIsNoNcuIsSaid) {
  for (const auto& [how, words] :
       {std::pair("old", "2021.1.0.0 at"), {"unnamed", "print the version"}})
    with_fakes(how, [&] {
      HardwareCounters counters("cuda:0", false);
      auto answer = probed(counters);
      EXPECT_THAT(answer.problem, HasSubstr(words));
      EXPECT_THAT(answer.remedy, HasSubstr("CUTEGEN_NCU"));
    });
  with_fakes("works", [] {
    ::setenv("CUTEGEN_NCU", "/no/such/ncu", 1);
    HardwareCounters counters("cuda:0", false);
    EXPECT_THAT(probed(counters).problem, HasSubstr("CUTEGEN_NCU is not a program"));
  });
}

TEST(HardwareCounters, BadTablesGiveNoFigures) {
  for (const auto& [how, words] : {std::pair("garbage", "cannot be read"),
                                   {"short_rows", "fields, its header"},
                                   {"silent", "no table"},
                                   {"fails", "LibraryNotLoaded"}})
    with_fakes(how, [&] {
      HardwareCounters counters("cuda:0", false);
      auto answer = probed(counters);
      EXPECT_THAT(answer.kernels, IsEmpty());
      EXPECT_THAT(answer.problem, HasSubstr(words)) << how;
    });
}

TEST(HardwareCounters, MetricsThatAreNotKnownAreLeftOut) {
  with_fakes("unknown_metric", [] {
    HardwareCounters counters("cuda:0", false);
    auto request = HardwareCounters::probe_request();
    ASSERT_TRUE(request);
    request->metrics = {"sm__cycles_active.avg",
                        "sm__pipe_fma_cycles_active.avg.pct_of_peak_sustained_active"};
    auto answer = counters.count(Context(), std::move(*request));
    ASSERT_TRUE(answer) << answer.error().text();
    ASSERT_THAT(answer->kernels, SizeIs(1)) << answer->problem;
    EXPECT_THAT(answer->kernels[0].metrics, SizeIs(1));
  });
}

// Counts the processes whose command line contains these words.
int running(const std::string& words) {
  int count = 0;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator("/proc", error)) {
    std::ifstream in(entry.path() / "cmdline", std::ios::binary);
    std::string line((std::istreambuf_iterator<char>(in)), {});
    std::replace(line.begin(), line.end(), '\0', ' ');
    count += line.find(words) != std::string::npos;
  }
  return count;
}

TEST(HardwareCounters, WhatHangsIsEndedWithAllThatItStarted) {
  for (const char* how : {"hangs", "hangs_later", "leaves_a_child"})
    with_fakes(how, [&] {
      HardwareCounters counters("cuda:0", false);
      auto request = HardwareCounters::probe_request();
      ASSERT_TRUE(request);
      request->limit = std::chrono::seconds(2);
      auto answer = counters.count(Context(), std::move(*request));
      ASSERT_TRUE(answer) << answer.error().text();
      if (how != std::string("leaves_a_child")) {
        EXPECT_THAT(answer->kernels, IsEmpty());
      }
      EXPECT_EQ(running(std::string("fake_ncu/") + how), 0);
    });
}

}  // namespace
}  // namespace cutegen::eval
