// SPDX-License-Identifier: Apache-2.0
#include "eval/rungs/block_sets.h"

#include <fmt/format.h>

#include <utility>

#include "eval/rungs/correctness.h"

namespace cutegen::eval {

void BlockSets::use(GpuSetPtr set, const std::string& program_id) {
  set_ = std::move(set);
  program_id_ = program_id;
}

GpuSetPtr BlockSets::ready() const {
  return services_.official->ready(task_, set_->shape, set_->family, program_id_);
}

Result<std::vector<SharedBuffer>> BlockSets::map(const Context& ctx, JudgedBufferOptions options) {
  first_block_ = true;
  if (!next_) next_ = ready();
  options.own_inputs = own_inputs_ = next_ && options.own_inputs;
  CG_TRY(JudgedBuffers run,
         JudgedBuffers::make(ctx, services_.official->gpu(), set_, shape_.plan.scratch, options));
  run_.emplace(std::move(run));
  return run_->buffers();
}

Result<bool> BlockSets::next(const Context& ctx) {
  const bool first = std::exchange(first_block_, false);
  const bool renewed = !first && next_ && own_inputs_;
  if (renewed) {
    CG_CHECK(run_->renew(ctx, next_));
    set_ = std::exchange(next_, ready());
  }
  CG_CHECK(run_->poison_again(ctx));
  return first || renewed;
}

Result<RungEnd> BlockSets::compare(const Context& ctx, int copies) const {
  CG_TRY(std::string damage, run_->damage());
  if (!damage.empty())
    return rung_failed(
        fmt::format("out_of_bounds: {} ({}, timed)", damage, name_of(*shape_.shape)));
  for (int copy = 0; copy < copies; ++copy) {
    CG_TRY(GpuFindings found, run_->judge(ctx, copy));
    if (found.mismatches.empty()) continue;
    RungEnd end = end_of_mismatches(std::move(found.mismatches));
    end.headline = "in a timed run: " + end.headline;
    return end;
  }
  return rung_passed();
}

}  // namespace cutegen::eval
