// SPDX-License-Identifier: Apache-2.0
// The official shape on a GPU: programs run in memory that the evaluator owns, and the GPU compares
// the outputs.
//
// Contract: GpuTruths starts in the background (its own context, the comparison kernels, a
// torch worker with the GPU). missing() waits for the start and returns why this machine cannot
// compare outputs, or nothing. A program runs in JudgedBuffers (eval/sets/judged_buffers.h).
//
// Example:
//   CG_TRY(auto set, official.draw(ctx, task, shape, "made", program_id));
//   CG_TRY(auto buffers, JudgedBuffers::make(ctx, official.gpu(), set, plan.scratch, {}));
#pragma once

#include <future>

#include "eval/rungs/prepare.h"
#include "eval/runner/arena.h"
#include "eval/sets/gpu_truth_pool.h"
#include "eval/sets/judged_buffers.h"

namespace cutegen::eval {

struct CorrectnessRecord;

class GpuTruths {
 public:
  struct Options {
    DeviceName device;
    std::string python;
    bool require_sandbox = false;
    std::shared_ptr<toolchain::Toolchain> toolchain;
    int sharing = 1;  // evaluators that keep sets on this GPU
  };
  explicit GpuTruths(Options options);
  ~GpuTruths();

  const std::string& missing();
  GpuJudge& gpu() { return *gpu_; }  // call it only if nothing is missing
  Result<GpuSetPtr> draw(const Context& ctx, const Task& task, const ShapeCase& shape,
                         const std::string& family, const std::string& program_id);
  // A set that the pool holds and on which the program has not run, or null.
  GpuSetPtr ready(const Task& task, const std::string& shape, const std::string& family,
                  const std::string& program_id);
  // How many sets of the task's official shape the GPU holds, if it holds no other task's sets.
  int64_t sets_kept(const Task& task, const ShapeCase& shape);
  // A set for one program only. Its process may keep the inputs, so the set judges no other
  // program.
  Result<GpuSetPtr> fresh(const Context& ctx, const Task& task, const ShapeCase& shape,
                          const std::string& family);
  // Lets the pool compute sets of the task in advance, until close_task().
  void open_task(const Task& task, const std::vector<std::string>& families);
  void close_task(const std::string& task_id);
  void pause();
  void resume();
  // Drops sets until a run of the task fits into the free memory, if that is possible.
  void make_room(const Task& task);
  // The free GPU memory after that, or nothing if no GPU is open.
  Result<std::optional<int64_t>> room_for(const Task& task);

 private:
  Result<void> start();

  Options options_;
  std::unique_ptr<GpuJudge> gpu_;
  std::unique_ptr<torch::TorchWorker> worker_;
  std::unique_ptr<GpuTruthPool> pool_;
  std::string missing_;
  std::stop_source stop_;
  std::mutex waiting_;
  std::future<void> started_;
};

// The families on which the official shape is judged: all, if the GPU can keep a set of each,
// otherwise "made", "outliers" and one more that `chance` picks for each program. `kept`: how many
// sets the GPU can keep.
std::vector<std::string> gpu_families(const std::vector<std::string>& all, int64_t kept,
                                      uint64_t chance);
// A part of the rung correctness: passes with a mark if it cannot compare values.
Result<RungEnd> check_on_gpu(const Evaluation& e, const std::string& program_id,
                             CorrectnessRecord& record);

}  // namespace cutegen::eval
