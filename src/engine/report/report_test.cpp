// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/record/event_data.h"
#include "engine/record/program_diff.h"
#include "engine/report/report.h"
#include "engine/report/report_chart.h"
#include "engine/testing/toy_world.h"

namespace cutegen::engine {
namespace {

using testing::HasSubstr;
using testing::Not;
using toy::numbered_program;
using toy::relu_task;
using toy::timed;
using toy::untimed;

constexpr const char* kEvil = "<script>alert(1)</script>\"'{{{run}}}\x1b[31m&amp;";

// Three steps: correct, faster, wrong. `word` stands for all untrusted text.
std::vector<Event> run_events(const std::string& word) {
  std::vector<Event> events;
  auto add = [&](EventType type, const Json& data) {
    events.push_back({.seq = int64_t(events.size()) + 1, .type = type, .version = 1, .data = data});
  };
  OptimizeSettings settings;
  settings.file = "/tasks/" + word;
  settings.resolved_config = Json{{word, {{"value", word}, {"source", word}}}};
  add(EventType::opened, to_json(settings));
  eval::OpenedTask task = relu_task();
  task.task.name = task.task.workload = task.toolchain = word;
  task.task.notes = {word};
  task.admission.families = {word};
  task.admission.remark = word;
  add(EventType::task, task_data(task));
  for (int n = 1; n <= 3; ++n) {
    Candidate c;
    c.id = "c" + std::to_string(n);
    if (n > 1) c.parent = "c1";
    c.edit = {.summary = "change " + std::to_string(n) + word,
              .rationale = word,
              .origin = "toy",
              .params = {{"n", n}}};
    c.program = numbered_program(n);
    c.program.sources["kernel.cu"] += "// " + word + "\n";
    add(EventType::answered, {{"outcome", "proposed"}, {"candidate", to_json(c)}});
    Verdict v = n < 3 ? timed(100.0 / n) : untimed(Status::failed, word);
    v.feedback.detail = word;
    v.skipped = {word};
    KernelProfile k;
    k.kernel = word, k.time_ns = 50, k.diagnosis.bound = Bound::memory,
    k.diagnosis.summary = "memory bound " + word;
    k.remarks = {{.kind = "tail", .line = 0, .message = "few waves " + word}};
    v.profile = Profile{.kernels = {k},
                        .shape = "official",
                        .source = CounterSource::from("simulator"),
                        .note = "not read " + word};
    add(EventType::evaluated, {{"candidate", c.id}, {"verdict", to_json(v)}, {"elapsed_ms", 1500}});
    add(n < 3 ? EventType::accepted : EventType::rejected, {{"candidate", c.id}, {"reason", word}});
  }
  add(EventType::finished, {{"reason", "plateau " + word}, {"best", "c2"}, {"clock_ms", 9000}});
  return events;
}

store::RunInfo info() {
  store::RunInfo i;
  i.id = "20260101-abcdef";
  i.state = store::RunState::finished;
  return i;
}

TEST(Report, SaysWhatTheRunDid) {
  auto page = report_html(info(), run_events("plain"));
  ASSERT_TRUE(page) << page.error().text();
  for (const char* part :
       {"20260101-abcdef", "c2 is correct on 9 sets of inputs", "50 ns (modelled)", "2.00x",
        "none measured: the device is a simulator", "Stopped: plateau plain", "class=\"floor\"",
        "What limits the best program", "simulator; not read plain",
        "50 ns (modelled): memory bound plain · few waves plain", "difference from c1",
        "class=\"a\">+ // 2", "class=\"d\">- // 1", "Skipped: plain", "Times are modelled",
        "cutegen optimize --replay 20260101-abcdef", "prefers-color-scheme", "4.5 s evaluating",
        "9.0 s"})
    EXPECT_THAT(*page, HasSubstr(part));
}

TEST(Report, LoadsNothingFromTheNetwork) {
  auto page = report_html(info(), run_events("plain"));
  ASSERT_TRUE(page);
  for (const char* part : {"http:", "https:", "src=", "@import", "<script", "<link", "url("})
    EXPECT_THAT(*page, Not(HasSubstr(part)));
}

TEST(Report, HostileTextStaysText) {
  auto page = report_html(info(), run_events(kEvil));
  ASSERT_TRUE(page) << page.error().text();
  EXPECT_THAT(*page, Not(HasSubstr("<script")));
  EXPECT_THAT(*page, Not(HasSubstr("\x1b")));
  EXPECT_THAT(*page, HasSubstr("&lt;script&gt;alert(1)&lt;/script&gt;&quot;"));
  EXPECT_THAT(*page, HasSubstr("{{{run}}}"));
}

TEST(Report, ARunThatHasOnlyBegunHasAPage) {
  auto events = run_events("plain");
  for (size_t count : {1u, 2u, 3u, 4u}) {
    auto page = report_html(info(), {events.begin(), events.begin() + long(count)});
    ASSERT_TRUE(page) << page.error().text();
    EXPECT_THAT(*page, HasSubstr("not finished"));
  }
}

TEST(Report, AJournalThatCannotBeReadIsAnError) {
  auto events = run_events("plain");
  events[3].data.erase("verdict");
  auto page = report_html(info(), events);
  ASSERT_FALSE(page);
  EXPECT_THAT(page.error().text(), HasSubstr("verdict"));
}

TEST(Chart, NeedsATime) {
  RunView view;
  EXPECT_EQ(chart_svg(view), "");
  EXPECT_EQ(html_escape("<a href='x'>&\""), "&lt;a href=&#39;x&#39;&gt;&amp;&quot;");
}

TEST(Chart, HasTicksInEveryRange) {
  for (double first : {100.5, 130.0, 390.0, 5000.0, 1e9}) {
    RunView view;
    for (double ns : {first, 100.0}) {
      RunStep step;
      step.candidate.id = "c1";
      step.verdict = timed(ns);
      view.steps.push_back(step);
    }
    std::string svg = chart_svg(view);
    size_t lines = 0;
    for (size_t at = svg.find("\"axis\""); at != std::string::npos;
         at = svg.find("\"axis\"", at + 1))
      ++lines;
    EXPECT_GE(lines, 2u) << first;
    EXPECT_LE(lines, 9u) << first;
  }
}

std::string marks(const std::vector<agent::DiffLine>& lines) {
  std::string out;
  for (const agent::DiffLine& line : lines) out += line.mark;
  return out;
}

TEST(Diff, ShowsTheChangesAndTheLinesNearThem) {
  EXPECT_TRUE(agent::line_diff("same\n", "same\n").empty());
  EXPECT_EQ(marks(agent::line_diff("a\nb\nc\n", "a\nx\nc\n")), " -+ ");
  EXPECT_EQ(marks(agent::line_diff("", "a\nb\n")), "++");
  EXPECT_EQ(marks(agent::line_diff("1\n2\n3\n4\n5\n6\n7\n8\n", "1\n2\n3\n4\n5\n6\n7\nx\n", 2)),
            "@  -+");
  EXPECT_EQ(marks(agent::line_diff("k\na\nk\nb\nk\n", "a\nk\nk\nz\nk\n")), "-  -++ ");
}

TEST(Diff, HugeTextsAreReplacedWhole) {
  std::string a, b;
  for (int i = 0; i < 5000; ++i)
    a += std::to_string(i) + "\n", b += std::to_string(i + 9000) + "\n";
  auto lines = agent::line_diff(a, b);
  EXPECT_EQ(lines.size(), 10000u);
}

TEST(Diff, OfProgramsNamesTheFiles) {
  std::string diff = program_diff(numbered_program(1), numbered_program(2));
  EXPECT_EQ(diff,
            "--- kernel.cu\n+++ kernel.cu\n-// 1\n+// 2\n extern \"C\" __global__ void k() {}\n");
  EXPECT_THAT(program_diff({}, numbered_program(1)), HasSubstr("--- plan.json"));
  EXPECT_THAT(program_text(numbered_program(1)), HasSubstr("==> kernel.cu <==\n// 1\n"));
}

}  // namespace
}  // namespace cutegen::engine
