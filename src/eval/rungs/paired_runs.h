// SPDX-License-Identifier: Apache-2.0
// Timed runs of a program at one shape (the official one, or a weighted one) on a GPU, alone or
// alternately with another program.
//
// Contract: prepare() loads both programs and creates their buffers. begin() binds them and runs
// the candidate once, untimed. block() then does the given number of runs of each. Every run writes
// its own copy of the outputs. With an official set, inputs and outputs are in the evaluator's
// memory (the runner maps inputs read-only), and the GPU compares all copies with the truth after
// each block. Blocks take fresh sets as long as the pool has some and the GPU has room for a copy
// of the inputs. If the set does not fit in GPU memory (note() says so), inputs repeat a smaller
// set and outputs are only spot-checked. A fault of the candidate gives the outcome that ends the
// rung; cutegen's own failures are errors. From begin() on, no other process of cutegen uses the
// GPU. If other work slows the GPU's memory down, control() and block() wait for its end and repeat
// the runs, for a few seconds at most; busy_blocks() counts the blocks that were slow nevertheless.
//
// Example: CG_CHECK(runs.prepare(ctx, id, set, nullptr)); CG_TRY(auto end, runs.begin(ctx));
//   if (!end) { CG_TRY(end, runs.block(ctx, TimeMode::cold, 8)); use(runs.last().own); }
#pragma once

#include "eval/rungs/block_sets.h"
#include "eval/rungs/timed_buffers.h"
#include "eval/rungs/timing.h"
#include "eval/runner/gpu_slot.h"

namespace cutegen::eval {

// The set that the inputs of the official shape repeat: a set of the largest test shape.
Result<SetPtr> small_set(const Context& ctx, const Services& services, const Prepared& prepared,
                         const std::string& program_id);

// The times of a block of runs.
struct BlockTimes {
  std::vector<double> own, other;       // ns: each run of the candidate and of the other program
  std::map<std::string, double> state;  // state of the GPU, such as the SM clock
  // Total time by the runner's clock, and by this process's clock.
  double claimed_ns = 0, seen_ns = 0;
};

class PairedRuns {
 public:
  using End = std::optional<TimingOutcome>;

  // shape: one of the prepared timed shapes.
  PairedRuns(const Services& services, const Task& task, const Prepared& prepared,
             const PreparedShape& shape)
      : services_(services),
        task_(task),
        prepared_(prepared),
        official_(shape),
        sets_(services, task, shape) {}

  // against: a program to time alternately. If it cannot be timed, note() says why.
  Result<void> prepare(const Context& ctx, const std::string& program_id, GpuSetPtr set,
                       const KernelProgram* against);
  // `skipped` if the GPU's memory is too small.
  End too_large() const;
  // Holds the GPU until this object ends, binds the buffers and runs once.
  Result<End> begin(const Context& ctx);
  // Times blocks without steps: the overhead of timing. Waits until the GPU's memory is quiet.
  Result<End> control(const Context& ctx, int samples);
  Result<End> block(const Context& ctx, TimeMode mode, int samples);

  // What NVML reports now: temperature, power, what limits the clocks.
  Result<std::map<std::string, double>> watch(const Context& ctx);
  bool paired() const { return other_.has_value(); }
  int copies() const { return buffers_.copies(); }  // of the outputs
  int busy_blocks() const { return busy_blocks_; }
  bool died() const { return died_; }  // the runner died in the last request
  const std::string& note() const { return note_; }
  const std::string& other_id() const { return other_id_; }
  const std::vector<KernelProfile>& kernels() const { return kernels_; }
  const BlockTimes& last() const { return last_; }  // the last block, minus the last control()

 private:
  const PreparedShape& others_shape() const;
  Result<void> add_buffers(const Context& ctx);
  Result<void> fit();
  Result<void> share_memory(const Context& ctx, RunRequest& request);
  device::TimeRequest request(TimeMode mode, int samples) const;
  Result<End> empty_runs(const Context& ctx, int samples);
  Result<End> timed_runs(const Context& ctx, TimeMode mode, int samples);
  End noted(const RunnerOutcome& outcome);

  const Services& services_;
  const Task& task_;
  const Prepared& prepared_;
  const PreparedShape& official_;
  std::optional<Prepared> other_;
  std::string program_id_, other_id_, note_;
  BlockSets sets_;  // empty if the GPU's memory cannot hold a set
  TimedBuffers buffers_;
  std::optional<GpuSlot> slot_;
  std::vector<KernelProfile> kernels_;
  BlockTimes control_, last_;
  Nanoseconds waited_{0};  // for other work to end
  int busy_blocks_ = 0;
  bool fits_ = true, room_for_inputs_ = false, died_ = false;
};

}  // namespace cutegen::eval
