// SPDX-License-Identifier: Apache-2.0
// WgmmaState: the registers and shared memory that unfinished wgmma instructions of a CTA use, and
// the progress of each warp.
//
// Contract: a product is one wgmma.mma_async. A warp's products join the group that it commits
// next, and a wait completes groups. While a product is unfinished, `uses` holds the registers that
// it uses, and `reads` the shared memory that it reads. The four warps of a warpgroup execute the
// same sequence of wgmma instructions (WarpgroupSteps).
//
// Example: if (state.pending(warp, slot)) report();
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <vector>

#include "ptx/ops/wgmma_descriptor.h"

namespace cutegen::ptx {

// The wgmma instructions that some, but not all, warps of a warpgroup have executed.
class WarpgroupSteps {
 public:
  static constexpr int kWarps = 4;
  struct Step {
    int32_t pc = -1;
    uint64_t a = 0, b = 0;  // descriptors
    bool operator==(const Step&) const = default;
  };
  // Returns the step that another warp executed instead of this one; nullptr: no warp did so.
  const Step* execute(int warp, const Step& step);
  // The next step of `warp`, if another warp has executed it; nullptr: none has.
  const Step* missed(int warp) const;
  // The number of steps that the warp has executed.
  uint64_t executed(int warp) const { return at_[size_t(warp)]; }
  bool together() const;
  bool too_far() const { return steps_.size() > kMost; }

 private:
  static constexpr size_t kMost = size_t{1} << 20;
  std::deque<Step> steps_;
  uint64_t first_ = 0;  // number of the first of steps_
  std::array<uint64_t, kWarps> at_{};
  Step other_;
};

struct WgmmaState {
  // How wgmma uses a register.
  struct Use {
    uint32_t group = 0;  // group of the latest product that uses the register; 0: none
    // Number of fences before the register's last write, plus one; 0: never written.
    uint32_t written = 0;
    uint32_t fences = 0;    // number of fences before that product
    int32_t pc = -1;        // of that product
    bool fragment = false;  // whether the register holds a part of A, not an accumulator
  };
  struct Order {  // of a warp
    uint32_t fences = 0, committed = 0, completed = 0;
    std::vector<Use> uses;  // use of each register, by its slot / 64
    bool waits = false;     // whether the warp waits for the other warps of its warpgroup
    // Labels of the warp's unfinished groups (Clocks::commit_products).
    std::deque<uint32_t> labels;
    int64_t registers = 0;  // registers per thread, as setmaxnreg has set them
  };
  // A product that may still read shared memory.
  struct Read {
    int32_t pc = -1;
    int warp = 0;
    uint32_t group = 0;
    std::array<SharedTile, 2> tiles;
    std::array<uint32_t, 2> low{}, end{};  // bounds of each tile; end 0: not used
  };

  WgmmaState(size_t warps, size_t register_bytes) : warps_(warps), bytes_(register_bytes) {}
  void begin(int64_t registers);
  Use* uses(int warp) { return orders[size_t(warp)].uses.data(); }
  Use& use(int warp, int32_t slot) { return uses(warp)[slot / 64]; }
  bool pending(int warp, int32_t slot) {
    return use(warp, slot).group > orders[size_t(warp)].completed;
  }
  // Completes all groups of the warp except the youngest `left`.
  void complete(int warp, int64_t left);
  // An unfinished product that reads one of the bytes [from, to), or nullptr.
  const Read* reader(uint64_t from, uint64_t to) const;

  std::vector<Order> orders;  // by warp
  int64_t free_registers = 0;
  std::vector<Read> reads;
  std::vector<WarpgroupSteps> steps;  // by warpgroup

 private:
  size_t warps_, bytes_;
};

}  // namespace cutegen::ptx
