// SPDX-License-Identifier: Apache-2.0
#include "toolchain/ncu_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace cutegen::toolchain {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;
using Kind = NcuRefusal::Kind;

const std::string kReportHead =
    "\"ID\",\"Kernel Name\",\"dram__bytes_read.sum\",\"gpu__time_duration.sum\"\n";

TEST(NcuReport, NumbersAreReadStrictly) {
  auto read = [](const char* text) {
    double out = -1;
    return read_ncu_number(text, out) ? out : -1;
  };
  EXPECT_EQ(read("0"), 0);
  EXPECT_EQ(read("1,234,567.25"), 1234567.25);
  EXPECT_EQ(read(" 12.5 "), 12.5);
  EXPECT_EQ(read("1234567"), 1234567);
  EXPECT_EQ(read("1e3"), 1000);
  for (const char* bad : {"", "n/a", "nan", "inf", "1,23", "1,2345", "12,34,567", ",123",
                          "27.595.520", "65,77", "1.5,000", "0x10", "5 (1; 2)", "1,,234", "-"})
    EXPECT_EQ(read(bad), -1) << bad;
}

TEST(NcuReport, UnitsComeToTheirBases) {
  auto scaled = [](std::string unit) {
    const double scale = ncu_unit_scale(unit);
    return std::pair(scale, unit);
  };
  EXPECT_EQ(scaled("usecond"), std::pair(1e3, std::string("ns")));
  EXPECT_EQ(scaled("ns"), std::pair(1.0, std::string("ns")));
  EXPECT_EQ(scaled("Mbyte"), std::pair(1e6, std::string("byte")));
  EXPECT_EQ(scaled("Tbyte/s"), std::pair(1e12, std::string("byte/s")));
  EXPECT_EQ(scaled("byte/second"), std::pair(1.0, std::string("byte/s")));
  EXPECT_EQ(scaled("byte/ns"), std::pair(1e9, std::string("byte/s")));
  EXPECT_EQ(scaled("Ghz"), std::pair(1e9, std::string("hz")));
  EXPECT_EQ(scaled("cycle/nsecond"), std::pair(1e9, std::string("hz")));
  EXPECT_EQ(scaled("register/thread"), std::pair(1.0, std::string("register/thread")));
  EXPECT_EQ(scaled("%"), std::pair(1.0, std::string("%")));
  EXPECT_EQ(scaled(""), std::pair(1.0, std::string()));
}

TEST(NcuReport, RowsAreReadBetweenMessages) {
  auto r = read_ncu_report("==PROF== Connected\n" + kReportHead +
                           "\"\",\"\",\"Kbyte\",\"usecond\"\n==PROF== again\n"
                           "\"0\",\"f\"\"x\",\"1,024.5\",\"3\"\r\n\"1\",\"g\",\"n/a\",\"4\"\n");
  EXPECT_THAT(r.problem, IsEmpty());
  ASSERT_THAT(r.kernels, SizeIs(2));
  EXPECT_EQ(r.kernels[0].name, "f\"x");
  EXPECT_EQ(r.kernels[0].metrics.at("dram__bytes_read.sum").value, 1024500);
  EXPECT_EQ(r.kernels[0].metrics.at("gpu__time_duration.sum").value, 3000);
  EXPECT_THAT(r.kernels[1].metrics, SizeIs(1));
}

TEST(NcuReport, DetailsHaveARowAMetricOrRule) {
  auto r = read_ncu_report(
      "\"ID\",\"Kernel Name\",\"Metric Name\",\"Metric Unit\",\"Metric Value\",\"Rule "
      "Name\",\"Rule "
      "Description\"\n"
      "\"0\",\"f\",\"Memory Throughput\",\"%\",\"12\",\"\",\"\"\n"
      "\"0\",\"f\",\"dram__bytes_read.sum\",\"Mbyte\",\"2\",\"\",\"\"\n"
      "\"0\",\"f\",\"\",\"\",\"\",\"SOLBottleneck\",\"It waits.\"\n"
      "\"1\",\"g\",\"gpu__time_duration.sum\",\"ns\",\"7\",\"\",\"\"\n");
  EXPECT_THAT(r.problem, IsEmpty());
  ASSERT_THAT(r.kernels, SizeIs(2));
  EXPECT_THAT(r.kernels[0].metrics, SizeIs(1));
  EXPECT_EQ(r.kernels[0].metrics.at("dram__bytes_read.sum").value, 2e6);
  ASSERT_THAT(r.kernels[0].rules, SizeIs(1));
  EXPECT_EQ(r.kernels[0].rules[0].text, "It waits.");
  EXPECT_EQ(r.kernels[1].name, "g");
}

