// SPDX-License-Identifier: Apache-2.0
// TorchWorker: client of the Python process that loads and runs PyTorch task files.
//
// Contract: one sandboxed child process runs the user's Python interpreter without network, with
// few environment variables and with resource limits. TorchWorker restarts a child that hangs or
// dies. If a task file raises, exits or never returns, the user error has the last line of the
// traceback and the place in the task file. The function describe() uses meta tensors, so it
// allocates no tensor of the official shape (the sizes in the task file). The function make_set()
// runs the module for one shape and one input distribution ("family"). If `device` is set, the
// child first starts CUDA on the device. Before the child loads a task, the child gives up the
// right to open files for writing and to start programs. If `device` is set but PyTorch has no
// CUDA, open() returns a `world` error (the environment failed).
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
  std::filesystem::path script;  // default: the installed python/ folder
  Nanoseconds call_timeout = std::chrono::seconds(60);
  // long, because PyTorch may load from a slow disk
  Nanoseconds start_timeout = std::chrono::seconds(60);
  int64_t memory_bytes = int64_t{16} << 30;
  bool require_sandbox = false;  // fail if a sandbox protection is missing
  std::string device;            // the child's GPU, such as "cuda:0"; empty: no GPU
  bool compiles = false;         // the child may start compilers, and has no seccomp filter
  int compile_threads = 8;       // number of torch.compile's threads
  // Descriptor of the GPU's lock file, which the child locks while it times a baseline.
  int slot = -1;
  // If set, the child uses the lock only for open_baselines(); later, the caller locks the file.
  bool slot_for_opening = false;
  std::shared_ptr<TunedTimes> tuned;  // max-autotune's times, which workers share
};

// A baseline to run on a GPU. For kind `callable`, `target` is MODULE:CALLABLE, a function that
// takes the module's inputs.
struct BaselineWanted {
  BaselineKind kind = BaselineKind::eager;
  std::string target = {};
  std::string name() const { return target.empty() ? to_string(kind) : target; }
};
void fields(Fields& v, BaselineWanted& wanted);
struct BaselineOpened {
  std::string why;  // why the worker could not open the baseline; else empty
  double far = 0;   // largest difference from eager's result / eager's largest value
};

struct DescribeOptions {
  bool shrink = true;                // whether to derive small test shapes, also of odd sizes
  int64_t small_elements = 1 << 17;  // limit for all tensors of a small shape together
  // for each shape of the user: values of named constants
  std::vector<std::vector<std::pair<std::string, int64_t>>> user_shapes;
  AskedAccuracy asked = {};  // accuracy that the user asks for
};

// The reply of describe_shapes(). `sizes` has every constant of the task file that may vary, with
// its value in the task file. `shapes` has one shape of kind `derived` per wanted combination of
// constants, or nullopt if the module does not run with the constants, or runs other operators.
using ShapeConstants = std::vector<std::pair<std::string, int64_t>>;
struct DescribedShapes {
  ShapeConstants sizes;
  std::vector<std::optional<ShapeCase>> shapes;
};

// Values of TensorSlot::part. The parts truth, sensitivity and sequential have dtype f64.
namespace part {
inline constexpr const char *value = "value",  // values of inputs, parameters and buffers
    *native = "native", *truth = "truth", *sensitivity = "sensitivity",
                            // Results of sequential sums; absent if they take too long.
                                              *sequential = "sequential";
}

// The tensors of one input set: inputs, parameters and buffers before the call, native outputs,
// float64 truth, and the sensitivity of each output element (tensor/compare.h). The set's tensors
// are contiguous, and their offsets are multiples of 256 bytes.
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
  std::vector<std::string> notes;  // remarks for the user: "float64 does not run: ..."
  uint64_t model_seed = 0;         // seed for building the module; 0 if unknown
  bool as_made = false;            // inputs equal the inputs of the family "made"
};

