// SPDX-License-Identifier: Apache-2.0
// All checks of one machine, and what they share in a launch.
//
// Contract: made when a launch looks for races or undefined values; cta_checks.cpp asks them before
// each access. LaunchHazards outlives the machines.
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
};

// Shadows for the buffers that a kernel can write; nullptr if nothing is looked for.
std::unique_ptr<LaunchHazards> prepare_hazards(Memory::State& memory, const Program& program,
                                               const Checks& checks, int64_t block_threads,
                                               bool overlaps = false);

struct Hazards {
  Hazards(const Program& program, const Checks& checks, LaunchHazards& launch, int warps,
          size_t shared_bytes);
  void begin(int64_t cta);
  // Warp `warp` comes to a barrier.
  void arrive(int warp, int barrier);
  // A barrier lets the warps in `waiting` go on.
  void pass(uint32_t waiting, int barrier);
  // A fence of some kind (inst.h), or the wait for the launch before.
  void fence(int warp, uint8_t kind);

  // What the last execution of an access of shared memory by a warp came to. One with the same key
  // is taken to touch the same places: words once written stay so.
  struct Seen {
    uint32_t low = 0, high = 0, bits = 0, second = 0;  // the key
    uint32_t lanes = 0;                                // 0: nothing seen
    bool written = false;                              // all it read had been
  };
  Seen& seen(int warp, int32_t pc);

  LaunchHazards& launch;
  Clocks clocks;
  uint32_t waited = 0;      // warps that have waited for the launch before, by bit
  std::vector<Seen> seen_;  // by warp and access; one more for accesses without a number
  std::optional<SharedRaces> shared;
  std::optional<GlobalRaces> global;
  std::optional<Undefined> undefined;
};

}  // namespace cutegen::ptx
