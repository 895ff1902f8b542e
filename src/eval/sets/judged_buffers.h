// SPDX-License-Identifier: Apache-2.0
// JudgedBuffers: the GPU memory in which a program runs at the official shape (the sizes in the
// task file). The evaluator owns this memory, and the GPU compares the outputs with the truth (the
// result in float64).
//
// Contract: the memory contains the inputs of a set, which the runner maps read-only, and scratch
// with a pattern. It also contains options.copies copies of each output and of each mutated tensor
// (which the program changes in place). Guard bytes surround each buffer. A copy of a mutated
// tensor starts with the initial values, which are also in the read-only buffer "initial/y". With
// several copies, run k writes copy k, named "y#k". judge(k) compares copy k with the truth, and
// damage() reports writes outside the buffers. judge() and damage() read only this memory and
// ignore the runner's reports.
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
  std::vector<Mismatch> mismatches;  // one mismatch per wrong output
  int64_t elements = 0, not_close = 0;
  int64_t by_chance = 0;   // accepted wrong elements: see differs_by_chance()
  double worst_ratio = 0;  // largest ratio error / tolerance of all outputs
};

// True if an output has so few wrong elements on inputs of the family `extremes` that a correct
// program may have them. Some results change completely if one input is rounded differently, for
// example the sign of a sum that cancels. The evaluator finds such elements by random changes of
// the inputs, but may miss about one in 100 million elements.
bool differs_by_chance(const Judgement& judgement, const std::string& family);

struct JudgedBufferOptions {
  PoisonKind poison = PoisonKind::nan;
  bool at_the_end = false;  // put buffers at the end of blocks, before unmapped memory
  int copies = 1;           // number of copies of each output and mutated tensor
  bool own_inputs = false;  // copy the inputs of the set, so that renew() works
  bool against = false;     // also allocate mutated tensors "against/y" for a second program
};

class JudgedBuffers {
 public:
  static Result<JudgedBuffers> make(const Context& ctx, GpuJudge& judge, GpuSetPtr set,
                                    const std::vector<ScratchBuffer>& scratch,
                                    JudgedBufferOptions options);
  std::vector<SharedBuffer> buffers() const { return shared_; }
  Result<GpuFindings> judge(const Context& ctx, int copy = 0) const;
  // Replaces the inputs and the truth by the inputs and the truth of another set. Needs the option
  // own_inputs.
  Result<void> renew(const Context& ctx, GpuSetPtr set);
  // Prepares the next runs: fills outputs with the pattern, mutated tensors with their initial
  // values, and the guards of these buffers with a new random byte.
  Result<void> poison_again(const Context& ctx);
  // Describes the first detected write outside a buffer. Returns "" if there was no such write.
  Result<std::string> damage() const;

 private:
  Result<void> add(const Context& ctx, const std::string& name, int64_t bytes, const Poison& poison,
                   bool at_the_end, int copies, std::vector<GpuBuffer>& to);
  // Adds the buffers of an output, or of a mutated tensor with its initial values.
  Result<void> add_result(const Context& ctx, const GpuExpected& result, const std::string& name,
                          bool at_the_end, int copies, std::vector<GpuBuffer>& to);
  Result<void> copy_inputs(const Context& ctx);

  GpuJudge* judge_ = nullptr;
  GpuSetPtr set_;
  std::vector<SharedBuffer> shared_;
  // With own_inputs: copies of the set's inputs, in the same order; else empty.
  std::vector<GpuBuffer> inputs_;
  std::vector<GpuBuffer> scratch_, outputs_;  // outputs_: copy 0 of all, then copy 1, ...
  std::vector<GpuBuffer> against_;            // mutated tensors of the second program
  Poison poison_{};
};

}  // namespace cutegen::eval
