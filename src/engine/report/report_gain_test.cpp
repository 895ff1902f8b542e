// SPDX-License-Identifier: Apache-2.0
// What the report says about the gain: before and after, the roofline, the certificate, imports.
#include "engine/report/report_gain.h"
#include "engine/report/report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/record/end_data.h"
#include "engine/record/event_data.h"
#include "engine/report/roofline_chart.h"
#include "engine/testing/toy_world.h"

namespace cutegen::engine {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using toy::numbered_program;
using toy::relu_task;
using toy::timed;
using toy::toy_certificate;

class Journal {
 public:
  void add(EventType type, const Json& data) {
    events.push_back({.seq = int64_t(events.size()) + 1, .type = type, .version = 1, .data = data});
  }
  std::vector<Event> events;
};

Profile profile_of_best(const std::string& word) {
  KernelProfile k;
  k.kernel = word, k.origin = Origin::measured;
  k.counters = {{"dram_read_bytes", 2048}, {"dram_write_bytes", 2048}};
  return Profile{
      .kernels = {k}, .shape = "official", .source = CounterSource::from("ncu"), .note = ""};
}

// One step on a GPU; `word` stands for all untrusted text.
Journal gpu_journal(const std::string& word) {
  Journal j;
  OptimizeSettings settings;
  settings.evaluator.device = "cuda:0";
  settings.certify_minutes = 3;
  eval::OpenedTask task = relu_task();
  task.gpu = "h200", task.product = word, task.driver = word, task.counters = word;
  task.task.shapes[0].flops = Flops{4096};
  j.add(EventType::opened, to_json(settings));
  j.add(EventType::task, task_data(task));
  TaskBaselines baselines{.times = {{.kind = "eager",
                                     .time_ns = 200,
                                     .low_ns = 199,
                                     .high_ns = 201,
                                     .samples = 8,
                                     .origin = Origin::cached,
                                     .far = 0,
                                     .build_s = 1,
                                     .why = ""}},
                          .note = word};
  j.add(EventType::baselines, to_json(baselines));
  Candidate c{
      .id = "c1",
      .edit = {.summary = "change", .rationale = word, .origin = "toy", .params = Json::object()},
      .program = numbered_program(1)};
  j.add(EventType::answered, {{"outcome", "proposed"}, {"candidate", to_json(c)}});
  Verdict v = timed(50);
  v.timing->origin = Origin::measured;
  v.timing->paired = {{.against = "incumbent",
                       .program_id = "p",
                       .speedup = 2,
                       .low = 1.98,
                       .high = 2.03,
                       .other_ns = 100,
                       .pairs = 16,
                       .stopped = "precise"}};
  v.accuracy = Accuracy{
      .elements = 1024, .error = 3e-7, .native_error = 2.5e-7, .largest = 4.5, .share = 0.125};
  v.compat = Compat{.rule = "allclose 1e-04", .elements = 1024, .wrong = 0};
  v.marks = {word};
  j.add(EventType::evaluated, {{"candidate", "c1"}, {"verdict", to_json(v)}, {"elapsed_ms", 800}});
  j.add(EventType::accepted, {{"candidate", "c1"}, {"reason", word}});
  return j;
}

RunStep imported_step(const std::string& word) {
  RunStep step;
  step.candidate = {.id = "c2",
                    .parent = "c1",
                    .edit = {.summary = "c1, judged elsewhere",
                             .rationale = "",
                             .origin = "imported",
                             .params = Json::object()},
                    .program = numbered_program(1)};
  step.verdict = timed(40);
  step.verdict->gpu = "NVIDIA H100 80GB HBM3", step.verdict->driver = word;
  step.verdict->timing->origin = Origin::imported;
  step.imported = ImportedFrom{.entry = word,
                               .entry_sha256 = "sha",
                               .device = "NVIDIA H100 " + word,
                               .origin = Origin::measured};
  step.reason = "not compared " + word;
  return step;
}

std::string page_of(const Journal& j) {
  store::RunInfo info;
  info.id = "20260101-abcdef";
  auto page = report_html(info, j.events);
  EXPECT_TRUE(page) << page.error().text();
  return page ? *page : "";
}

TEST(ReportGain, BeforeAndAfterWithEveryOrigin) {
  Journal j = gpu_journal("plain");
  j.add(EventType::profiled,
        to_json(BestProfile{.candidate = "c1", .profile = profile_of_best("k")}));
  const std::string page = page_of(j);
  for (const char* part :
       {"1 operator before (modelled: one launch for each operator), 1 after, 0% saved",
        "8.19 KB before (modelled: each operator reads and writes its tensors once), 4.1 KB after "
        "(measured), 50% saved; the least is 8.19 KB",
        "at most 3e-07, the native reference&apos;s 2.5e-07, on 1024 values of up to 4.5",
        "12.5% of the tolerance", "allclose 1e-04: 0 of 1024 values differ",
        "at least 3.980x over eager (measured, not alternately; median 4.000x)",
        "2.000x [1.980,2.030]", "Mark: plain", "--certify-minutes 3",
        "an export runs the module itself"})
    EXPECT_THAT(page, HasSubstr(part));
}

TEST(ReportGain, TheRooflineHasBothPointsAndSaysWhatTheyAre) {
  Journal j = gpu_journal("plain");
  auto view = view_run(j.events);
  ASSERT_TRUE(view) << view.error().text();
  RooflineChart chart = roofline_chart(*view);
  EXPECT_THAT(chart.svg, AllOf(HasSubstr("class=\"roof\""), HasSubstr("class=\"before\""),
                               HasSubstr("class=\"kept\"")));
  EXPECT_THAT(chart.svg, Not(HasSubstr("nan")));
  EXPECT_THAT(chart.legend, HasSubstr("the peak of NVIDIA H200 in fp32"));
  EXPECT_THAT(chart.legend, HasSubstr("Hollow: eager, 200 ns (cached)"));
  EXPECT_THAT(chart.legend, HasSubstr("c1, 50 ns (measured), placed at the least bytes"));
  j.add(EventType::profiled,
        to_json(BestProfile{.candidate = "c1", .profile = profile_of_best("k")}));
  chart = roofline_chart(*view_run(j.events));
  EXPECT_THAT(chart.legend, Not(HasSubstr("least bytes")));
  view->baselines.reset();
  EXPECT_THAT(roofline_chart(*view).legend, HasSubstr("Hollow: the first correct program, 50 ns"));
  view->task->task.shapes[0].flops = Flops{0};
  EXPECT_THAT(roofline_chart(*view).svg, IsEmpty());
  view->task->task.shapes[0].flops = Flops{1};
  view->task->gpu = "no such gpu";
  EXPECT_THAT(roofline_chart(*view).svg, IsEmpty());
}

TEST(ReportGain, TheCertifiedTableOrWhyThereIsNone) {
  Journal j = gpu_journal("plain");
  EXPECT_THAT(page_of(j), HasSubstr("None: this run made no certificate"));
  j.add(EventType::certifying, {{"candidate", "c1"}, {"limit_ms", 1}});
  EXPECT_THAT(page_of(j), HasSubstr("None: it was started but is not finished"));
  Journal failed = j;
  failed.add(EventType::certified,
             to_json(BestCertificate{.candidate = "c1", .why = "torch has no CUDA"}));
  EXPECT_THAT(page_of(failed), HasSubstr("None: torch has no CUDA"));
  j.add(EventType::certified,
        to_json(BestCertificate{.candidate = "c1",
                                .certificate = toy_certificate(numbered_program(1))}));
  const std::string page = page_of(j);
  for (const char* part : {"over compile", "2.000x [1.980,2.020]", "<th class=\"n\">graph</th>",
                           "Missing: compile-max: it raises", "floor 10 ns", "5.00x above",
                           "at least 1.980x over compile (certified, cold"})
    EXPECT_THAT(page, HasSubstr(part));
}

TEST(ReportGain, ImportedVerdictsHaveATableOfTheirOwn) {
  Journal j = gpu_journal("plain");
  j.add(EventType::imported, imported_data(imported_step("plain")));
  const std::string page = page_of(j);
  for (const char* part : {"<h2>Imported</h2>", "NVIDIA H100 plain", "40 ns", "4.00x",
                           "not compared plain", "<td>measured</td>"})
    EXPECT_THAT(page, HasSubstr(part));
  EXPECT_THAT(page, Not(HasSubstr("<title>c2: 40 ns"))) << "the chart is of this run's device";
}

TEST(ReportGain, HostileTextStaysText) {
  const std::string evil = "<script>alert(1)</script>\"'{{{run}}}\x1b[31m&amp;";
  Journal j = gpu_journal(evil);
  j.add(EventType::profiled, to_json(BestProfile{.candidate = "c1", .why = evil}));
  Certificate c = toy_certificate(numbered_program(1));
  c.gpu = c.driver = c.torch = c.shape = c.bound_by = evil, c.missing = {evil};
  c.modes[0].against[0].against = evil;
  j.add(EventType::certified, to_json(BestCertificate{.candidate = "c1", .certificate = c}));
  j.add(EventType::imported, imported_data(imported_step(evil)));
  const std::string page = page_of(j);
  EXPECT_THAT(page, Not(HasSubstr("<script")));
  EXPECT_THAT(page, Not(HasSubstr("\x1b")));
  EXPECT_THAT(page, HasSubstr("<h2>Certificate</h2>"));
}

}  // namespace
}  // namespace cutegen::engine
