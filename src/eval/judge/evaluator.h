// SPDX-License-Identifier: Apache-2.0
// Evaluator: the state of the evaluator process: the torch worker, the toolchain, the runner, and
// the open tasks.
//
// Contract: open_task() describes the task of a file, judges the degenerate solutions and keeps the
// task open, up to EvaluatorOptions::tasks at a time. evaluate() judges a program on an open task.
// The caller must not make two calls at the same time. Every call returns early if the Context is
// cancelled or times out. Between calls, the pools of input sets compute new sets in the
// background.
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
  // request.task: id of an open task; empty for the last opened task.
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
  // See eval/api/expect_children.h.
  void expect_children(const KernelProgram& program, int children, const std::string& task);

 private:
  struct Open {
    Task task;
    OpenedTask told;  // the reply to open_task()
    bool precision_tells = true;
    uint64_t sample_seed = 1;
    std::shared_ptr<TruthPool> pool;
    std::vector<std::string> families;  // the input distributions in use
    std::shared_ptr<DerivedShapes> derived;
    std::shared_ptr<Excerpts> excerpts;  // null on a GPU
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
  // Pauses the background work for all tasks except `open`, to keep the CPU free for `open`.
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
  // Input sets at the sizes in the task files; null on a simulator.
  std::shared_ptr<GpuTruths> official_;
  Services services_;                              // services that do not depend on a task
  UniqueFd slot_;                                  // the GPU's lock file, for `baselines_`
  std::unique_ptr<torch::TorchWorker> baselines_;  // times baselines; never runs a candidate
  // worker that times eager mode for foreign.h; never runs a third-party solution
  std::unique_ptr<torch::TorchWorker> beside_;
  std::mutex worker_lock_;                   // locked during each call of worker_
  std::vector<std::unique_ptr<Open>> open_;  // open tasks; the last used one is at the end
  std::stop_source warm_stop_;
  // the start of the compile server, in the background while open_task() describes the task
  std::future<void> warm_;
  std::shared_future<std::string> outlook_;  // on a GPU: the tool that will read hardware counters
};

}  // namespace cutegen::eval
