// SPDX-License-Identifier: Apache-2.0
#include "gpu/spec.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/file.h"
#include "base/text.h"

namespace cutegen {
namespace {

using testing::HasSubstr;

std::string h200_path() {
  return std::string(CUTEGEN_SOURCE_DIR) + "/gpus/h200.toml";
}
std::string h200_text() {
  return read_file(h200_path()).value();
}

// The error for h200.toml after replacing `from`.
std::string error(const std::string& from, const std::string& to) {
  std::string text = h200_text();
  EXPECT_NE(text.find(from), std::string::npos) << from;
  auto gpu = parse_gpu("x", replace_all(text, from, to), "x.toml");
  return gpu ? "no error" : gpu.error().text();
}

TEST(Gpu, ShippedFilesLoad) {
  EXPECT_EQ(known_gpus(), (std::vector<std::string>{"a100", "h100", "h200"}));
  for (const std::string& name : known_gpus()) {
    auto gpu = find_gpu(name);
    ASSERT_TRUE(gpu) << gpu.error().text();
    EXPECT_EQ(gpu->id, name);
    EXPECT_GE(gpu->shared_bytes_per_sm, gpu->shared_bytes_per_block + 1024);
    EXPECT_GT(gpu->l2_bytes_per_s, gpu->dram_bytes_per_s);
    for (const char* mode : {"fp32", "tf32", "fp16", "bf16"})
      EXPECT_GT(gpu->flops_per_s.at(mode), 1e13) << name << " " << mode;
    // fp32 peak: 128 lanes per SM (A100: 64), two operations per clock, within a few percent.
    double lanes = gpu->sms * (gpu->arch == "sm_80" ? 64.0 : 128.0) * 2 * gpu->clock_hz;
    EXPECT_NEAR(gpu->flops_per_s.at("fp32") / lanes, 1.0, 0.03) << name;
    EXPECT_NEAR(gpu->sms * gpu->rates.fp32_lanes * 2 * gpu->clock_hz / lanes, 1.0, 1e-9) << name;
    EXPECT_EQ(gpu->rates.schedulers, 4);
    EXPECT_LE(gpu->latency.dram_efficiency, 1);
    for (const char* mode : {"tf32", "fp16", "bf16"})
      EXPECT_LE(gpu->mma_flops_per_s.at(mode), gpu->flops_per_s.at(mode)) << name << " " << mode;
  }
}

TEST(Gpu, H200Figures) {
  GpuSpec g = find_gpu("h200").value();
  EXPECT_EQ(g.arch, "sm_90a");
  EXPECT_EQ(g.sms, 132);
  EXPECT_EQ(g.shared_bytes_per_block, 227 * 1024);
  EXPECT_EQ(g.dram_bytes_per_s, 4.8e12);
}

TEST(Gpu, UnknownNamesListTheKnown) {
  EXPECT_THAT(find_gpu("h20").error().text(),
              testing::AllOf(HasSubstr("unknown GPU 'h20'"), HasSubstr("did you mean 'h200'?"),
                             HasSubstr("a100, h100, h200")));
  EXPECT_THAT(find_gpu("").error().text(), HasSubstr("unknown GPU ''"));
  EXPECT_EQ(find_gpu("../h200").error().kind, ErrorKind::user);
}

TEST(Gpu, ReadsAPath) {
  EXPECT_EQ(find_gpu(h200_path()).value().id, "h200");
  EXPECT_THAT(find_gpu("/nonexistent/x.toml").error().text(), HasSubstr("cannot open"));
  EXPECT_THAT(find_gpu("/tmp/").error().text(), HasSubstr("folder"));
}

TEST(Gpu, RefusesBadFiles) {
  EXPECT_THAT(error("sms = 132", "sms = 0"), HasSubstr("x.toml#chip.sms: error: sms = 0 is out"));
  EXPECT_THAT(error("sms = 132", "sms = -3"), HasSubstr("out of range"));
  EXPECT_THAT(error("sms = 132", "sms = 10000000000"), HasSubstr("out of range"));
  EXPECT_THAT(error("sms = 132", "sms = 13.5"), HasSubstr("missing integer 'sms'"));
  EXPECT_THAT(error("sms = 132", "smss = 132"), HasSubstr("missing integer 'sms'"));
  EXPECT_THAT(error("sms = 132", "sms = 132\nsmss = 1"), HasSubstr("did you mean 'sms'?"));
  EXPECT_THAT(error("clock_hz = 1.98e9", "clock_hz = nan"), HasSubstr("out of range"));
  EXPECT_THAT(error("clock_hz = 1.98e9", "clock_hz = inf"), HasSubstr("out of range"));
  EXPECT_THAT(error("clock_hz = 1.98e9", "clock_hz = \"fast\""), HasSubstr("missing number"));
  EXPECT_THAT(error("arch = \"sm_90a\"", "arch = \"--version\""), HasSubstr("arch"));
  EXPECT_THAT(error("arch = \"sm_90a\"", "arch = 90"), HasSubstr("arch"));
  EXPECT_THAT(error("[chip]\nsource = ", "[chip]\nsauce = "),
              HasSubstr("does not name the source"));
  EXPECT_THAT(error("[chip]", "[ship]"), HasSubstr("missing table [chip]"));
  EXPECT_THAT(error("shared_bytes_per_block = 232448", "shared_bytes_per_block = 999999"),
              HasSubstr("at most 233472"));
  EXPECT_THAT(error("[chip]", "[chip"), HasSubstr("not valid TOML"));
  EXPECT_THAT(error("least_launch_ns = 1000.0", "least_launch_ns = 2001.0"), HasSubstr("at most"));
  EXPECT_THAT(error("least_launch_ns = 1000.0", ""), HasSubstr("missing number"));
  EXPECT_THAT(error("special_lanes = 16", "special_lanes = 0"), HasSubstr("rates.special_lanes"));
  EXPECT_THAT(error("dram_efficiency = 0.92", "dram_efficiency = 1.2"), HasSubstr("at most 1"));
  EXPECT_THAT(error("[latency]", "[lateness]"), HasSubstr("missing table [latency]"));
  EXPECT_THAT(error("int8 = 1226.0e12", "int9 = 1"), HasSubstr("missing number 'int8'"));
}

TEST(Roofline, TheFloorIsTrafficAtTheNominalBandwidth) {
  const GpuSpec g = find_gpu("h200").value();
  const Roofline r = roofline(g, {.other = Flops{1e9}, .least = Bytes{4'800'000'000}});
  EXPECT_DOUBLE_EQ(r.floor_ns, 1e6);
  EXPECT_DOUBLE_EQ(r.memory_ns, 1e6);
  EXPECT_DOUBLE_EQ(r.roofline_ns, 1e6);
  EXPECT_DOUBLE_EQ(r.reachable_ns, 1e6 / 0.92 + 2000);
  EXPECT_EQ(r.bound_by, RooflineBound::memory);
}

TEST(Roofline, OutputsThatTheL2HoldsNeedNoBandwidth) {
  const GpuSpec g = find_gpu("h200").value();
  const Bytes least{4'800'000'000};
  const double kept = double(g.l2_bytes) / 4.8e12 * 1e9;
  EXPECT_DOUBLE_EQ(roofline(g, {.least = least, .written = least}).floor_ns, 1e6 - kept);
  EXPECT_DOUBLE_EQ(roofline(g, {.least = least, .written = Bytes{4'800'000}}).floor_ns, 999e3);
  EXPECT_DOUBLE_EQ(roofline(g, {.least = least, .written = least}).memory_ns, 1e6);
  const Bytes small{1 << 20};  // all of it fits in the L2, so only the launch remains
  EXPECT_EQ(roofline(g, {.least = small, .written = Bytes{INT64_MAX}}).floor_ns, g.least_launch_ns);
}

TEST(Roofline, OperationsAreAnEstimateAndNoFloor) {
  const GpuSpec g = find_gpu("h200").value();
  const Roofline r = roofline(g, {.other = Flops{66.9e12}, .least = Bytes{1000}});
  EXPECT_DOUBLE_EQ(r.compute_ns, 1e9);
  EXPECT_DOUBLE_EQ(r.roofline_ns, 1e9);
  EXPECT_EQ(r.floor_ns, g.least_launch_ns);
  EXPECT_EQ(r.bound_by, RooflineBound::compute);
}

TEST(Roofline, ALaunchIsTheLeast) {
  const GpuSpec g = find_gpu("h200").value();
  const Roofline tiny = roofline(g, {.other = Flops{1000}, .least = Bytes{1000}});
  EXPECT_EQ(tiny.bound_by, RooflineBound::launch);
  EXPECT_EQ(tiny.floor_ns, g.least_launch_ns);
  EXPECT_LT(tiny.floor_ns, g.launch_ns) << "the usual launch time is not a bound";
  EXPECT_EQ(roofline(g, {}).floor_ns, g.least_launch_ns);
}

TEST(Roofline, TakesTheFastestUnitThatIsAccurateEnough) {
  const GpuSpec g = find_gpu("h200").value();
  const double tf32 = g.flops_per_s.at("tf32");
  auto compute = [&](Work work) { return roofline(g, work).compute_ns / 1e9; };
  EXPECT_DOUBLE_EQ(compute({.products = Flops{1e15}}), 1e15 / (tf32 / 3)) << "three tf32 products";
  EXPECT_DOUBLE_EQ(compute({.products = Flops{1e15}, .math_mode = MathMode::tf32}), 1e15 / tf32);
  EXPECT_DOUBLE_EQ(compute({.products = Flops{1e15}, .math_mode = MathMode::bf16}),
                   1e15 / g.flops_per_s.at("bf16"));
  EXPECT_DOUBLE_EQ(compute({.other = Flops{1e15}}), 1e15 / g.flops_per_s.at("fp32"));
  EXPECT_LT(compute({.other = Flops{1e15}, .math_mode = MathMode::bf16}),
            compute({.other = Flops{1e15}}));
  EXPECT_DOUBLE_EQ(compute({.convolutions = Flops{1e15}}), 1e15 / (tf32 / 3));
  EXPECT_DOUBLE_EQ(compute({.convolutions = Flops{1e15}, .tf32_convolutions = true}), 1e15 / tf32);
  EXPECT_DOUBLE_EQ(compute({.products = Flops{1e15}, .tf32_convolutions = true}),
                   1e15 / (tf32 / 3));
  EXPECT_DOUBLE_EQ(
      compute(
          {.convolutions = Flops{1e15}, .math_mode = MathMode::bf16, .tf32_convolutions = true}),
      1e15 / g.flops_per_s.at("bf16"));
  GpuSpec slow = g;  // without fast matrix units the plain rate is higher
  slow.flops_per_s["tf32"] = g.flops_per_s.at("fp32");
  EXPECT_DOUBLE_EQ(roofline(slow, {.products = Flops{1e15}}).compute_ns / 1e9,
                   1e15 / g.flops_per_s.at("fp32"));
}

TEST(GpuOfProduct, TheDriversNameLeadsToTheFile) {
  EXPECT_EQ(gpu_of_product("NVIDIA H200")->id, "h200");
  EXPECT_EQ(gpu_of_product("NVIDIA H100 80GB HBM3")->id, "h100");
  EXPECT_EQ(gpu_of_product("NVIDIA A100-SXM4-80GB")->id, "a100");
  for (const char* other : {"NVIDIA H2000", "NVIDIA RTXA100", "NVIDIA B200", ""}) {
    auto none = gpu_of_product(other);
    ASSERT_FALSE(none) << other;
    EXPECT_EQ(none.error().kind, ErrorKind::world);
    EXPECT_NE(none.error().remedy.find("gpus/NAME.toml"), std::string::npos);
  }
}

}  // namespace
}  // namespace cutegen
