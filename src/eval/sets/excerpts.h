// SPDX-License-Identifier: Apache-2.0
// Excerpts: secret input sets for excerpts, which are small parts of the task's large shapes (the
// sizes in the task file, and weighted shapes). The simulator cannot run a large shape completely,
// so it runs a sample of CTAs on inputs that repeat the values of an excerpt.
//
// Contract: call add() once for each large shape, before the first draw(). draw() picks one of the
// input distributions `made` and `signed` at random and returns a set as TruthPool::draw() does. If
// the shape has no excerpt, `why_not` gives the reason.
//
// Example: CG_TRY(auto drawn, excerpts.draw(ctx, "official", id)); if (!drawn.set) note(drawn);
#pragma once

#include <map>
#include <memory>

#include "eval/sets/truth_pool.h"

namespace cutegen::eval {

class Excerpts {
 public:
  struct Drawn {
    const torch::Excerpt* excerpt = nullptr;
    SetPtr set;           // null if the shape has no excerpt
    std::string why_not;  // the reason if `set` is null
  };
  using Source = std::function<Result<torch::TensorSet>(const Context&, const torch::Excerpt&,
                                                        const std::string& family, uint64_t seed)>;

  Excerpts(const Task& task, Source source);
  // planned: the result of TorchWorker::plan_excerpt(); an error becomes the reason in `why_not`.
  void add(const ShapeCase& shape, Result<torch::Excerpt> planned);
  // Returns an Error only if cutegen itself fails to compute a set.
  Result<Drawn> draw(const Context& ctx, const std::string& shape, const std::string& program_id);
  void pause();
  void resume();

 private:
  struct OfShape {
    torch::Excerpt excerpt;
    std::string why_not;
    std::unique_ptr<TruthPool> pool;  // null if there is no excerpt
  };

  const Task& task_;
  Source source_;
  std::mt19937_64 random_;
  std::map<std::string, OfShape> shapes_;  // by name
};

}  // namespace cutegen::eval
