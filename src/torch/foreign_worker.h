// SPDX-License-Identifier: Apache-2.0
// ForeignWorker: client of the Python child that runs a peer's answer (`class ModelNew`).
//
// Contract: one child for one answer, sandboxed: an own view of processes, files and network, a
// private folder that can be written, compilers allowed. It gets inputs and gives outputs through
// memory that the caller owns; it never gets a truth, a tolerance or the seed of an input. From
// load() on the child is the answer's: all it says is a claim, checked for form. What the answer
// does is a ForeignReply; an Error is our own trouble or the end of the Context. A child that hung
// or died is gone with all that it started; load() starts another.
//
// Example: CG_TRY(auto w, ForeignWorker::open(ctx, {})); CG_TRY(auto r, w->load(ctx, task,
// answer));
//   if (r.ok()) { CG_TRY(r, w->make_model(ctx, task, shape, model)); ... w->run(ctx, run) ... }
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "torch/worker.h"

namespace cutegen {

struct ForeignFile {
  std::string name, source;  // as the user named it; its text
};

struct ForeignOptions {
  std::string python;
  std::filesystem::path script;
  std::string device;              // "cuda:0"; empty: the processor, and correctness only
  std::string arch;                // of that GPU, "sm_90a": what is built is built for it alone
  bool tf32 = false;               // products and convolutions may use it
  bool tf32_convolutions = false;  // convolutions may, as PyTorch ships
  bool require_sandbox = false;
  int64_t memory_bytes = int64_t{16} << 30;
  Nanoseconds load_limit = std::chrono::seconds(300);  // with all that it builds
  Nanoseconds call_limit = std::chrono::seconds(60);
};

// Memory that is ours, and the tensors in it: part "value", "output", or "final" of a mutated
// parameter or buffer.
struct ForeignBlock {
  int descriptor = -1;
  size_t bytes = 0;  // of GPU memory; a memory file has its own size
  bool host = true, read_only = false;
};
struct ForeignTensors {
  std::vector<ForeignBlock> blocks;
  std::vector<GpuTensor> tensors;
};

struct ForeignModel {
  uint64_t seed = 0;     // the reference was made with it
  bool on_gpu = false;   // ... there
  int warm_up = 0;       // calls on inputs of its own
  ForeignTensors state;  // the reference's parameters and buffers
};
struct ForeignRun {
  ForeignTensors tensors;
  bool control = false;  // everything but the call
  double sleep_ns = 0;   // launches are queued behind a wait as long as this
};

struct ForeignReply {
  enum class Kind { done, raised, rule, needs_gpu, died, hung } kind = Kind::done;
  std::string what, where;        // one line; a place in the file
  std::string said;               // the last that it printed, where it is not done
  std::vector<std::string> kept;  // of make_model: tensors that have not the reference's values
  double claimed_ns = 0;          // of run: its time; of make_model: the host's share of a call
  Nanoseconds seen{0};            // by our clock, from the request to the reply
  [[nodiscard]] bool ok() const { return kind == Kind::done; }
  [[nodiscard]] bool gone() const { return kind == Kind::died || kind == Kind::hung; }
};

class ForeignWorker {
 public:
  [[nodiscard]] static Result<std::unique_ptr<ForeignWorker>> open(const Context& ctx,
                                                                   ForeignOptions options);
  virtual ~ForeignWorker() = default;
  // In a fresh child.
  [[nodiscard]] virtual Result<ForeignReply> load(const Context& ctx, const Task& task,
                                                  const ForeignFile& answer) = 0;
  [[nodiscard]] virtual Result<ForeignReply> make_model(const Context& ctx, const Task& task,
                                                        const ShapeCase& shape,
                                                        const ForeignModel& model) = 0;
  [[nodiscard]] virtual Result<ForeignReply> run(const Context& ctx, const ForeignRun& run) = 0;
  [[nodiscard]] virtual std::string version() const = 0;
  [[nodiscard]] virtual sandbox::Grade grade() const = 0;
};

// The seed with which the torch worker makes the module of a set.
[[nodiscard]] uint64_t model_seed_of(uint64_t seed, const std::string& family,
                                     const std::string& shape);

}  // namespace cutegen
