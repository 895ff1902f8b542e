// SPDX-License-Identifier: Apache-2.0
// Correctness at the official shape (the sizes in the task file) on a GPU: the program runs in GPU
// memory that the evaluator owns, and the GPU compares the outputs with the truth (the result in
// float64).
//
// Contract: GpuTruths computes and keeps input sets with their truth. In the background, GpuTruths
// opens a GPU context, loads the comparison kernels and starts a torch worker on the GPU. missing()
// waits until this work has ended. If this machine cannot compare outputs, missing() returns the
// reason; otherwise an empty text. The tensors of the program are in JudgedBuffers
// (eval/sets/judged_buffers.h).
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
    int sharing = 1;  // number of evaluators that keep sets on this GPU
  };
  explicit GpuTruths(Options options);
  // For tests without a torch worker: `source` computes the input sets. The pool keeps at most
  // `most_bytes` bytes of them.
  GpuTruths(std::unique_ptr<GpuJudge> gpu, GpuTruthPool::Source source, int64_t most_bytes);
  ~GpuTruths();

  const std::string& missing();
  GpuJudge& gpu() { return *gpu_; }  // call gpu() only if missing() is empty
  Result<GpuSetPtr> draw(const Context& ctx, const Task& task, const ShapeCase& shape,
                         const std::string& family, const std::string& program_id);
  // Returns an input set of the pool on which the program has not run, or null. Never computes a
  // set.
  GpuSetPtr ready(const Task& task, const std::string& shape, const std::string& family,
                  const std::string& program_id);
  // Returns how many input sets of this shape the pool could keep if it kept no other sets.
  int64_t sets_kept(const Task& task, const ShapeCase& shape);
  // Computes an input set for a single program, whose process may remember the inputs: no other
  // program runs on this set.
  Result<GpuSetPtr> fresh(const Context& ctx, const Task& task, const ShapeCase& shape,
                          const std::string& family);
  // Lets the pool compute input sets of the task in the background, until close_task().
  void open_task(const Task& task, const std::vector<std::string>& families);
  void close_task(const std::string& task_id);
  void pause();
  void resume();
  // Drops input sets until the free GPU memory is enough for a run of the task, if possible.
  void make_room(const Task& task);
  // Calls make_room() and returns the free GPU memory, or nullopt if no GPU is open.
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

// Selects the input families (input distributions) for the official shape: all families if the GPU
// can keep one set of each family; otherwise "made", "outliers" and a third family, which `chance`
// picks. `kept`: the number of input sets that the GPU can keep.
std::vector<std::string> gpu_families(const std::vector<std::string>& all, int64_t kept,
                                      uint64_t chance);
// Returns a remark if gpu_families() selected only some of the families, or an empty text.
std::string remark_on_families(const ShapeCase& shape, const std::vector<std::string>& selected,
                               const std::vector<std::string>& all);
// Checks correctness at large timed shapes. If the evaluator cannot compare values at a shape, the
// program passes, and the record names the shape and the reason. If the task has no test shape, the
// program runs on all input families, and is `unsupported` if the evaluator cannot compare all
// values.
Result<RungEnd> check_on_gpu(const Evaluation& e, const std::string& program_id,
                             CorrectnessRecord& record);

}  // namespace cutegen::eval
