// SPDX-License-Identifier: Apache-2.0
// Excerpts: secret input sets for a small part of the official shape, which the inputs of a sampled
// run repeat. For simulators, which cannot run the whole shape.
//
// Contract: draw() follows the rules of TruthPool and picks the family `made` or `signed` at
// random. If the task has no excerpt, `why_not` gives the reason.
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
    SetPtr set;           // null: the task has no excerpt
    std::string why_not;  // the reason, if set is null
  };
  using Source = std::function<Result<torch::TensorSet>(const Context&, const torch::Excerpt&,
                                                        const std::string& family, uint64_t seed)>;

  // planned: the torch worker's excerpt, or the error that says why it has none.
  Excerpts(const Task& task, Result<torch::Excerpt> planned, Source source);
  // Returns an Error only if cutegen itself fails.
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
