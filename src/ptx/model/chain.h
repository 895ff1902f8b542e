// SPDX-License-Identifier: Apache-2.0
// Chain: how long one warp takes alone, its instructions waiting for one another's results.
//
// Contract: step() follows one warp as it runs. Within a straight piece of code (up to a branch, a
// barrier or a wait) an instruction begins when its operands are ready, in any order: the assembler
// orders them well; but loads do not pass stores of their space unless what they read is constant.
// A piece ends when all of it has begun. Results may arrive later, in the next pieces: what a loop
// loads for its next iteration costs nothing if the iteration is long enough, and so do copies to
// shared memory until the wait for their group. Global loads take the latency of DRAM.
//
// Example: Chain chain(program, gpu.latency); chain.step(in, pc, mask); chain.clocks();
#pragma once

#include <deque>
#include <vector>

#include "gpu/spec.h"
#include "ptx/decode/program.h"

namespace cutegen::ptx {

class Chain {
 public:
  Chain(const Program& program, const GpuLatency& latency);
  // The warp's next instruction, of which the lanes of `mask` take part.
  void step(const Inst& in, int32_t pc, uint32_t mask);
  // From the warp's first instruction to the end of its last piece of code.
  double clocks() const;
  // The instruction of the last step() has read a word that others write, for the first time or
  // once more. How often is their affair: reading once more takes no time of its own.
  void poll(int32_t pc, bool again);
  // The traced warp's CTA has ended, after so many instructions of all its warps.
  void ended(uint64_t cta_instructions) { cta_instructions_ = cta_instructions; }
  uint64_t cta_instructions() const { return cta_instructions_; }

 private:
  struct Cost {
    double latency = 0;  // until the result is there
    double issue = 1;    // machine instructions
    bool constant = false;
  };
  void close();
  void wait(int64_t pending);
  double ready(const Inst& in, int32_t pc) const;
  double* store_before(const Inst& in);

  const Program& program_;
  const GpuLatency latency_;
  std::vector<Cost> costs_;                   // by pc
  std::vector<double> ready_;                 // by register slot / 4
  std::deque<double> groups_;                 // copies that were committed: when they arrive
  double copies_ = 0;                         // those that were not
  double start_ = 0, issued_ = 0, last_ = 0;  // of the piece: its start, issue slots, last begin
  double global_store_ = 0, shared_store_ = 0;
  double polled_[3] = {};  // start_, issued_ and last_ when it did
  int32_t next_ = -1;      // where the piece goes on
  uint64_t cta_instructions_ = 0;
};

}  // namespace cutegen::ptx
