// SPDX-License-Identifier: Apache-2.0
// Chain: the time that one warp would take alone, computed from the latencies of dependent
// instructions.
//
// Contract: step() follows one warp as it runs. A piece is straight-line code up to a branch, a
// barrier or a wait. Within a piece, an instruction begins as soon as its operands are ready,
// whatever its position, because the assembler orders instructions well. A load may begin before an
// earlier store to the same space only if it reads constant data. A piece ends when all its
// instructions have begun; results may arrive during later pieces. So a load for a loop's next
// iteration costs nothing if this iteration is long enough. A copy to shared memory likewise costs
// nothing if its group is complete when the warp waits for it. Global loads take the latency of
// DRAM.
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
  // The warp's next instruction, which the lanes of `mask` execute.
  void step(const Inst& in, int32_t pc, uint32_t mask);
  // The time from the warp's first instruction to the end of its last piece.
  double clocks() const;
  // Call it if the last step() polled a word that other threads write. again: the warp has polled
  // the word before, and the poll takes no time, because it only waits for other threads.
  void poll(int32_t pc, bool again);
  // Call copy_to() if the last step() started a copy that the mbarrier at `place` counts. Call
  // wait_at() when the warp has waited at this mbarrier. Copies by other warps take no time.
  void copy_to(uint64_t place) { arrivals_[place] = last_ + latency_.global; }
  void wait_at(uint64_t place);
  // Call it when the traced warp's CTA has ended, with the number of instructions of all its warps.
  void ended(uint64_t cta_instructions) { cta_instructions_ = cta_instructions; }
  uint64_t cta_instructions() const { return cta_instructions_; }

 private:
  struct Cost {
    double latency = 0;  // time until the result is ready
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
  std::vector<double> ready_;    // when each register is ready, by its slot / 4
  std::deque<double> groups_;    // when each committed group of cp.async arrives
  double copies_ = 0;            // when the uncommitted copies arrive
  std::deque<double> products_;  // when each committed group of wgmma is complete
  // When the latest product is complete; when the pipe is free.
  double product_ = 0, tensor_free_ = 0;
  // Of the piece: its start, the issue slots used so far, when its last instruction began.
  double start_ = 0, issued_ = 0, last_ = 0;
  double global_store_ = 0, shared_store_ = 0;
  // When copies arrive, by the address of their mbarrier.
  std::unordered_map<uint64_t, double> arrivals_;
  double polled_[3] = {};  // start_, issued_ and last_ at the last poll
  int32_t next_ = -1;      // pc of the instruction that continues the piece
  uint64_t cta_instructions_ = 0;
};

}  // namespace cutegen::ptx
