// SPDX-License-Identifier: Apache-2.0
// Excerpts: secret sets for a part of the official shape, for a device that cannot run it whole.
//
// Contract: draw() returns a set as TruthPool does, at random of the task's own inputs or of
// `signed` ones. If a task has no excerpt, the object remembers the reason.
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
    SetPtr set;           // null: there is none
    std::string why_not;  // then
  };
  using Source = std::function<Result<torch::TensorSet>(const Context&, const torch::Excerpt&,
                                                        const std::string& family, uint64_t seed)>;

  // planned: what the torch worker says of the task.
  Excerpts(const Task& task, Result<torch::Excerpt> planned, Source source);
  // An error only for our own trouble.
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
