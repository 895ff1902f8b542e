// SPDX-License-Identifier: Apache-2.0
// EvaluatorPool: shares a few evaluators among many runs.
//
// Contract: a run holds an evaluator only while it opens its task or evaluates. While its model
// thinks, other runs use the evaluator in order of arrival. A lease connects a run to one
// evaluator, which keeps the run's task open until the lease ends. If an evaluator has failed, the
// next run that uses it restarts it. Leases must not outlive the pool.
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
  int runs = 1;            // the most leases at the same time
  Trace* trace = nullptr;  // gets a track for each evaluator
};

class EvaluatorPool {
 public:
  EvaluatorPool(const Parts& parts, PoolSettings settings);
  ~EvaluatorPool();
  // options: must be the same for all leases; the pool sets the number of open tasks.
  Result<std::unique_ptr<eval::EvaluatorClient>> lease(const Context& ctx,
                                                       const eval::EvaluatorOptions& options);

 private:
  class Seat;
  class Lease;
  const Parts& parts_;
  PoolSettings settings_;
  std::mutex lock_;  // guards the number of leases of each evaluator
  std::vector<std::unique_ptr<Seat>> seats_;
};

}  // namespace cutegen::engine
