// SPDX-License-Identifier: Apache-2.0
// EvaluatorPool: shares a few evaluators among many runs.
//
// Contract: lease() connects a run to one of the evaluators, which keeps the run's task open until
// the run destroys the returned client. The run occupies the evaluator only while the evaluator
// opens the task or evaluates a program. While the run waits for its model, other runs use the
// evaluator, in the order of their requests. If an evaluator has failed, the next run restarts it
// before using it. The pool must outlive all clients.
//
// Example: EvaluatorPool pool(parts, {.evaluators = 2, .runs = 32});
//          CG_TRY(auto evaluator, pool.lease(ctx, options)); evaluator->open_task(ctx, file);
#pragma once

#include <memory>
#include <vector>

#include "engine/run/loop.h"
#include "engine/suite/trace.h"

namespace cutegen::engine {

struct PoolSettings {
  int evaluators = 1;
  int runs = 1;            // largest number of connected runs
  Trace* trace = nullptr;  // records a track for each evaluator
};

class EvaluatorPool {
 public:
  EvaluatorPool(const Parts& parts, PoolSettings settings);
  ~EvaluatorPool();
  // `options` must be the same in all calls. The pool overwrites `options.tasks`.
  Result<std::unique_ptr<eval::EvaluatorClient>> lease(const Context& ctx,
                                                       const eval::EvaluatorOptions& options);

 private:
  class Seat;
  class Lease;
  const Parts& parts_;
  PoolSettings settings_;
  std::mutex lock_;  // guards the number of runs of each evaluator
  std::vector<std::unique_ptr<Seat>> seats_;
};

}  // namespace cutegen::engine
