// SPDX-License-Identifier: Apache-2.0
// Evaluator: the state of the evaluator process: torch worker, toolchain, runner, the open task.
//
// Contract: open_task() describes the file, judges the lazy answers and keeps the task; evaluate()
// judges a program against it. One call at a time; both honour the Context. Between calls the truth
// pool restocks in the background.
//
// Example: CG_TRY(auto e, Evaluator::open(ctx, options)); CG_TRY(auto t, e->open_task(ctx,
// "a.py"));
#pragma once

#include <future>

#include "eval/client.h"
#include "eval/rung.h"
#include "torch/worker.h"

namespace cutegen {

class Evaluator {
 public:
  [[nodiscard]] static Result<std::unique_ptr<Evaluator>> open(const Context& ctx,
                                                               EvaluatorOptions options);
  ~Evaluator();
  [[nodiscard]] Result<OpenedTask> open_task(const Context& ctx, const std::string& file);
  [[nodiscard]] Result<Verdict> evaluate(const Context& ctx, const EvaluateRequest& request,
                                         const Progress& progress);
  [[nodiscard]] const std::string& task_id() const { return task_.id; }

 private:
  explicit Evaluator(EvaluatorOptions options);
  [[nodiscard]] Result<void> prepare(const Context& ctx);
  [[nodiscard]] Result<Admission> judge_lazy_answers(const Context& ctx);
  [[nodiscard]] std::vector<const ShapeCase*> test_shapes() const;
  void warm_up(const Context& ctx);

  EvaluatorOptions options_;
  std::unique_ptr<TorchWorker> worker_;
  std::unique_ptr<Toolchain> toolchain_;
  std::unique_ptr<Assembler> assembler_;
  Runner runner_;
  Services services_;
  std::unique_ptr<TruthPool> pool_;
  Task task_;
  Admission admission_;
  std::stop_source warm_stop_;
  std::future<void> warm_;  // the compile server and the runner, while the task is described
};

}  // namespace cutegen
