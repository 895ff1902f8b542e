// SPDX-License-Identifier: Apache-2.0
// Evaluator: the state of the evaluator process: torch worker, toolchain, runner, the open tasks.
//
// Contract: open_task() describes the file, judges the degenerate solutions and keeps the task; the
// options say how many tasks stay open. evaluate() judges a program against one of them. Callers
// make one call at a time; both calls honour the Context. Between calls, the truth pools compute
// new sets in the background.
//
// Example: CG_TRY(auto e, Evaluator::open(ctx, options));
//   CG_TRY(auto task, e->open_task(ctx, "a.py"));
#pragma once

#include <future>

#include "eval/api/client.h"
#include "eval/profile/hardware_counters.h"
#include "eval/rungs/derive_shapes.h"
#include "eval/rungs/gpu_correctness.h"
#include "eval/rungs/rung.h"
#include "eval/sets/excerpts.h"
#include "torch/worker.h"

namespace cutegen::eval {

class Evaluator {
 public:
  static Result<std::unique_ptr<Evaluator>> open(const Context& ctx, EvaluatorOptions options);
  ~Evaluator();
  Result<OpenedTask> open_task(const Context& ctx, const std::string& file,
                               const AskedAccuracy& asked = {});
  // request.task: empty for the task that was opened last.
  Result<Verdict> evaluate(const Context& ctx, const EvaluateRequest& request,
                           const Progress& progress);
  Result<Certificate> certify(const Context& ctx, const CertifyRequest& request,
                              const Progress& progress);
  Result<Verdict> judge_foreign(const Context& ctx, const ForeignRequest& request,
                                const Progress& progress);
  Result<std::vector<BaselineTime>> time_baselines(const Context& ctx,
                                                   const BaselinesRequest& request,
                                                   const Progress& progress);
  void close_task(const std::string& id);
  // See EvaluatorClient.
  void expect_children(const KernelProgram& program, int children, const std::string& task);

 private:
  struct Open {
    Task task;
    OpenedTask told;  // the reply of open_task()
    bool precision_tells = true;
    uint64_t sample_seed = 1;
    std::shared_ptr<TruthPool> pool;
    std::vector<std::string> families;  // input families that differ from "made"
    std::shared_ptr<DerivedShapes> derived;
    std::shared_ptr<Excerpts> excerpts;  // on a simulator, for a large official shape
    void pause() const {
      pool->pause();
      if (excerpts) excerpts->pause();
    }
    void resume() const {
      pool->resume();
      if (excerpts) excerpts->resume();
    }
  };
  explicit Evaluator(EvaluatorOptions options);
  Result<void> prepare(const Context& ctx);
  Result<void> know_device(const Context& ctx);
  Result<OpenedTask> open_file(const Context& ctx, const std::string& file,
                               const AskedAccuracy& asked);
  Result<void> open_new(const Context& ctx, Task task);
  void open_excerpts(const Context& ctx, Open& open);
  Services services_of(const Open& open) const;
  // Pauses the background work of all other tasks, so that it does not disturb this one.
  void pause_others(const Open& open);
  Result<Open*> find(const std::string& id);
  void mark(const Open& open, Verdict& verdict) const;
  void make_room();
  void close(std::unique_ptr<Open>& open);
  void warm_up();

  EvaluatorOptions options_;
  std::unique_ptr<torch::TorchWorker> worker_;
  std::shared_ptr<toolchain::Toolchain> toolchain_;
  std::shared_ptr<toolchain::Assembler> assembler_;
  std::shared_ptr<Runner> runner_;
  std::shared_ptr<GpuTruths> official_;            // on a GPU
  Services services_;                              // those that do not depend on a task
  UniqueFd slot_;                                  // lock file of the worker that times baselines
  std::unique_ptr<torch::TorchWorker> baselines_;  // times baselines; sees no program
  std::unique_ptr<torch::TorchWorker> beside_;     // times eager for foreign.h; sees no solution
  std::mutex worker_lock_;                         // held during each call of the torch worker
  std::vector<std::unique_ptr<Open>> open_;        // open tasks in order of use, the latest last
  std::stop_source warm_stop_;
  std::future<void> warm_;  // starts compile server and runner while the worker describes the task
  std::shared_future<std::string> outlook_;  // on a GPU: which tool will read its hardware counters
};

}  // namespace cutegen::eval
