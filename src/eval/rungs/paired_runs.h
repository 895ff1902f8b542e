// SPDX-License-Identifier: Apache-2.0
// Times a program on a GPU at one shape, alone or alternately with another program. The shape is
// the official shape (the sizes in the task file) or another weighted shape.
//
// Contract: prepare() loads the programs and creates their buffers. begin() gives the buffers to
// the runner and runs the candidate once, untimed. Each call of block() times the given number of
// runs of each program. If the candidate is at fault, a call returns the outcome that ends the
// timing. If cutegen itself fails, the call returns an error.
//
// Every run writes its own copy of the outputs. If prepare() receives an input set, inputs and
// outputs are in the evaluator's GPU memory, which the runner maps (inputs read-only). After each
// block, the GPU then compares all copies with the truth (the result in float64). Blocks use fresh
// input sets while the pool of input sets has some and the GPU has memory for a second copy of the
// inputs; inputs() counts the blocks that repeated earlier inputs. If the input set does
// not fit in GPU memory (note() says so), inputs repeat the values of a smaller set and the
// evaluator only spot-checks outputs.
//
// From begin() on, no other process of cutegen uses the GPU. If other work slows the GPU's memory
// down, control() and block() wait and repeat the runs, for a few seconds at most. busy_blocks()
// counts the blocks that remained slow.
//
// Example: CG_CHECK(runs.prepare(ctx, id, set, nullptr)); CG_TRY(auto end, runs.begin(ctx));
//   if (!end) { CG_TRY(end, runs.block(ctx, TimeMode::cold, 8)); use(runs.last().own); }
#pragma once

#include "eval/rungs/block_sets.h"
#include "eval/rungs/timed_buffers.h"
#include "eval/rungs/timing.h"
#include "eval/runner/gpu_slot.h"

namespace cutegen::eval {

// Returns an input set of the largest test shape, whose values the inputs of the official shape
// repeat.
Result<SetPtr> small_set(const Context& ctx, const Services& services, const Prepared& prepared,
                         const std::string& program_id);

// The times of a block of runs.
struct BlockTimes {
  std::vector<double> own, other;       // times of candidate and other program, in ns
  std::map<std::string, double> state;  // the GPU's state, such as the SM clock
  // Total time of the block by the runner's clock (claimed_ns) and the evaluator's clock (seen_ns).
  double claimed_ns = 0, seen_ns = 0;
};

// Counts the timed blocks of runs that used the inputs of an earlier block.
struct RepeatedInputs {
  int timed = 0, repeated = 0;
  void add(bool fresh) { ++timed, repeated += !fresh; }
  // Says how many blocks used the inputs of an earlier block; empty if none did.
  std::string remark() const;
};

class PairedRuns {
 public:
  using End = std::optional<TimingOutcome>;

  // shape: the official or a weighted shape of `prepared`.
  PairedRuns(const Services& services, const Task& task, const Prepared& prepared,
             const PreparedShape& shape)
      : services_(services),
        task_(task),
        prepared_(prepared),
        official_(shape),
        sets_(services, task, shape) {}

  // against: the other program, or null. If the evaluator cannot time `against`, note() says why.
  Result<void> prepare(const Context& ctx, const std::string& program_id, GpuSetPtr set,
                       const KernelProgram* against);
  // Returns an outcome with the result `skipped` if the GPU's memory is too small.
  End too_large() const;
  // Locks the GPU until destruction, gives the buffers to the runner, and runs the candidate once.
  Result<End> begin(const Context& ctx);
  // Waits for a quiet GPU, and measures the overhead of timing with blocks of empty runs.
  Result<End> control(const Context& ctx, int samples);
  Result<End> block(const Context& ctx, TimeMode mode, int samples);

  // Returns NVML's present readings: temperature, power, and the reason for limited clocks.
  Result<std::map<std::string, double>> watch(const Context& ctx);
  bool paired() const { return other_.has_value(); }
  int copies() const { return buffers_.copies(); }  // number of output copies
  int busy_blocks() const { return busy_blocks_; }
  const RepeatedInputs& inputs() const { return inputs_; }  // of the blocks since begin()
  bool died() const { return died_; }  // true if the runner died in the last call
  const std::string& note() const { return note_; }
  const std::string& other_id() const { return other_id_; }
  const std::vector<KernelProfile>& kernels() const { return kernels_; }
  const BlockTimes& last() const { return last_; }  // times minus the overhead from control()

 private:
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
  BlockSets sets_;  // has no input sets if the GPU's memory is too small
  TimedBuffers buffers_;
  std::optional<GpuSlot> slot_;
  std::vector<KernelProfile> kernels_;
  BlockTimes control_, last_;
  Nanoseconds waited_{0};  // total time of waiting for other work to end
  int busy_blocks_ = 0;
  RepeatedInputs inputs_;
  bool fits_ = true, room_for_inputs_ = false, died_ = false;
};

}  // namespace cutegen::eval
