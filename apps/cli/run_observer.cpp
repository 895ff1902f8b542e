// SPDX-License-Identifier: Apache-2.0
#include "cli/run_observer.h"
#include "engine/report/end_text.h"
#include "engine/report/fail_under.h"
#include "engine/report/run_json.h"
#include "engine/report/run_text.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdio>

#include "base/log.h"
#include "base/text.h"

namespace cutegen::cli {
namespace {

size_t terminal_width() {
  struct winsize size{};
  if (::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col < 20) return 80;
  return size.ws_col;
}

}  // namespace

int run_exit_code(const engine::RunResult& outcome) {
  if (outcome.interrupted) return kExitInterrupted;
  if (!outcome.best) return outcome.all_verdicts ? exit_code(*outcome.all_verdicts) : kExitFailed;
  return kExitOk;
}

Result<void> ConsoleObserver::seed(const std::vector<Event>& events) {
  for (const Event& event : events) CG_CHECK(view_.apply(event));
  return {};
}

void ConsoleObserver::clear_status() {
  if (status_) std::fputs("\r\x1b[K", stderr);
  status_ = false;
}

void ConsoleObserver::say(const std::string& text) {
  if (g_.json) return;
  clear_status();
  print_text(text);
  std::fflush(stdout);  // a reader of the pipe then sees each step as soon as it ends
}

void ConsoleObserver::on_event(const Event& event) {
  if (auto applied = view_.apply(event); !applied)
    return log_warning("event {}: {}", event.seq, applied.error().text());
  if (event.type == EventType::task || event.type == EventType::resumed)
    say(engine::task_text(view_));
  if (event.type == EventType::baselines) say(engine::baselines_text(view_));
  if (event.type == EventType::answered) say_drafts(event);
  if (event.type != EventType::accepted && event.type != EventType::rejected) return;
  if (const engine::RunStep* step = view_.find(event.data.value("candidate", ""))) say_step(*step);
}

void ConsoleObserver::say_step(const engine::RunStep& step) {
  if (!header_) say(engine::step_header(view_));
  header_ = true;
  say(engine::step_line(view_, step));
}

// Prints the drafts that did not become the answer. The answer follows when the strategy decides on
// it.
void ConsoleObserver::say_drafts(const Event& answered) {
  std::string answer;
  if (auto it = answered.data.find("candidate"); it != answered.data.end())
    answer = it->value("id", "");
  for (const engine::RunStep& step : view_.steps)
    if (step.drafted == view_.answers - 1 && step.verdict && step.candidate.id != answer)
      say_step(step);
}

void ConsoleObserver::on_progress(const std::string& line) {
  if (g_.json || g_.quiet || !g_.error_tty) return;
  std::string text = sanitize(line, 400);
  for (char& c : text)
    if (c == '\n') c = ' ';
  if (text.size() >= terminal_width()) text = text.substr(0, terminal_width() - 1);
  std::fprintf(stderr, "\r\x1b[K%s", text.c_str());
  std::fflush(stderr);
  status_ = true;
}

int ConsoleObserver::finish(const engine::RunResult& outcome, double fail_under) {
  int code = run_exit_code(outcome);
  clear_status();
  const auto gain = engine::best_gain(view_);
  const bool asked = fail_under > 0 && code == kExitOk, reached = engine::reaches(gain, fail_under);
  if (asked && !reached) code = kExitBelow;
  Json document = g_.json ? engine::run_json(view_, outcome.run_id) : Json();
  if (g_.json) document["exit_code"] = code;
  if (g_.json && asked) document["fail_under"] = {{"wanted", fail_under}, {"reached", reached}};
  std::string text = engine::end_text(view_, outcome.run_id);
  if (asked)
    text += fmt::format("{:<11}--fail-under {}: {}{}\n", reached ? "reached" : "below", fail_under,
                        engine::to_text(gain), reached ? "" : fmt::format("; exit code {}", code));
  print_result(g_, document, text);
  return code;
}

}  // namespace cutegen::cli
