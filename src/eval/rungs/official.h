// SPDX-License-Identifier: Apache-2.0
// The official shape on a GPU: programs run in memory that the evaluator owns, and the GPU compares
// the outputs.
//
// Contract: OfficialJudge starts in the background (its own context, the comparison kernels, a
// torch worker with the GPU). missing() waits for the start and returns why this machine cannot
// compare outputs, or nothing. An OfficialRun is the memory for runs of a program: the inputs of a
// set (a runner maps them read-only), freshly poisoned scratch, and `copies` of every output, each
// with its own poison and guards. A mutated tensor has copies, too, each with its initial values; a
// read-only buffer "initial/y" also holds these. A program runs in it once or, with copies, writes
// "y@0", "y@1", ... in consecutive runs. Then judge(k) judges copy k like the other shapes, and
// damage() reports writes outside the buffers. Neither relies on anything that a runner reports.
//
// Example:
//   CG_TRY(auto set, official.draw(ctx, task, shape, "made", program_id));
//   CG_TRY(auto run, OfficialRun::make(ctx, official.gpu(), set, prepared_shape, {.copies = 8}));
//   RunRequest request; request.shared = run.buffers(); ... runner.run(ctx, request) ...
//   CG_TRY(std::string damage, run.damage());
//   for (int k = 0; k < 8; ++k) { CG_TRY(OfficialFindings f, run.judge(ctx, k)); ... }
//   CG_CHECK(run.poison_again(ctx)); ... the next block of timed runs ...
#pragma once

#include <future>

#include "eval/rungs/prepare.h"
#include "eval/runner/arena.h"
#include "eval/sets/official_pool.h"

namespace cutegen::eval {

struct CorrectnessRecord;

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

struct OfficialRunOptions {
  PoisonKind poison = PoisonKind::nan;
  bool at_the_end = false;  // of their blocks; memory beyond that end is unmapped
  int copies = 1;           // of the outputs and mutated tensors: "y", "y#1", ...
  bool own_inputs = false;  // copies of the set's inputs, so that renew() can change them
  bool against = false;     // also mutated tensors for a second program: "against/y"
};

class OfficialRun {
 public:
  static Result<OfficialRun> make(const Context& ctx, GpuJudge& judge, OfficialSetPtr set,
                                  const PreparedShape& shape, OfficialRunOptions options);
  std::vector<SharedBuffer> buffers() const { return shared_; }
  Result<OfficialFindings> judge(const Context& ctx, int copy = 0) const;
  // Gives the inputs the values of another set, and judge() its truth. Needs own_inputs.
  Result<void> renew(const Context& ctx, OfficialSetPtr set);
  // Prepares the next block of runs: every output gets its poison, every mutated tensor its initial
  // values, and their guards a new byte.
  Result<void> poison_again(const Context& ctx);
  // The first write outside a buffer that left a trace; empty if there is none.
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

class OfficialJudge {
 public:
  struct Options {
    DeviceName device;
    std::string python;
    bool require_sandbox = false;
    toolchain::Toolchain* toolchain = nullptr;
    int sharing = 1;  // evaluators that keep sets on this GPU
  };
  explicit OfficialJudge(Options options);
  ~OfficialJudge();

  const std::string& missing();
  GpuJudge& gpu() { return *gpu_; }  // only if nothing is missing
  Result<OfficialSetPtr> draw(const Context& ctx, const Task& task, const ShapeCase& shape,
                              const std::string& family, const std::string& program_id);
  // A stocked set that the program has not met, or nullptr.
  OfficialSetPtr ready(const Task& task, const std::string& shape, const std::string& family,
                       const std::string& program_id);
  // How many sets of the task's official shape the GPU holds, if it holds no other task's sets.
  int64_t sets_kept(const Task& task, const ShapeCase& shape);
  // A set for one program only. Its process may keep the inputs, so the set judges no other
  // program.
  Result<OfficialSetPtr> fresh(const Context& ctx, const Task& task, const ShapeCase& shape,
                               const std::string& family);
  // Lets the pool make sets of the task ahead, until close_task().
  void open_task(const Task& task, const std::vector<std::string>& families);
  void close_task(const std::string& task_id);
  void pause();
  void resume();
  // Drops sets until a run of the task fits into the free memory, if that is possible.
  void make_room(const Task& task);

 private:
  Result<void> start();

  Options options_;
  std::unique_ptr<GpuJudge> gpu_;
  std::unique_ptr<torch::TorchWorker> worker_;
  std::unique_ptr<OfficialPool> pool_;
  std::string missing_;
  std::stop_source stop_;
  std::mutex waiting_;
  std::future<void> started_;
};

// The families on which the official shape is judged: all, if the GPU keeps a set of each (`kept`:
// how many sets it keeps). Otherwise "made", "outliers" and another one that `chance` picks, so
// that other programs meet the rest.
std::vector<std::string> official_families(const std::vector<std::string>& all, int64_t kept,
                                           uint64_t chance);
// A part of the rung correctness: passes with a mark where values cannot be compared.
Result<RungEnd> check_official(const Evaluation& e, const std::string& program_id,
                               CorrectnessRecord& record);

}  // namespace cutegen::eval
