// SPDX-License-Identifier: Apache-2.0
// TorchWorker: client of the Python child that understands PyTorch task files.
//
// Contract: one child in the user's interpreter, sandboxed (no network, scrubbed environment,
// limits). The worker restarts a child that hangs or dies. A task file that raises, exits or never
// returns is a user error with the last line of its traceback and the place in the file. describe()
// never allocates the official tensors (it uses fake tensors). make_set() runs the module for one
// shape and input distribution ("family"). With a `device`, the child starts CUDA there and then
// gives up the rights that a sandboxed child must not have, before it sees a task. A torch without
// CUDA is a world error.
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

namespace cutegen::torch {

struct TorchWorkerOptions {
  std::string python;            // default: $CUTEGEN_PYTHON, the project's venv, python3
  std::filesystem::path script;  // default: the shipped python/ folder
  Nanoseconds call_timeout = std::chrono::seconds(60);
  Nanoseconds start_timeout = std::chrono::seconds(60);  // allows for a cold disk under load
  int64_t memory_bytes = int64_t{16} << 30;
  bool require_sandbox = false;       // an error unless full protection is in effect
  std::string device;                 // "cuda:0": the child has that GPU; empty: none
  bool compiles = false;              // it may start compilers, so it gets no seccomp filter
  int compile_threads = 8;            // of torch.compile
  int slot = -1;                      // open lock file of the GPU, which the child locks to time
  bool slot_for_opening = false;      // only until its baselines are open; then the caller locks
  std::shared_ptr<TunedTimes> tuned;  // shares compile-max's measured times between workers
};

// A way to run the task's module on a GPU: "eager" (PyTorch's defaults), "eager-fp32" (no TF32),
// "eager-tf32" (TF32 everywhere), "compile", "compile-max" (torch.compile, max-autotune), or
// "callable" (`target`: MODULE:CALLABLE with the same inputs).
struct BaselineWanted {
  std::string kind, target;
};
void fields(Fields& v, BaselineWanted& wanted);
struct BaselineOpened {
  std::string why;  // why it could not be opened; empty: it is open
  double far = 0;   // largest difference from eager's result / largest value
};

struct DescribeOptions {
  bool shrink = true;                // add small and odd shapes
  int64_t small_elements = 1 << 17;  // work limit of a small shape: elements over all tensors
  std::vector<std::vector<std::pair<std::string, int64_t>>> user_shapes;  // constants by name
  AskedAccuracy asked = {};  // beside the side file, which it must not contradict
};

// A task at sizes that the caller chooses: the official value of every size that may vary, and for
// each wanted set of constants a shape of kind `derived`. The shape is nullopt if the module does
// not run with these constants, or is a different program.
using ShapeConstants = std::vector<std::pair<std::string, int64_t>>;
struct DescribedShapes {
  ShapeConstants sizes;
  std::vector<std::optional<ShapeCase>> shapes;
};

// Parts of a set. The last three are in f64.
namespace part {
inline constexpr const char *value = "value",  // inputs and parameters
    *native = "native", *truth = "truth", *sensitivity = "sensitivity",
                            *sequential = "sequential";  // sequential sums, unless too much work
}

// One set of values: initial inputs, parameters and buffers, native outputs, float64 truth, and the
// sensitivity of each output (see tensor/compare.h). Tensors are contiguous, packed at 256-byte
// offsets.
struct TensorSlot {
  std::string name;  // the task's tensor name
  std::string part;  // part::value, ...
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
  uint64_t model_seed = 0;         // the module was built with it; 0: unknown
  bool as_made = false;            // the family changed no input, so the set equals one of "made"
};

// A few rows (and columns) of the official shape whose truth can be computed alone: `count` of `of`
// indexes along each axis. If inputs and parameters repeat an excerpt along its axes, the outputs
// repeat the excerpt's outputs.
struct ExcerptAxis {
  int64_t of = 0, count = 0;
  std::map<std::string, int> dims;  // for each tensor with this axis, its dimension
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

// GPU memory that the caller owns, and where the worker writes each part: "value", "native",
// "truth" (f64), "margin" (f64, float outputs only: the larger of the sensitivity and the native
// error among the elements nearest in magnitude).
struct GpuMemory {
  int descriptor = -1;
  size_t bytes = 0;
};
struct GpuTensor {
  TensorSlot tensor;  // its offset is the offset in the memory
  size_t memory = 0;  // index of the memory
};
void fields(Fields& v, GpuTensor& tensor);

class TorchWorker {
 public:
  static Result<std::unique_ptr<TorchWorker>> open(TorchWorkerOptions options);
  virtual ~TorchWorker() = default;
  virtual Result<Task> describe(const Context& ctx, const std::filesystem::path& file,
                                const DescribeOptions& options) = 0;
  virtual Result<DescribedShapes> describe_shapes(const Context& ctx, const Task& task,
                                                  const std::vector<ShapeConstants>& wanted) {
    (void)ctx, (void)task, (void)wanted;
    return DescribedShapes{};  // this worker derives no shapes
  }
  // family: "made" (the task's own get_inputs), "signed", "heavy", "outliers", "special",
  // "extremes". seed: 64 secret bits.
  virtual Result<TensorSet> make_set(const Context& ctx, const Task& task, const ShapeCase& shape,
                                     const std::string& family, uint64_t seed) = 0;
  // `unsupported` if the task has no excerpt that is small enough.
  virtual Result<Excerpt> plan_excerpt(const Context& ctx, const Task& task);
  // As make_set. `unsupported` if the values show that the axes are not independent.
  virtual Result<TensorSet> make_excerpt(const Context& ctx, const Task& task,
                                         const Excerpt& excerpt, const std::string& family,
                                         uint64_t seed);
  // Makes a set on the worker's GPU, in the caller's memory; returns the notes. A set that does not
  // fit the GPU is `unsupported`, with the figures.
  virtual Result<std::vector<std::string>> fill(const Context& ctx, const Task& task,
                                                const ShapeCase& shape, const std::string& family,
                                                uint64_t seed, const std::vector<GpuMemory>& memory,
                                                const std::vector<GpuTensor>& slots) = 0;
  // Builds the module and its inputs on the GPU and runs each way a few times. Returns one result
  // for each way.
  virtual Result<std::vector<BaselineOpened>> open_baselines(
      const Context& ctx, const Task& task, const ShapeCase& shape,
      const std::vector<BaselineWanted>& wanted) = 0;
  // Adds one more way to run the open module, such as one that takes long to build. A worker that
  // died or hung has nothing open.
  virtual Result<BaselineOpened> add_baseline(const Context& ctx, const BaselineWanted& wanted) = 0;
  // Frees the GPU memory. Fails if the worker's CUDA is broken.
  virtual Result<void> close_baselines(const Context& ctx) = 0;
  // Runs an open way once on the values in the caller's memory (part "value": inputs, parameters
  // and buffers by the task's names), and writes its outputs there (part "output"). The module
  // keeps these values.
  virtual Result<void> run_baseline(const Context& /*ctx*/, const Task& /*task*/,
                                    const std::string& /*kind*/,
                                    const std::vector<GpuMemory>& /*memory*/,
                                    const std::vector<GpuTensor>& /*slots*/) {
    return unsupported_error("this worker does not run baselines on given values");
  }
  // The times of `samples` runs in ns. mode: "cold", "warm", "graph", "call" (device/device.h).
  virtual Result<std::vector<double>> time_baseline(const Context& ctx, const std::string& kind,
                                                    const std::string& mode, int samples) = 0;
  virtual std::string version() const = 0;          // "torch 2.13.0, Python 3.11"
  virtual std::string cudnn() const { return {}; }  // "9.10.2"; "" without a GPU
  virtual sandbox::Grade grade() const = 0;
};

}  // namespace cutegen::torch
