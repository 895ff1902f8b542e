// SPDX-License-Identifier: Apache-2.0
// ConsoleObserver: prints the progress of a run. Results go to stdout; a terminal's stderr shows a
// live status line. With --json it prints only the final document.
//
// Contract: seed() takes the events of an earlier session and prints nothing. finish() prints the
// end and returns the exit code of the run.
//
// Example: ConsoleObserver o(g); auto outcome = optimize(g.ctx, *store, settings, o);
#pragma once

#include "cli/command.h"
#include "engine/record/view.h"
#include "engine/run/run.h"

namespace cutegen::cli {

class ConsoleObserver final : public engine::RunObserver {
 public:
  explicit ConsoleObserver(const Globals& g) : g_(g) {}
  ~ConsoleObserver() override { clear_status(); }
  Result<void> seed(const std::vector<Event>& events);
  void on_event(const Event& event) override;
  void on_progress(const std::string& line) override;
  // Prints the result (with --json, as a document) and returns the exit code: 7 if the gain is
  // below fail_under (engine/report/fail_under.h; 0: no limit).
  int finish(const engine::RunResult& outcome, double fail_under);
  const engine::RunView& view() const { return view_; }

 private:
  void say(const std::string& text);
  void say_step(const engine::RunStep& step);
  void say_drafts(const Event& answered);
  void clear_status();
  const Globals& g_;
  engine::RunView view_;
  bool header_ = false, status_ = false;
};

int run_exit_code(const engine::RunResult& outcome);

}  // namespace cutegen::cli
