// SPDX-License-Identifier: Apache-2.0
// ForeignWorker: client of the Python child that runs a third-party solution (`class ModelNew`).
//
// Contract: each solution gets its own sandboxed child with a private view of processes, files and
// network, a private writable folder, and permission to start compilers. The child reads inputs
// from memory that the caller owns and writes outputs there. It never gets a truth, a tolerance or
// the seed of an input. From load() on, the solution controls the child, so the caller must not
// trust a reply. Only its form is checked. A ForeignReply says what the solution did; an Error is
// cutegen's own failure or the end of the Context. The worker kills a child that hung or died,
// together with all processes that the child started; load() starts another child.
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
  std::string name, source;  // name: as the user gave it; source: the text
};

struct ForeignOptions {
  std::string python;
  std::filesystem::path script;
  std::string device;              // "cuda:0"; empty: the CPU, for correctness only
  std::string arch;                // the GPU's, such as "sm_90a": builds target only this one
  bool tf32 = false;               // matrix products and convolutions may use TF32
  bool tf32_convolutions = false;  // convolutions may use TF32, PyTorch's default
  bool require_sandbox = false;
  int64_t memory_bytes = int64_t{16} << 30;
  Nanoseconds load_limit = std::chrono::seconds(300);  // includes building
  Nanoseconds call_limit = std::chrono::seconds(60);
};

// Memory that the caller owns, and the tensors in it. Parts: "value", "output", or "final" for a
// mutated parameter or buffer.
struct ForeignBlock {
  int descriptor = -1;
  size_t bytes = 0;  // size of GPU memory; a memory file knows its own size
  bool host = true, read_only = false;
};
struct ForeignTensors {
  std::vector<ForeignBlock> blocks;
  std::vector<GpuTensor> tensors;
};

struct ForeignModel {
  uint64_t seed = 0;     // the seed that the reference module was built with
  bool on_gpu = false;   // the reference module was built on the GPU
  int warm_up = 0;       // number of calls on inputs that the child draws
  ForeignTensors state;  // the reference's parameters and buffers
};
struct ForeignRun {
  ForeignTensors tensors;
  bool control = false;  // run everything except the solution
  // Let the GPU wait this long before the launches, so that all of them are queued.
  double sleep_ns = 0;
};

struct ForeignReply {
  enum class Kind { done, raised, rule, needs_gpu, died, hung } kind = Kind::done;
  std::string what, where;  // what: one line; where: a place in the file
  // If the status is not `done`: the last lines that the solution printed.
  std::string said;
  std::vector<std::string> kept;  // make_model: tensors that keep the solution's initial values
  // Reply to run: the call's time; to make_model: the host's share of a call.
  double claimed_ns = 0;
  Nanoseconds seen{0};  // time from the request to the reply, by this process's clock
  bool ok() const { return kind == Kind::done; }
  bool gone() const { return kind == Kind::died || kind == Kind::hung; }
};

class ForeignWorker {
 public:
  static Result<std::unique_ptr<ForeignWorker>> open(const Context& ctx, ForeignOptions options);
  virtual ~ForeignWorker() = default;
  // Always starts a new child.
  virtual Result<ForeignReply> load(const Context& ctx, const Task& task,
                                    const ForeignFile& answer) = 0;
  virtual Result<ForeignReply> make_model(const Context& ctx, const Task& task,
                                          const ShapeCase& shape, const ForeignModel& model) = 0;
  virtual Result<ForeignReply> run(const Context& ctx, const ForeignRun& run) = 0;
  virtual std::string version() const = 0;
  virtual sandbox::Grade grade() const = 0;
};

// The seed with which the torch worker builds the module of a set.
uint64_t model_seed_of(uint64_t seed, const std::string& family, const std::string& shape);

}  // namespace cutegen::torch
