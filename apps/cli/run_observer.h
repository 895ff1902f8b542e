// SPDX-License-Identifier: Apache-2.0
// ConsoleObserver: a run as it goes on. Lines of results on stdout, a live status line on a
// terminal's stderr, plain lines in a pipe, nothing but the final document with --json.
//
// Contract: seed() takes the events of an earlier session, printing nothing. The end is printed by
// finish(), which also gives the exit code of the run.
//
// Example: ConsoleObserver o(g); auto outcome = optimize(g.ctx, *store, settings, o);
#pragma once

#include "cli/command.h"
#include "engine/record/view.h"

namespace cutegen::cli {

class ConsoleObserver final : public RunObserver {
 public:
  explicit ConsoleObserver(const Globals& g) : g_(g) {}
  ~ConsoleObserver() override { clear_status(); }
  [[nodiscard]] Result<void> seed(const std::vector<Event>& events);
  void on_event(const Event& event) override;
  void on_progress(const std::string& line) override;
  // Prints the end (or the document) and gives the exit code; below fail_under
  // (engine/report/fail_under.h; 0: nothing is asked) it is 7.
  [[nodiscard]] int finish(const RunResult& outcome, double fail_under);
  [[nodiscard]] const RunView& view() const { return view_; }

 private:
  void say(const std::string& text);
  void say_step(const RunStep& step);
  void say_drafts(const Event& answered);
  void clear_status();
  const Globals& g_;
  RunView view_;
  bool header_ = false, status_ = false;
};

[[nodiscard]] int run_exit_code(const RunResult& outcome, double fail_under);

}  // namespace cutegen::cli
