// SPDX-License-Identifier: Apache-2.0
// Hazards: the race checks and the checks for undefined values of one CTA. LaunchHazards: the part
// of the checks' state that all CTAs of a launch share.
//
// Contract: a CTA has a Hazards object if the launch checks for races or undefined values.
// CtaChecks (ptx/units) uses the Hazards object of a CTA before each memory access. LaunchHazards
// must outlive the CTAs.
//
// Example: Hazards h(program, checks, launch, warps, shared_bytes); h.begin(cta);
#pragma once

#include <memory>
#include <optional>

#include "ptx/checks/global_races.h"
#include "ptx/checks/shared_races.h"
#include "ptx/checks/undefined.h"
#include "ptx/machine/machine.h"

namespace cutegen::ptx {

struct LaunchHazards {
  LaunchHazards(HazardFacts known, uint32_t first_epoch, std::vector<BufferShadow>& beside)
      : facts(std::move(known)), epochs(first_epoch), shadows(beside) {}
  HazardFacts facts;
  Epochs epochs;
  SyncTimes times;
  std::vector<BufferShadow>& shadows;

  // Returns how earlier launches since the epoch `since` access one of the bytes [from, from + n)
  // of a buffer, if this conflicts with the access `touch`.
  std::optional<Touch> conflict(const BufferShadow& shadow, Touch touch, uint32_t since,
                                uint64_t from, uint64_t n) const;
};

// Creates shadow memory for the buffers that the kernel can write. Returns nullptr if the launch
// checks neither races nor undefined values.
std::unique_ptr<LaunchHazards> prepare_hazards(Memory::State& memory, const Program& program,
                                               const Checks& checks, int64_t block_threads,
                                               bool overlaps = false);

struct Hazards {
  Hazards(const Program& program, const Checks& checks, LaunchHazards& launch, int warps,
          size_t shared_bytes);
  // The rank of the CTA in its cluster, and the clocks that the CTAs of the cluster share.
  struct InCluster {
    int ctas = 1, rank = 0;
    std::shared_ptr<ClockTable>* clocks = nullptr;
  };
  void begin(int64_t cta, const InCluster& in);
  // Call arrive() when `warp` arrives at a barrier.
  void arrive(int warp, int barrier);
  // Call pass() when a barrier releases the warps in the mask `waiting`.
  void pass(uint32_t waiting, int barrier);
  // Call fence() at a fence, and when a warp waits for the previous launch (griddepcontrol.wait).
  // `kind` is Inst::sub of Op::fence.
  void fence(int warp, uint8_t kind);
  // Call signal() when `warp` may tell another CTA that its writes are complete: at an atomic or a
  // volatile or relaxed store, or when it arrives at a barrier of the cluster.
  void signal(int warp) {
    if (global) global->signal(warp);
  }

  // The last execution of a shared memory instruction by a warp. If a later execution has the same
  // key, it accesses the same words. If all these words were written, the checks for undefined
  // values skip the later execution.
  struct Seen {
    uint32_t low = 0, high = 0, bits = 0, second = 0;  // the key
    uint32_t lanes = 0;                                // 0: no execution yet
    // Whether this execution read only words that the CTA had written.
    bool written = false;
  };
  Seen& seen(int warp, int32_t pc);

  LaunchHazards& launch;
  Clocks clocks;
  uint32_t waited = 0;  // mask of warps that have waited for the previous launch
  // For each warp, one entry per numbered access (HazardFacts::access_index), and a last entry for
  // accesses without a number.
  std::vector<Seen> seen_;
  std::optional<SharedRaces> shared;
  std::optional<GlobalRaces> global;
  std::optional<Undefined> undefined;
};

}  // namespace cutegen::ptx
