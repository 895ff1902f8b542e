// SPDX-License-Identifier: Apache-2.0
// The memory for runs of a program at the official shape on a GPU. The evaluator owns it, and the
// GPU compares the outputs in it.
//
// Contract: holds the inputs of a set (a runner maps them read-only), freshly poisoned scratch, and
// `copies` of every output, each with its own poison and guards. A mutated tensor has copies, too,
// each with its initial values; a read-only buffer "initial/y" also holds these. A program runs in
// it once or, with copies, writes "y@0", "y@1", ... in consecutive runs. Then judge(k) judges copy
// k like the other shapes, and damage() reports writes outside the buffers. Neither relies on
// anything that a runner reports.
//
// Example:
//   CG_TRY(auto buffers, JudgedBuffers::make(ctx, gpu, set, plan.scratch, {.copies = 8}));
//   RunRequest request; request.shared = buffers.buffers(); ... runner.run(ctx, request) ...
//   CG_TRY(std::string damage, buffers.damage());
//   for (int k = 0; k < 8; ++k) { CG_TRY(OfficialFindings f, buffers.judge(ctx, k)); ... }
//   CG_CHECK(buffers.poison_again(ctx)); ... the next block of timed runs ...
#pragma once

#include "core/program.h"
#include "core/verdict.h"
#include "eval/runner/arena.h"
#include "eval/sets/official_set.h"

namespace cutegen::eval {

struct OfficialFindings {
  std::vector<Mismatch> mismatches;  // one for each output that is wrong
  int64_t elements = 0, not_close = 0;
  int64_t by_chance = 0;   // wrong elements that differs_by_chance() accepts
  double worst_ratio = 0;  // the largest error / tolerance of all outputs
};

// Whether so few elements of `extremes` are wrong that chance explains them. Random changes of the
// inputs show which results one rounding can flip (the sign of tanh of a sum that cancels). A few
// draws miss some: one in 65, 130 and 539 million elements on an H100.
bool differs_by_chance(const Judgement& judgement, const std::string& family);

struct JudgedBufferOptions {
  PoisonKind poison = PoisonKind::nan;
  bool at_the_end = false;  // of their blocks; memory beyond that end is unmapped
  int copies = 1;           // of the outputs and mutated tensors: "y", "y#1", ...
  bool own_inputs = false;  // copies of the set's inputs, so that renew() can change them
  bool against = false;     // also mutated tensors for a second program: "against/y"
};

class JudgedBuffers {
 public:
  static Result<JudgedBuffers> make(const Context& ctx, GpuJudge& judge, OfficialSetPtr set,
                                    const std::vector<ScratchBuffer>& scratch,
                                    JudgedBufferOptions options);
  std::vector<SharedBuffer> buffers() const { return shared_; }
  Result<OfficialFindings> judge(const Context& ctx, int copy = 0) const;
  // Gives the inputs the values of another set, and judge() its truth. Needs own_inputs.
  Result<void> renew(const Context& ctx, OfficialSetPtr set);
  // Prepares the next block of runs: every output gets its poison, every mutated tensor its initial
  // values, and their guards a new byte.
  Result<void> poison_again(const Context& ctx);
  // The first write outside a buffer that left a trace; empty if no write did.
  Result<std::string> damage() const;

 private:
  Result<void> add(const Context& ctx, const std::string& name, int64_t bytes, const Poison& poison,
                   bool at_the_end, int copies, std::vector<GpuBuffer>& to);
  // Adds a result of the set: an output, or a mutated tensor with its initial values.
  Result<void> add_result(const Context& ctx, const GpuExpected& result, const std::string& name,
                          bool at_the_end, int copies, std::vector<GpuBuffer>& to);
  Result<void> copy_inputs(const Context& ctx);

  GpuJudge* judge_ = nullptr;
  OfficialSetPtr set_;
  std::vector<SharedBuffer> shared_;
  std::vector<GpuBuffer> inputs_;             // with own_inputs; in the set's order
  std::vector<GpuBuffer> scratch_, outputs_;  // outputs of copy 0, of copy 1, ...
  std::vector<GpuBuffer> against_;            // mutated tensors of the second program
  Poison poison_{};
};

}  // namespace cutegen::eval
