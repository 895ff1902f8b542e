// SPDX-License-Identifier: Apache-2.0
// TorchWorker: client of the Python child that understands PyTorch task files.
//
// Contract: one child in the user's interpreter, sandboxed (no network, scrubbed environment,
// limits). The worker restarts a child that hangs or dies. If a task file raises, exits or never
// returns, the user error has the last line of its traceback and the place in the file. describe()
// never allocates the official tensors, because it uses fake tensors. make_set() runs the module
// for one shape and input distribution ("family"). With a `device`, the child first starts CUDA on
// it. Before it sees a task, it gives up the right to open files for writing and to start programs.
// A torch without CUDA is a world error.
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
#include "core/baseline.h"
#include "core/task.h"
#include "core/time_mode.h"
#include "sandbox/sandbox.h"
#include "torch/tuned.h"

namespace cutegen::torch {

struct TorchWorkerOptions {
  std::string python;            // default: $CUTEGEN_PYTHON, the project's venv, python3
  std::filesystem::path script;  // default: the shipped python/ folder
  Nanoseconds call_timeout = std::chrono::seconds(60);
  Nanoseconds start_timeout = std::chrono::seconds(60);  // allows for a cold disk under load
  int64_t memory_bytes = int64_t{16} << 30;
  bool require_sandbox = false;  // an error unless the full protection is in effect
  std::string device;            // "cuda:0": the child uses this GPU; empty: no GPU
  bool compiles = false;         // the child may start compilers, so it has no seccomp filter
  int compile_threads = 8;       // for torch.compile
  // Descriptor of the GPU's lock file; the child locks it while it times.
  int slot = -1;
  // The child uses the lock only until its baselines are open; then the caller locks.
  bool slot_for_opening = false;
  std::shared_ptr<TunedTimes> tuned;  // shares compile-max's measured times between workers
};

// How to run the task's module on a GPU. `target` of a callable: MODULE:CALLABLE, which takes the
// same inputs.
struct BaselineWanted {
  BaselineKind kind = BaselineKind::eager;
  std::string target = {};
  std::string name() const { return target.empty() ? to_string(kind) : target; }
};
void fields(Fields& v, BaselineWanted& wanted);
struct BaselineOpened {
  std::string why;  // why it is not open; empty if it is
  double far = 0;   // largest difference from eager's result / eager's largest value
};

struct DescribeOptions {
  bool shrink = true;                // add small and odd shapes
  int64_t small_elements = 1 << 17;  // limit of a small shape's elements, over all tensors
  std::vector<std::vector<std::pair<std::string, int64_t>>> user_shapes;  // constants by name
  AskedAccuracy asked = {};  // must not contradict the side file
};

// A task at sizes that the caller chooses: the official value of every size that may vary, and a
// `derived` shape for each wanted set of constants. A shape is nullopt if the module does not run
// with these constants, or runs other operators.
using ShapeConstants = std::vector<std::pair<std::string, int64_t>>;
struct DescribedShapes {
  ShapeConstants sizes;
  std::vector<std::optional<ShapeCase>> shapes;
};

// The parts of a set. The last three are in f64.
namespace part {
inline constexpr const char *value = "value",  // inputs and parameters
    *native = "native", *truth = "truth", *sensitivity = "sensitivity",
                            // Sequential sums, if they do not take too long.
                                              *sequential = "sequential";
}

// One set of values: initial inputs, parameters and buffers, native outputs, float64 truth, and the
// sensitivity of each output (tensor/compare.h). Tensors are contiguous, at multiples of 256 bytes.
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
  uint64_t model_seed = 0;         // seed of the module; 0: unknown
  bool as_made = false;            // the family changed no input, so the set equals one of "made"
};

// A few rows (and columns) of the official shape whose truth can be computed alone: `count` of `of`
// indices along each axis. If inputs and parameters repeat an excerpt along its axes, the outputs
// repeat, too.
struct ExcerptAxis {
  int64_t of = 0, count = 0;
  std::map<std::string, int> dims;  // each tensor with this axis, and its dimension
};
struct Cut {
  std::string tensor;
  int dim = 0;
  int64_t count = 0;
};
struct Excerpt {
  ShapeCase shape;  // a shape of kind `official` with the excerpt's sizes
  std::vector<ExcerptAxis> axes;
  std::vector<Cut> cuts;  // tensors that are drawn in full and then cut
};

// GPU memory that the caller owns, and where the worker writes each part: "value", "native",
// "truth" (f64), "margin" (f64, float outputs only: the larger of the sensitivity and the native
// error among the elements of nearest magnitude).
struct GpuMemory {
  int descriptor = -1;
  size_t bytes = 0;
};
struct GpuTensor {
  TensorSlot tensor;  // the tensor's offset is relative to the memory
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
  // family: "made" (the task's own get_inputs), "signed", "heavy", "outliers", "special" or
  // "extremes". seed: 64 secret bits.
  virtual Result<TensorSet> make_set(const Context& ctx, const Task& task, const ShapeCase& shape,
                                     const std::string& family, uint64_t seed) = 0;
  // `unsupported` if the task has no excerpt that is small enough.
  virtual Result<Excerpt> plan_excerpt(const Context& ctx, const Task& task);
  // Like make_set. `unsupported` if the values show that the axes are not independent.
  virtual Result<TensorSet> make_excerpt(const Context& ctx, const Task& task,
                                         const Excerpt& excerpt, const std::string& family,
                                         uint64_t seed);
  // Makes a set on the worker's GPU, in the caller's memory, and returns the notes. If the set does
  // not fit the GPU, the error is `unsupported` and has the figures.
  virtual Result<std::vector<std::string>> fill(const Context& ctx, const Task& task,
                                                const ShapeCase& shape, const std::string& family,
                                                uint64_t seed, const std::vector<GpuMemory>& memory,
                                                const std::vector<GpuTensor>& slots) = 0;
  // Builds the module and its inputs on the GPU and runs each baseline a few times. Returns one
  // result for each.
  virtual Result<std::vector<BaselineOpened>> open_baselines(
      const Context& ctx, const Task& task, const ShapeCase& shape,
      const std::vector<BaselineWanted>& wanted) = 0;
  // Adds a baseline to the open module, for example one that takes long to build. Nothing is open
  // in a worker that died or hung.
  virtual Result<BaselineOpened> add_baseline(const Context& ctx, const BaselineWanted& wanted) = 0;
  // Frees the GPU memory. Returns an error if the worker's CUDA is broken.
  virtual Result<void> close_baselines(const Context& ctx) = 0;
  // Runs an open baseline once on the values in the caller's memory (part "value": inputs,
  // parameters and buffers by the task's names), and writes its outputs there (part "output"). The
  // module keeps these values.
  virtual Result<void> run_baseline(const Context& /*ctx*/, const Task& /*task*/,
                                    BaselineKind /*kind*/, const std::vector<GpuMemory>& /*memory*/,
                                    const std::vector<GpuTensor>& /*slots*/) {
    return unsupported_error("this worker does not run baselines on given values");
  }
  // Returns the times of `samples` runs in ns. mode: "cold", "warm", "graph", "call"
  // (device/device.h).
  virtual Result<std::vector<double>> time_baseline(const Context& ctx, BaselineKind kind,
                                                    TimeMode mode, int samples) = 0;
  virtual std::string version() const = 0;          // "torch 2.13.0, Python 3.11"
  virtual std::string cudnn() const { return {}; }  // "9.10.2"; empty without a GPU
  virtual sandbox::Grade grade() const = 0;
};

}  // namespace cutegen::torch