TEST(NcuReport, ABrokenRowEndsTheTable) {
  const std::string good = kReportHead + "\"\",\"\",\"byte\",\"ns\"\n\"0\",\"f\",\"1\",\"2\"\n";
  for (const char* bad : {"\"1\",\"f\",\"1\"\n", "\"1\",\"f\n", "\"1\",\"f\",\"1\",\"2\",\"3\"\n",
                          "\"1\" \"f\",\"1\",\"2\"\n"}) {
    auto r = read_ncu_report(good + bad + "\"2\",\"h\",\"1\",\"2\"\n");
    EXPECT_THAT(r.kernels, SizeIs(1)) << bad;
    EXPECT_THAT(r.problem, HasSubstr("row of ncu's table")) << bad;
  }
  EXPECT_THAT(read_ncu_report("").problem, HasSubstr("no table"));
  EXPECT_THAT(read_ncu_report(std::string(1 << 20, '"')).problem, HasSubstr("no table"));
}

TEST(NcuReport, WhatIsTooMuchIsCut) {
  std::string rows = kReportHead + "\"\",\"\",\"byte\",\"ns\"\n";
  for (int i = 0; i < 400; ++i) rows += "\"0\",\"f\",\"1\",\"2\"\n";
  auto r = read_ncu_report(rows);
  EXPECT_THAT(r.kernels, SizeIs(256));
  EXPECT_THAT(r.problem, HasSubstr("256 launches"));
  std::string errors;
  for (int i = 0; i < 100; ++i) errors += "==ERROR== \x1b[31m" + std::string(1000, 'x') + "\n";
  r = read_ncu_report(errors);
  EXPECT_THAT(r.errors, SizeIs(8));
  EXPECT_LT(r.errors[0].size(), 420u);
  EXPECT_THAT(r.errors[0], testing::Not(HasSubstr("\x1b")));
}

TEST(NcuReport, RefusalsHaveTheirRemedies) {
  auto refusal = [](const std::string& text) {
    return read_ncu_refusal(text, read_ncu_report(text), {"sm__a.sum", "sm__b.sum"});
  };
  EXPECT_EQ(refusal("==ERROR== ERR_NVGPUCTRPERM - The user\n").kind, Kind::permission);
  EXPECT_THAT(refusal("==ERROR== ERR_NVGPUCTRPERM - The user\n").remedy, HasSubstr("SYS_ADMIN"));
  auto metric = refusal("==ERROR== Failed to find metric sm__b.sum\n");
  EXPECT_EQ(metric.kind, Kind::metric);
  EXPECT_THAT(metric.metrics, ElementsAre("sm__b.sum"));
  EXPECT_EQ(refusal("==WARNING== No kernels were profiled.\n").kind, Kind::no_kernel);
  auto other = refusal("==ERROR== Failed to initialize the profiler: LibraryNotLoaded\n");
  EXPECT_EQ(other.kind, Kind::other);
  EXPECT_THAT(other.problem, HasSubstr("LibraryNotLoaded"));
  EXPECT_EQ(refusal(kReportHead + "\"\",\"\",\"byte\",\"ns\"\n\"0\",\"f\",\"1\",\"2\"\n").kind,
            Kind::none);
}

TEST(NcuReport, VersionsAreFoundInTheBanner) {
  EXPECT_EQ(read_ncu_version("NVIDIA ...\nVersion 2025.3.1.0 (build 36398880)\n"), "2025.3.1.0");
  EXPECT_EQ(read_ncu_version("Version 2024"), "");
  EXPECT_EQ(read_ncu_version("Version x.y"), "");
  EXPECT_EQ(read_ncu_version(""), "");
}

}  // namespace
}  // namespace cutegen::toolchain
