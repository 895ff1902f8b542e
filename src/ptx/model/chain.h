// SPDX-License-Identifier: Apache-2.0
// Chain: models the time that one warp would take if it ran alone, from the latencies of dependent
// instructions.
//
// Contract: the simulator calls step() for each instruction of one warp. A piece is straight-line
// code up to a branch, a barrier or a wait. The model assumes that the assembler orders the
// instructions of a piece well: each instruction begins as soon as its operands are ready, whatever
// its position in the piece. A load may begin before an earlier store to the same state space only
// if the load reads constant data. A piece ends when all its instructions have begun; results may
// arrive during later pieces. Therefore, a load for the next iteration of a loop costs nothing if
// the current iteration is long enough. A copy to shared memory costs nothing if the copy is
// complete when the warp waits for it. The model gives every global load the latency of DRAM.
//
// Example: Chain chain(program, gpu.latency); chain.step(in, pc, mask); chain.clocks();
#pragma once

#include <deque>
#include <unordered_map>
#include <vector>

#include "gpu/spec.h"
#include "ptx/decode/program.h"

namespace cutegen::ptx {

class Chain {
 public:
  Chain(const Program& program, const GpuLatency& latency);
  // Adds the next instruction of the warp, which the lanes in `mask` execute.
  void step(const Inst& in, int32_t pc, uint32_t mask);
  // Returns the clocks from the first instruction of the warp to the end of its last piece.
  double clocks() const;
  // Call poll() if the last step() polled a word that other threads write. `again` means that the
  // warp has polled this word before. A repeated poll takes no time, because the warp only waits
  // for other threads.
  void poll(int32_t pc, bool again);
  // Call copy_to() if the last step() started a copy that the mbarrier at `place` counts. Call
  // wait_at() after the warp has waited at the mbarrier at `place`. The model gives copies by other
  // warps no latency.
  void copy_to(uint64_t place) { arrivals_[place] = last_ + latency_.global; }
  void wait_at(uint64_t place);
  // Call ended() when the CTA of the warp has ended. `cta_instructions` counts the instructions of
  // all warps of the CTA.
  void ended(uint64_t cta_instructions) { cta_instructions_ = cta_instructions; }
  uint64_t cta_instructions() const { return cta_instructions_; }

 private:
  struct Cost {
    double latency = 0;  // clocks until the result is ready
    double issue = 1;    // machine instructions
    bool constant = false;
  };
  void close();
  void wait(int64_t pending);
  void warpgroup(const Inst& in, double at);
  double ready(const Inst& in, int32_t pc) const;
  double* store_before(const Inst& in);

  const Program& program_;
  const GpuLatency latency_;
  std::vector<Cost> costs_;      // by pc
  std::vector<double> ready_;    // when each register is ready, by its offset / 4
  std::deque<double> groups_;    // when each committed group of cp.async arrives
  double copies_ = 0;            // when the uncommitted copies arrive
  std::deque<double> products_;  // when each committed group of wgmma is complete
  // When the latest wgmma is complete, and when the tensor pipe is free.
  double product_ = 0, tensor_free_ = 0;
  // Of the current piece: its start, its used issue slots, and when its last instruction began.
  double start_ = 0, issued_ = 0, last_ = 0;
  double global_store_ = 0, shared_store_ = 0;
  // When bulk copies arrive, by the address of their mbarrier.
  std::unordered_map<uint64_t, double> arrivals_;
  double polled_[3] = {};  // start_, issued_ and last_ at the last poll
  int32_t next_ = -1;      // pc of the next instruction if the piece continues
  uint64_t cta_instructions_ = 0;
};

}  // namespace cutegen::ptx
