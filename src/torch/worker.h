// SPDX-License-Identifier: Apache-2.0
// TorchWorker: client of the Python child that understands PyTorch task files.
//
// Contract: one child in the user's interpreter, sandboxed (no network, scrubbed environment,
// limits); restarted when it hangs or dies; a task file that raises, exits or never returns is a
// user error with the last line of its traceback and the place in the file. describe() never
// allocates the official tensors (fake tensors). make_set() runs the module for one shape and
// family. With a `device` the worker starts CUDA there, and only then takes from itself what a
// sandboxed child must not have, before it sees a task; a torch without CUDA is a world error.
//
// Example:
//   CG_TRY(auto w, TorchWorker::open({})); CG_TRY(Task t, w->describe(ctx, "relu.py", {}));
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/context.h"
#include "base/file.h"
#include "core/asked_accuracy.h"
#include "core/task.h"
#include "sandbox/sandbox.h"
#include "torch/tuned.h"

namespace cutegen {

struct TorchWorkerOptions {
  std::string python;            // default: $CUTEGEN_PYTHON, the project's venv, python3
  std::filesystem::path script;  // default: the shipped python/ folder
  Nanoseconds call_timeout = std::chrono::seconds(60);
  Nanoseconds start_timeout = std::chrono::seconds(60);  // a cold disk under load
  int64_t memory_bytes = int64_t{16} << 30;
  bool require_sandbox = false;   // an error where less than full protection holds
  std::string device;             // "cuda:0": it has that GPU; empty: none
  bool compiles = false;          // it may start compilers: the filter is left off
  int compile_threads = 8;        // of torch.compile
  int slot = -1;                  // open lock file of the GPU: what it times, it times behind it
  bool slot_for_opening = false;  // until its baselines are open: then the caller has the lock
  std::shared_ptr<TunedTimes> tuned;  // what compile-max measured is shared with other workers
};

// A way to run the task's module on a GPU: "eager" (as PyTorch is set by default), "eager-fp32" (no
// TF32 anywhere), "eager-tf32" (TF32 everywhere), "compile", "compile-max" (torch.compile,
// max-autotune), "callable" (`target`: MODULE:CALLABLE, of the same inputs).
struct BaselineWanted {
  std::string kind, target;
};
struct BaselineOpened {
  std::string why;  // it cannot be had; empty: it can
  double far = 0;   // the largest difference from eager's result over the largest value
};

struct DescribeOptions {
  bool shrink = true;                // add small and odd shapes
  int64_t small_elements = 1 << 17;  // work limit of a small shape: elements over all tensors
  std::vector<std::vector<std::pair<std::string, int64_t>>> user_shapes;  // constants by name
  AskedAccuracy asked = {};  // beside the side file, which it must not contradict
};

// A task at sizes of the caller's choice: the official value of every size that may vary, and for
// each wanted set of constants the shape, of kind `derived`; nullopt where the module does not run
// or is another program.
using ShapeConstants = std::vector<std::pair<std::string, int64_t>>;
struct DescribedShapes {
  ShapeConstants sizes;
  std::vector<std::optional<ShapeCase>> shapes;
};

// One set of values: inputs, parameters, buffers as made; native outputs; float64 truth; and for
// each output the sensitivity (see eval/compare.h). Tensors are contiguous, packed at 256-byte
// offsets.
struct TensorSlot {
  std::string name;  // task tensor name
  // "value" (inputs, parameters), "native", and in f64: "truth", "sensitivity", "sequential" (the
  // result of sums in order; missing where that takes too much work)
  std::string part;
  DType dtype = DType::f32;
  Shape shape;
  size_t offset = 0, bytes = 0;
};
struct TensorSet {
  std::string shape, family;
  UniqueFd memory;  // memfd
  size_t bytes = 0;
  std::vector<TensorSlot> slots;
  std::vector<std::string> notes;  // "float64 does not run: ..."
  uint64_t model_seed = 0;         // what the module was made with, where that is known
  bool as_made = false;            // the family changed no input: the set is one of "made"
};

// A few rows (and columns) of the official shape whose truth can be computed alone: `count` of `of`
// indexes along each axis. Inputs and parameters that repeat an excerpt along its axes have outputs
// that repeat the excerpt's.
struct ExcerptAxis {
  int64_t of = 0, count = 0;
  std::map<std::string, int> dims;  // the dimension of each tensor that has this axis
};
struct Cut {
  std::string tensor;
  int dim = 0;
  int64_t count = 0;
};
struct Excerpt {
  ShapeCase shape;  // kind official, with the sizes of the excerpt
  std::vector<ExcerptAxis> axes;
  std::vector<Cut> cuts;  // tensors that are drawn whole first
};

// Memory of a GPU that the caller owns, and where in it the worker is to write each part: "value",
// "native", "truth" (f64), "margin" (f64: the larger of the sensitivity and of the native error
// among the elements nearest in magnitude; outputs of floats only).
struct GpuMemory {
  int descriptor = -1;
  size_t bytes = 0;
};
struct GpuTensor {
  TensorSlot tensor;  // its offset is that in the memory
  size_t memory = 0;  // which of them
};

class TorchWorker {
 public:
  [[nodiscard]] static Result<std::unique_ptr<TorchWorker>> open(TorchWorkerOptions options);
  virtual ~TorchWorker() = default;
  [[nodiscard]] virtual Result<Task> describe(const Context& ctx, const std::filesystem::path& file,
                                              const DescribeOptions& options) = 0;
  [[nodiscard]] virtual Result<DescribedShapes> describe_shapes(
      const Context& ctx, const Task& task, const std::vector<ShapeConstants>& wanted) {
    (void)ctx, (void)task, (void)wanted;
    return DescribedShapes{};  // a worker that describes no other shapes
  }
  // family: "made" (the task's own get_inputs), "signed", "heavy", "outliers", "special",
  // "extremes".
  // seed: 64 secret bits.
  [[nodiscard]] virtual Result<TensorSet> make_set(const Context& ctx, const Task& task,
                                                   const ShapeCase& shape,
                                                   const std::string& family, uint64_t seed) = 0;
  // `unsupported` where the task has no excerpt that is small enough.
  [[nodiscard]] virtual Result<Excerpt> plan_excerpt(const Context& ctx, const Task& task);
  // As make_set. `unsupported` where the values show that the axes are not independent.
  [[nodiscard]] virtual Result<TensorSet> make_excerpt(const Context& ctx, const Task& task,
                                                       const Excerpt& excerpt,
                                                       const std::string& family, uint64_t seed);
  // Makes a set on the worker's GPU, in the caller's memory; gives the notes. What does not fit the
  // GPU is `unsupported`, with the figures.
  [[nodiscard]] virtual Result<std::vector<std::string>> fill(
      const Context& ctx, const Task& task, const ShapeCase& shape, const std::string& family,
      uint64_t seed, const std::vector<GpuMemory>& memory, const std::vector<GpuTensor>& slots) = 0;
  // With a GPU: the module and its inputs there, each way run a few times; one answer for each.
  [[nodiscard]] virtual Result<std::vector<BaselineOpened>> open_baselines(
      const Context& ctx, const Task& task, const ShapeCase& shape,
      const std::vector<BaselineWanted>& wanted) = 0;
  // One more way to run the module that is open, such as one that takes long to build. A worker
  // that died or hung has none open any more.
  [[nodiscard]] virtual Result<BaselineOpened> add_baseline(const Context& ctx,
                                                            const BaselineWanted& wanted) = 0;
  // Gives the GPU's memory back; fails where the worker's CUDA is broken.
  [[nodiscard]] virtual Result<void> close_baselines(const Context& ctx) = 0;
  // Runs a way that is open once, on the values in the caller's memory (part "value": inputs,
  // parameters and buffers by the names of the task), and writes its outputs there (part "output").
  // The module keeps these values.
  [[nodiscard]] virtual Result<void> run_baseline(const Context& /*ctx*/, const Task& /*task*/,
                                                  const std::string& /*kind*/,
                                                  const std::vector<GpuMemory>& /*memory*/,
                                                  const std::vector<GpuTensor>& /*slots*/) {
    return unsupported_error("this worker does not run baselines on given values");
  }
  // ns of so many runs; mode: "cold", "warm", "graph", "call" (device/device.h).
  [[nodiscard]] virtual Result<std::vector<double>> time_baseline(const Context& ctx,
                                                                  const std::string& kind,
                                                                  const std::string& mode,
                                                                  int samples) = 0;
  [[nodiscard]] virtual std::string version() const = 0;          // "torch 2.13.0, Python 3.11"
  [[nodiscard]] virtual std::string cudnn() const { return {}; }  // "9.10.2"; "": without a GPU
  [[nodiscard]] virtual sandbox::Grade grade() const = 0;
};

}  // namespace cutegen
