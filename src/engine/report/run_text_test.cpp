// SPDX-License-Identifier: Apache-2.0
// Compares what a run prints with golden files: a run on a GPU with a certificate, one on a
// simulator.
// After a deliberate change: CUTEGEN_UPDATE_GOLDEN=1 engine_test --gtest_filter='RunText*'
#include "engine/report/run_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "base/file.h"
#include "engine/report/certificate_text.h"
#include "engine/report/end_text.h"
#include "engine/report/run_json.h"
#include "engine/testing/toy_world.h"

namespace cutegen::engine {
namespace {

using testing::HasSubstr;
using testing::Not;
using toy::numbered_program;
using toy::relu_task;
using toy::timed;
using toy::toy_certificate;
using toy::untimed;

RunStep step_of(int n, const Verdict& verdict, Decision decision) {
  RunStep step;
  step.candidate.id = "c" + std::to_string(n);
  if (n > 1) step.candidate.parent = "c1";
  step.candidate.edit = {.summary = "change " + std::to_string(n),
                         .rationale = "",
                         .origin = "toy",
                         .params = Json::object()};
  step.candidate.program = numbered_program(n);
  step.candidate.program.plan.arch = {"sm_80+"};
  step.verdict = verdict;
  step.decision = decision;
  step.elapsed_ms = 800 * n;
  step.clock_ms = 31'000 * n;
  return step;
}

RunView gpu_view() {
  RunView view;
  view.settings.evaluator.device = "cuda:0";
  view.settings.out = "/best";
  view.settings.certify_minutes = 3;
  view.task = relu_task();
  view.task->gpu = "h200", view.task->product = "NVIDIA H200", view.task->driver = "580.159.04";
  view.task->counters = "ncu 2025.3.1.0";
  view.baselines = TaskBaselines{.times = {{.kind = "eager",
                                            .time_ns = 200,
                                            .low_ns = 199,
                                            .high_ns = 201,
                                            .samples = 8,
                                            .origin = Origin::cached,
                                            .far = 0,
                                            .build_s = 1,
                                            .why = ""},
                                           {.kind = "compile",
                                            .time_ns = 0,
                                            .low_ns = 0,
                                            .high_ns = 0,
                                            .samples = 0,
                                            .origin = Origin::skipped,
                                            .far = 0,
                                            .build_s = 0,
                                            .why = "it raises"}},
                                 .note = "kept from yesterday"};
  Verdict first = timed(100), second = timed(50);
  for (Verdict* v : {&first, &second}) v->timing->origin = Origin::measured;
  second.timing->paired = {{.against = "incumbent",
                            .program_id = "p",
                            .speedup = 2,
                            .low = 1.98,
                            .high = 2.03,
                            .other_ns = 100,
                            .pairs = 16,
                            .stopped = "precise"}};
  first.timing->sm_clock_hz = 1.98e9;
  second.accuracy = Accuracy{
      .elements = 1024, .error = 3e-7, .native_error = 2.5e-7, .largest = 4.5, .share = 0.125};
  second.marks = {"the SM clock was at 80% of the GPU's"};
  view.steps.push_back(step_of(1, first, Decision::accepted));
  view.steps.push_back(step_of(2, second, Decision::accepted));
  view.steps.push_back(
      step_of(3, untimed(Status::failed, "2 of 64 values are wrong"), Decision::rejected));
  view.first_ns = 100;
  view.best = "c2";
  view.evaluations = 3;
  view.clock_ms = 95'000;
  view.finished = "plateau";
  view.certified =
      BestCertificate{.candidate = "c2", .certificate = toy_certificate(numbered_program(2))};
  return view;
}

std::string page(const RunView& view) {
  std::string text = task_text(view) + step_header(view);
  for (const RunStep& step : view.steps) text += step_line(view, step);
  return text + end_text(view, "20260101-abcdef");
}

void expect_golden(const std::string& file, const std::string& text) {
  const auto golden = std::filesystem::path(CUTEGEN_SOURCE_DIR) / "tests/golden/engine" / file;
  if (std::getenv("CUTEGEN_UPDATE_GOLDEN")) {
    ASSERT_TRUE(write_file(golden, text));
  }
  EXPECT_EQ(read_file(golden).value_or("no file"), text) << file;
}

TEST(RunText, OnAGpuIsTheGoldenFile) {
  expect_golden("run_gpu.txt", page(gpu_view()));
}

TEST(RunText, OnASimulatorIsTheGoldenFile) {
  RunView view = gpu_view();
  view.settings.evaluator.device = "sim:h200";
  view.task->driver.clear(), view.baselines.reset(), view.certified.reset();
  for (RunStep& step : view.steps)
    if (step.verdict->timing) step.verdict->timing->origin = Origin::modelled;
  expect_golden("run_sim.txt", page(view));
}

TEST(RunText, TheDocumentIsTheGoldenFile) {
  expect_golden("run_gpu.json", dump_json(run_json(gpu_view(), "20260101-abcdef"), 1) + "\n");
}

TEST(RunText, AnUnfinishedCertificateIsSaid) {
  RunView view = gpu_view();
  view.certified.reset(), view.finished.reset();
  view.certifying = "c2";
  const std::string text = end_text(view, "r");
  EXPECT_THAT(text, HasSubstr("interrupted while c2 was being certified"));
  EXPECT_THAT(text, HasSubstr("cutegen resume r"));
  EXPECT_THAT(text, HasSubstr("certified  no: not finished"));
}

TEST(RunText, ACertificateOfAnotherProgramIsNotTheBestOnes) {
  RunView view = gpu_view();
  view.certified->candidate = "c1";
  EXPECT_THAT(end_text(view, "r"), HasSubstr("no: the certificate is of c1, another program"));
  view.certified = BestCertificate{.candidate = "c2", .why = "torch has no CUDA\n\x1b[31m"};
  const std::string text = end_text(view, "r");
  EXPECT_THAT(text, HasSubstr("no: torch has no CUDA"));
  EXPECT_THAT(text, Not(HasSubstr("\x1b")));
}

TEST(RunText, WhatSpeaksAgainstTheBestProgramIsSaid) {
  RunView view = gpu_view();
  EXPECT_THAT(end_text(view, "r"), Not(HasSubstr("elsewhere")));
  view.profiled =
      BestProfile{.candidate = "c2", .why = "a second evaluation gave failed: 3 values"};
  RunStep there =
      step_of(4, untimed(Status::failed, "2 values are wrong there"), Decision::rejected);
  there.candidate.parent = "c2";
  there.imported = ImportedFrom{.entry = "c2",
                                .entry_sha256 = "",
                                .device = "NVIDIA H200 (driver 570)",
                                .origin = Origin::skipped};
  view.steps.push_back(there);
  const std::string text = end_text(view, "r");
  EXPECT_THAT(text, HasSubstr("profile    none: a second evaluation gave failed: 3 values"));
  EXPECT_THAT(text, HasSubstr("elsewhere  failed on NVIDIA H200 (driver 570): 2 values are wrong"));
}

TEST(CertificateText, WhatAModeLacksIsADash) {
  const CertificateTable table = certificate_table(toy_certificate(numbered_program(1)));
  ASSERT_EQ(table.rows.size(), 5U);
  EXPECT_EQ(table.rows[1].front(), "over eager-tf32") << "the fastest baseline comes first";
  EXPECT_EQ(table.rows[1].back(), "-");
  EXPECT_EQ(table.rows[1][1], "1.500x [1.490,1.510]");
  EXPECT_EQ(table.rows[4][1], "5.00x above");
  EXPECT_THAT(certificate_text(Certificate()), HasSubstr("this program"));
}

TEST(CertificateText, SaysHowExactEachBaselineIs) {
  Certificate c = toy_certificate(numbered_program(1));
  c.baselines = {
      {.kind = "eager",
       .accuracy =
           {.precision = "fp32", .coarser = false, .share = 0.5, .passes = true, .why = ""}},
      {.kind = "compile",
       .accuracy = {.precision = "tf32 convolutions",
                    .coarser = true,
                    .share = 40,
                    .passes = false,
                    .why = "every element is wrong"}},
      {.kind = "eager-tf32",
       .accuracy = {.precision = "tf32",
                    .coarser = true,
                    .share = std::nullopt,
                    .passes = std::nullopt,
                    .why = "no memory"}}};
  const CertificateTable table = certificate_table(c);
  EXPECT_EQ(table.modes.back(), "accuracy");
  EXPECT_EQ(table.rows[0].back(), "");
  EXPECT_EQ(table.rows[1].back(), "tf32: coarser than the math mode");
  EXPECT_EQ(table.rows[2].back(), "tf32 convolutions: fails this task's tolerance");
  EXPECT_EQ(table.rows[3].back(), "fp32, 0.50 of the accepted error");
  const std::string text = certificate_text(c);
  EXPECT_THAT(text, HasSubstr("  compile fails this task's tolerance: every element is wrong\n"));
  EXPECT_THAT(
      text, HasSubstr("  eager-tf32 is not known to be within this task's tolerance: no memory\n"));
  EXPECT_THAT(text, Not(HasSubstr("eager fails")));
}

TEST(CertificateText, NamesVersionsAndClocks) {
  Certificate c = toy_certificate(numbered_program(1));
  EXPECT_THAT(certificate_head(c), Not(HasSubstr("clock")));
  c.cudnn = "9.10.2", c.sm_clock_hz = 1.98e9, c.sm_clock_least_hz = 1.905e9;
  c.memory_clock_hz = 3.201e9;
  EXPECT_EQ(certificate_head(c),
            "NVIDIA H200 (driver 580.159.04), 2.11.0, cuDNN 9.10.2, 2 fresh processes"
            ", 50 s; SM clock 1980 MHz (1905 at least), memory 3201 MHz");
}

TEST(CertificateText, HasATableForEachWeightedShape) {
  Certificate c = toy_certificate(numbered_program(1));
  EXPECT_TRUE(shape_tables(c).empty());
  c.shapes = {{.shape = "official", .weight = 1, .floor_ns = 5, .modes = c.modes},
              {.shape = "wide", .weight = 2.5, .floor_ns = 20, .modes = c.modes}};
  const auto tables = shape_tables(c);
  ASSERT_EQ(tables.size(), 2U);
  EXPECT_EQ(certificate_table(c).title, "weighted mean of 2 shapes");
  EXPECT_EQ(tables[1].title, "shape wide, weight 2.5");
  EXPECT_EQ(tables[1].rows.back()[1], "2.50x above");
  const std::string text = certificate_text(c);
  EXPECT_THAT(text, HasSubstr("  weighted mean of 2 shapes  cold"));
  EXPECT_THAT(text, HasSubstr("  shape wide, weight 2.5  cold"));
}

}  // namespace
}  // namespace cutegen::engine
