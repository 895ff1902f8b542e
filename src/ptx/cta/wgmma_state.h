// SPDX-License-Identifier: Apache-2.0
// WgmmaState: records which registers and shared memory the unfinished wgmma instructions of a CTA
// use, and which wgmma instructions each warp has executed.
//
// Contract: a product is one wgmma.mma_async. Each wgmma.commit_group of a warp forms a group of
// the warp's products since its last commit. wgmma.wait_group completes groups. For each unfinished
// product, `uses` has the registers that the product uses, and `reads` has the shared memory that
// it reads. `WarpgroupSteps` checks that the four warps of a warpgroup execute the same sequence of
// wgmma instructions.
//
// Example: if (state.pending(warp, slot)) report();
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <vector>

#include "ptx/ops/wgmma_descriptor.h"

namespace cutegen::ptx {

// Records the wgmma instructions that some warps of a warpgroup have executed and others have not.
class WarpgroupSteps {
 public:
  static constexpr int kWarps = 4;
  struct Step {
    int32_t pc = -1;
    uint64_t a = 0, b = 0;  // descriptors
    bool operator==(const Step&) const = default;
  };
  // Records that `warp` executes `step`. If another warp has executed a different step at this
  // position of the sequence, returns that step; otherwise nullptr.
  const Step* execute(int warp, const Step& step);
  // Returns the next step of `warp` if another warp has already executed it; otherwise nullptr.
  const Step* missed(int warp) const;
  uint64_t executed(int warp) const { return at_[size_t(warp)]; }
  bool together() const;
  bool too_far() const { return steps_.size() > kMost; }

 private:
  static constexpr size_t kMost = size_t{1} << 20;
  std::deque<Step> steps_;
  uint64_t first_ = 0;  // sequence number of steps_[0]
  std::array<uint64_t, kWarps> at_{};
  Step other_;
};

struct WgmmaState {
  // How the wgmma instructions of a warp use one register.
  struct Use {
    uint32_t group = 0;  // group of the latest product that uses the register; 0: no product
    // 1 plus the number of wgmma.fence before the last write to the register; 0 if never written.
    uint32_t written = 0;
    uint32_t fences = 0;    // number of wgmma.fence before the latest product
    int32_t pc = -1;        // pc of the latest product
    bool fragment = false;  // the register holds elements of A, not of D
  };
  struct Order {  // of a warp
    uint32_t fences = 0, committed = 0, completed = 0;
    std::vector<Use> uses;  // one entry per register, at its offset / 64
    bool waits = false;     // whether the warp waits for the other warps of its warpgroup
    int64_t registers = 0;  // current registers per thread (setmaxnreg)
  };
  // A product that may still read shared memory.
  struct Read {
    int32_t pc = -1;
    int warp = 0;
    uint32_t group = 0;
    std::array<SharedTile, 2> tiles;
    std::array<uint32_t, 2> low{}, end{};  // address bounds of each tile; `end` is 0 if unused
  };

  WgmmaState(size_t warps, size_t register_bytes) : warps_(warps), bytes_(register_bytes) {}
  void begin(int64_t registers);
  Use* uses(int warp) { return orders[size_t(warp)].uses.data(); }
  Use& use(int warp, int32_t slot) { return uses(warp)[slot / 64]; }
  bool pending(int warp, int32_t slot) {
    return use(warp, slot).group > orders[size_t(warp)].completed;
  }
  // Returns the number of the warp's next group of products, from 1.
  uint32_t next_group(int warp) const { return orders[size_t(warp)].committed + 1; }
  // Completes all groups of the warp except its latest `left` groups.
  void complete(int warp, int64_t left);
  // Returns an unfinished product that reads some of the bytes [from, to), or nullptr.
  const Read* reader(uint64_t from, uint64_t to) const;

  std::vector<Order> orders;  // by warp
  int64_t free_registers = 0;
  std::vector<Read> reads;
  std::vector<WarpgroupSteps> steps;  // by warpgroup

 private:
  size_t warps_, bytes_;
};

}  // namespace cutegen::ptx
