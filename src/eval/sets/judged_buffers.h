// SPDX-License-Identifier: Apache-2.0
// JudgedBuffers: the GPU memory in which a program runs at the official shape. The evaluator owns
// it, and the GPU compares the outputs in it with the truth.
//
// Contract: it holds the inputs of a set (the runner maps them read-only), scratch filled with a
// pattern, and `copies` copies of each output, with guards around each. A mutated tensor also has
// copies, which start with its initial values; the read-only buffer "initial/y" keeps these values.
// If there are copies, run k writes copy k: "y#k". judge(k) compares copy k with the truth, and
// damage() reports writes outside the buffers. Both look only at this memory, not at the runner's
// reports.
//
// Example:
//   CG_TRY(auto buffers, JudgedBuffers::make(ctx, gpu, set, plan.scratch, {.copies = 8}));
//   RunRequest request; request.shared = buffers.buffers(); ... runner.run(ctx, request) ...
//   CG_TRY(std::string damage, buffers.damage());
//   for (int k = 0; k < 8; ++k) { CG_TRY(GpuFindings f, buffers.judge(ctx, k)); ... }
//   CG_CHECK(buffers.poison_again(ctx)); ... the next block of timed runs ...
#pragma once

#include "core/program.h"
#include "core/verdict.h"
#include "eval/runner/arena.h"
#include "eval/sets/gpu_set.h"

namespace cutegen::eval {

struct GpuFindings {
  std::vector<Mismatch> mismatches;  // one entry for each output that is wrong
  int64_t elements = 0, not_close = 0;
  int64_t by_chance = 0;   // wrong elements that differs_by_chance() accepts
  double worst_ratio = 0;  // the largest error / tolerance of all outputs
};

// Whether the number of wrong elements on inputs of `extremes` is so small that chance explains it.
// Some results can change completely with one rounding of the inputs (the sign of tanh of a sum
// that cancels). The evaluator finds them by random changes of the inputs, and may miss a few: on
// an H100, it missed one in 65, in 130 and in 539 million elements.
bool differs_by_chance(const Judgement& judgement, const std::string& family);

struct JudgedBufferOptions {
  PoisonKind poison = PoisonKind::nan;
  bool at_the_end = false;  // put buffers at the end of their blocks, before unmapped memory
  int copies = 1;           // number of copies of each output and mutated tensor: "y", "y#1", ...
  bool own_inputs = false;  // copies of the set's inputs, so that renew() can change them
  bool against = false;     // also allocate mutated tensors for a second program: "against/y"
};

class JudgedBuffers {
 public:
  static Result<JudgedBuffers> make(const Context& ctx, GpuJudge& judge, GpuSetPtr set,
                                    const std::vector<ScratchBuffer>& scratch,
                                    JudgedBufferOptions options);
  std::vector<SharedBuffer> buffers() const { return shared_; }
  Result<GpuFindings> judge(const Context& ctx, int copy = 0) const;
  // Takes the inputs of another set, and compares with its truth from now on. Needs own_inputs.
  Result<void> renew(const Context& ctx, GpuSetPtr set);
  // Prepares the next block of runs: fills every output with the pattern, every mutated tensor with
  // its initial values, and the guards with a new byte.
  Result<void> poison_again(const Context& ctx);
  // Describes the first detected write outside a buffer; empty if there is none.
  Result<std::string> damage() const;

 private:
  Result<void> add(const Context& ctx, const std::string& name, int64_t bytes, const Poison& poison,
                   bool at_the_end, int copies, std::vector<GpuBuffer>& to);
  // Adds a result of the set: an output, or a mutated tensor with its initial values.
  Result<void> add_result(const Context& ctx, const GpuExpected& result, const std::string& name,
                          bool at_the_end, int copies, std::vector<GpuBuffer>& to);
  Result<void> copy_inputs(const Context& ctx);

  GpuJudge* judge_ = nullptr;
  GpuSetPtr set_;
  std::vector<SharedBuffer> shared_;
  // Copies of the inputs (if own_inputs), in the set's order.
  std::vector<GpuBuffer> inputs_;
  std::vector<GpuBuffer> scratch_, outputs_;  // outputs of copy 0, of copy 1, ...
  std::vector<GpuBuffer> against_;            // mutated tensors of the second program
  Poison poison_{};
};

}  // namespace cutegen::eval