// An excerpt: a few rows (and columns) of a large shape whose truth can be computed
// separately. An excerpt has `count` of the `of` indices along each axis. If inputs and parameters
// repeat the excerpt's values along the excerpt's axes, the outputs repeat, too.
struct ExcerptAxis {
  int64_t of = 0, count = 0;
  std::map<std::string, int> dims;  // tensor -> the axis' dimension in this tensor
};
struct Cut {
  std::string tensor;
  int dim = 0;
  int64_t count = 0;
};
struct Excerpt {
  ShapeCase shape;  // the large shape, but with the excerpt's sizes
  std::vector<ExcerptAxis> axes;
  std::vector<Cut> cuts;  // tensors that the worker draws whole and then shortens
};

// GPU memory that the caller owns, and the tensors that the worker writes to this memory.
// TensorSlot::part is "value", "native", "truth" (f64) or, for floating-point outputs, "margin"
// (f64). The margin of an element is the larger of its sensitivity and the largest native error
// among the elements nearest in magnitude.
struct GpuMemory {
  int descriptor = -1;
  size_t bytes = 0;
};
struct GpuTensor {
  TensorSlot tensor;  // its offset counts from the start of the GpuMemory
  size_t memory = 0;  // index of its GpuMemory
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
    return DescribedShapes{};  // default: the worker derives no shapes
  }
  // Draws inputs from the distribution `family` and computes the expected outputs. "made" calls the
  // task's get_inputs(); the other families are "signed", "heavy", "outliers", "special" and
  // "extremes". Programs must not learn the seed.
  virtual Result<TensorSet> make_set(const Context& ctx, const Task& task, const ShapeCase& shape,
                                     const std::string& family, uint64_t seed) = 0;
  // Finds an excerpt of a shape. Returns the error `unsupported` if no excerpt is small enough.
  virtual Result<Excerpt> plan_excerpt(const Context& ctx, const Task& task,
                                       const ShapeCase& shape);
  // Draws a set like make_set(), but for an excerpt. Returns the error `unsupported` if the values
  // show that the rows are not independent.
  virtual Result<TensorSet> make_excerpt(const Context& ctx, const Task& task,
                                         const Excerpt& excerpt, const std::string& family,
                                         uint64_t seed);
  // Does the work of make_set() on the GPU, in the caller's GPU memory, and returns the set's
  // notes. If this memory is too small, the error is `unsupported` and names the sizes.
  virtual Result<std::vector<std::string>> fill(const Context& ctx, const Task& task,
                                                const ShapeCase& shape, const std::string& family,
                                                uint64_t seed, const std::vector<GpuMemory>& memory,
                                                const std::vector<GpuTensor>& slots) = 0;
  // Builds the module and its inputs on the GPU and runs each baseline in `wanted` a few times.
  // Returns one BaselineOpened per baseline.
  virtual Result<std::vector<BaselineOpened>> open_baselines(
      const Context& ctx, const Task& task, const ShapeCase& shape,
      const std::vector<BaselineWanted>& wanted) = 0;
  // Adds a baseline (for example, one that compiles slowly) to the module that open_baselines()
  // built. If the child died or hung, the caller must call open_baselines() again.
  virtual Result<BaselineOpened> add_baseline(const Context& ctx, const BaselineWanted& wanted) = 0;
  // Frees the module's GPU memory. Returns an error if CUDA no longer works in the child.
  virtual Result<void> close_baselines(const Context& ctx) = 0;
  // Runs an open baseline once on values in the caller's memory (part "value": inputs, parameters
  // and buffers), and writes the outputs to that memory (part "output"). After the call, the
  // module's tensors still have the caller's values.
  virtual Result<void> run_baseline(const Context& /*ctx*/, const Task& /*task*/,
                                    BaselineKind /*kind*/, const std::vector<GpuMemory>& /*memory*/,
                                    const std::vector<GpuTensor>& /*slots*/) {
    return unsupported_error("this worker does not run baselines on given values");
  }
  // Runs an open baseline `samples` times and returns the times in ns. The file core/time_mode.h
  // explains the values of `mode`.
  virtual Result<std::vector<double>> time_baseline(const Context& ctx, BaselineKind kind,
                                                    TimeMode mode, int samples) = 0;
  virtual std::string version() const = 0;          // "torch 2.13.0, Python 3.11"
  virtual std::string cudnn() const { return {}; }  // for example "9.10.2"; empty without a GPU
  virtual sandbox::Grade grade() const = 0;
};

}  // namespace cutegen::torch
