// SPDX-License-Identifier: Apache-2.0
// ForeignWorker: client of the Python process that runs a third-party solution (`class ModelNew`).
//
// Contract: each solution runs in its own sandboxed child process, which has its own namespaces, a
// private writable folder, and permission to start compilers. The child reads inputs from memory
// that the caller owns, and writes outputs to memory that the caller owns. The child never receives
// the truth (the result in float64), the tolerances or the seeds of inputs. From load() on, the
// solution controls the child, so the caller must not trust the contents of a reply. The
// ForeignWorker checks only the form of a reply. A ForeignReply says what the solution did. An
// Error means that cutegen itself failed, or that the Context was cancelled or timed out. If a
// child dies, or exceeds the time limit of a call, the ForeignWorker kills the child and the
// processes that the child started. Each call of load() starts a new child.
//
// Example:
//   CG_TRY(auto w, ForeignWorker::open(ctx, {})); CG_TRY(auto r, w->load(ctx, task, file));
//   if (r.ok()) { CG_TRY(r, w->make_model(ctx, task, shape, model)); ... w->run(ctx, run) ... }
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "torch/worker.h"

namespace cutegen::torch {

struct ForeignFile {
  std::string name, source;  // name: path from the user; source: text of the file
};

struct ForeignOptions {
  std::string python;
  std::filesystem::path script;
  std::string device;              // "cuda:0"; empty: the CPU, which only tests correctness
  std::string arch;                // the architecture for which the solution's extensions are built
  bool tf32 = false;               // matrix products and convolutions may use TF32
  bool tf32_convolutions = false;  // convolutions may use TF32 (PyTorch's default)
  bool require_sandbox = false;
  int64_t memory_bytes = int64_t{16} << 30;
  Nanoseconds load_limit = std::chrono::seconds(300);  // includes the time to build extensions
  Nanoseconds call_limit = std::chrono::seconds(60);
};

// Memory that the caller owns, and the tensors in this memory. TensorSlot::part is "value" (an
// input), "output", or "final" (a mutated parameter or buffer after the call).
struct ForeignBlock {
  int descriptor = -1;
  size_t bytes = 0;  // size of GPU memory; unused for a memory file
  bool host = true, read_only = false;
};
struct ForeignTensors {
  std::vector<ForeignBlock> blocks;
  std::vector<GpuTensor> tensors;
};

struct ForeignModel {
  uint64_t seed = 0;     // seed for building the reference module
  bool on_gpu = false;   // whether the worker built the reference on the GPU
  int warm_up = 0;       // number of untimed calls, with inputs from the child
  ForeignTensors state;  // the reference's parameters and buffers
};
struct ForeignRun {
  ForeignTensors tensors;
  bool control = false;  // do all work of a run except the solution's call
  // Make the GPU wait for `sleep_ns`, so that the host has queued all launches before the first
  // launch begins.
  double sleep_ns = 0;
};

struct ForeignReply {
  enum class Kind { done, raised, rule, needs_gpu, died, hung } kind = Kind::done;
  std::string what, where;  // what: one line; where: a place in the solution's file
  // The last lines that the solution printed; set if `kind` is not `done`.
  std::string said;
  std::vector<std::string> kept;  // from make_model: tensors with the solution's own values
  // Time that the child reports: after run, the time of the call; after make_model, the host time
  // of a call.
  double claimed_ns = 0;
  Nanoseconds seen{0};  // time from request to reply, by cutegen's own clock
  bool ok() const { return kind == Kind::done; }
  bool gone() const { return kind == Kind::died || kind == Kind::hung; }
};

class ForeignWorker {
 public:
  static Result<std::unique_ptr<ForeignWorker>> open(const Context& ctx, ForeignOptions options);
  virtual ~ForeignWorker() = default;
  // Starts a new child and imports the solution.
  virtual Result<ForeignReply> load(const Context& ctx, const Task& task,
                                    const ForeignFile& answer) = 0;
  virtual Result<ForeignReply> make_model(const Context& ctx, const Task& task,
                                          const ShapeCase& shape, const ForeignModel& model) = 0;
  virtual Result<ForeignReply> run(const Context& ctx, const ForeignRun& run) = 0;
  virtual std::string version() const = 0;
  virtual sandbox::Grade grade() const = 0;
};

// Returns the seed with which the torch worker builds the reference module for an input set.
uint64_t model_seed_of(uint64_t seed, const std::string& family, const std::string& shape);

}  // namespace cutegen::torch
