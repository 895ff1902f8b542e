// SPDX-License-Identifier: Apache-2.0
#include "device/codec.h"
#include "device/buffers.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace cutegen::device {
namespace {

PlanSteps steps() {
  Launch l;
  l.step = "gemm";
  l.kernel = "gemm";
  l.module = 2;
  l.grid = {132, 2, 1};
  l.block = {384, 1, 1};
  l.shared_bytes = 99;
  l.cooperative = true;
  l.registers = 168;
  l.args = {{.buffer = "x"},
            {.buffer = "", .bytes = {std::byte{0}, std::byte{0xff}}},
            {.buffer = "w", .bytes = {std::byte{7}}}};
  return {l, Fill{.step = "zero",
                  .buffer = "out",
                  .value = -std::numeric_limits<double>::infinity(),
                  .dtype = DType::bf16}};
}

TEST(Codec, StepsRoundTrip) {
  Json json = to_json(steps());
  auto back = plan_steps_from_json(json);
  ASSERT_TRUE(back) << back.error().text();
  EXPECT_EQ(to_json(*back), json);
  const auto& fill = std::get<Fill>((*back)[1]);
  EXPECT_EQ(fill.dtype, DType::bf16);
  EXPECT_TRUE(std::isinf(fill.value));
  const auto& launch = std::get<Launch>((*back)[0]);
  EXPECT_EQ(launch.registers, 168);
  EXPECT_EQ(launch.args[1].bytes[1], std::byte{0xff});
  EXPECT_EQ(launch.args[2].buffer, "w");
  EXPECT_EQ(launch.args[2].bytes.size(), 1u);
}

TEST(Codec, FactsSettingsAndReportsRoundTrip) {
  ModuleFacts facts{.entries = {{.name = "f",
                                 .params = {{.size = 8, .align = 8}, {.size = 4, .align = 4}},
                                 .max_block = {256, 1, 1},
                                 .static_shared_bytes = 64}},
                    .constants = {{"cg_smem", -1}},
                    .tma_specs = {{"t", {1, 2}}}};
  EXPECT_EQ(to_json(*read_json<ModuleFacts>(to_json(facts))), to_json(facts));
  RunSettings settings{.sample_ctas = 16,
                       .instruction_budget = 1000,
                       .threads = 2,
                       .checks = true,
                       .sample_most = 64,
                       .sample_error = 0.125,
                       .sample_seed = 77,
                       .lines = true};
  for (auto c : {BufferContent::data, BufferContent::output, BufferContent::scratch}) {
    const RunBuffer buffer{.name = "x", .bytes = 8, .content = c};
    EXPECT_EQ(read_json<RunBuffer>(to_json(buffer))->content, c);
  }
  Json poison = to_json(RunBuffer{});
  poison["content"] = "poison";
  EXPECT_EQ(read_json<RunBuffer>(poison).error().kind, ErrorKind::world);
  EXPECT_EQ(to_json(*read_json<device::RunSettings>(to_json(settings))), to_json(settings));
  EXPECT_FALSE(to_json(settings).contains("order"));
  settings.order = RunOrder::mixed, settings.order_seed = 5;
  auto ordered = read_json<device::RunSettings>(to_json(settings));
  ASSERT_TRUE(ordered);
  EXPECT_EQ(ordered->order, RunOrder::mixed);
  EXPECT_EQ(ordered->order_seed, 5U);
  Json unknown = to_json(settings);
  unknown["order"] = "sideways";
  EXPECT_FALSE(read_json<device::RunSettings>(unknown));
  RunReport report{
      .status = RunReport::Status::finding, .message = "out of bounds", .detail = "CTA (0,0,0)"};
  report.kernels.push_back({.kernel = "f",
                            .origin = Origin::modelled,
                            .time_ns = 12.5,
                            .bound_by = "dram",
                            .counters = {{"flops", 3}},
                            .sampled_share = 0.5});
  report.kernels[0].sample_error = 0.25, report.kernels[0].limited_by = CtaLimit::grid;
  report.kernels[0].lines = {{.line = 12, .text = "", .counters = {{"issue_slots", 7}}}};
  report.traces.push_back({.kernel = "f", .ctas_total = 900, .ctas_run = 9});
  report.traces[0].kinds = 5, report.traces[0].kinds_missed = 2;
  report.traces[0].kinds_known = false;
  report.traces[0].stored_error = 0.125, report.traces[0].stored_bytes["out"] = 96;
  report.traces[0].stored_once["out"] = 48;
  report.traces[0].unreached["out"] = 0.5, report.traces[0].unreached_from["out"] = 0.25;
  EXPECT_EQ(to_json(*read_json<device::RunReport>(to_json(report))), to_json(report));
}

TEST(Codec, RequestsForTimesRoundTrip) {
  for (TimeMode mode : {TimeMode::cold, TimeMode::warm, TimeMode::graph, TimeMode::call}) {
    TimeRequest request{.mode = mode,
                        .steps = steps(),
                        .against = steps(),
                        .paired = true,
                        .control = true,
                        .watch = true,
                        .samples = 5,
                        .seed = 99,
                        .limit = std::chrono::seconds(3)};
    Json json = to_json(request);
    auto back = read_json<device::TimeRequest>(json);
    ASSERT_TRUE(back) << back.error().text();
    EXPECT_EQ(to_json(*back), json);
    json["mode"] = "hot";
    EXPECT_FALSE(read_json<device::TimeRequest>(json));
  }
}

TEST(Codec, ARunnersWordIsBounded) {
  RunReport report{.status = RunReport::Status::finding,
                   .message = std::string(100000, 'a') + "\x1b[31m",
                   .detail = ""};
  auto back = read_json<device::RunReport>(to_json(report));
  ASSERT_TRUE(back);
  EXPECT_LT(back->message.size(), 20000u);
  EXPECT_EQ(back->message.find('\x1b'), std::string::npos);
}

TEST(Codec, HostileFormsAreRefused) {
  auto refused = [](const char* text) { return !read_json<device::RunReport>(Json::parse(text)); };
  EXPECT_TRUE(refused(R"({})"));
  EXPECT_TRUE(refused(R"([])"));
  EXPECT_TRUE(refused(R"({"status":"correct","message":"","detail":"","kernels":[]})"));
  EXPECT_TRUE(refused(R"({"status":"ok","verdict":"correct"})"));
  EXPECT_TRUE(refused(R"({"status":"ok","kernels":[{"kernel":"f","time_ns":null}]})"));
  Json lines = to_json(RunReport{});
  lines["kernels"] = Json::array({to_json(RunReport{})});
  EXPECT_FALSE(read_json<device::RunReport>(lines));
  RunReport far{};
  far.kernels.resize(1);
  far.kernels[0].lines = {{.line = -1, .text = ""}};
  EXPECT_FALSE(read_json<device::RunReport>(to_json(far)));
  EXPECT_FALSE(read_json<ModuleFacts>(Json::parse(R"({"entries":[{"name":3}]})")));
  Json bad = to_json(steps());
  bad["steps"][0]["grid"] = {1, 2};
  EXPECT_FALSE(plan_steps_from_json(bad));
  bad = to_json(steps());
  bad["steps"][0]["args"][1]["bytes"] = "0g";
  EXPECT_FALSE(plan_steps_from_json(bad));
}

}  // namespace
}  // namespace cutegen::device
