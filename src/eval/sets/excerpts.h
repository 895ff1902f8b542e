// SPDX-License-Identifier: Apache-2.0
// Excerpts: secret input sets for an excerpt, which is a small part of the official shape (the
// sizes in the task file). The simulator cannot run the whole official shape, so it runs a sample
// of CTAs on inputs that repeat the values of an excerpt.
//
// Contract: draw() picks one of the input distributions `made` and `signed` at random and returns a
// set as TruthPool::draw() does. If the task has no excerpt, `why_not` gives the reason.
//
// Example: CG_TRY(auto drawn, excerpts.draw(ctx, id)); if (!drawn.set) note(drawn.why_not);
#pragma once

#include <memory>

#include "eval/sets/truth_pool.h"

namespace cutegen::eval {

class Excerpts {
 public:
  struct Drawn {
    const torch::Excerpt* excerpt = nullptr;
    SetPtr set;           // null if the task has no excerpt
    std::string why_not;  // the reason if `set` is null
  };
  using Source = std::function<Result<torch::TensorSet>(const Context&, const torch::Excerpt&,
                                                        const std::string& family, uint64_t seed)>;

  // planned: the result of TorchWorker::plan_excerpt(); an error becomes the reason in `why_not`.
  Excerpts(const Task& task, Result<torch::Excerpt> planned, Source source);
  // Returns an Error only if cutegen itself fails to compute a set.
  Result<Drawn> draw(const Context& ctx, const std::string& program_id);
  void pause();
  void resume();

 private:
  torch::Excerpt excerpt_;
  std::string why_not_;
  std::unique_ptr<TruthPool> pool_;
  std::mt19937_64 random_;
};

}  // namespace cutegen::eval
