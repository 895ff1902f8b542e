// SPDX-License-Identifier: Apache-2.0
// Job: the data that the host threads of one launch share.
//
// Contract: launch() fills the Job before the first CTA begins. Running CTAs change only the Job's
// atomics and `hazards`. If the launch runs on one host thread, the CTAs also change `chain` and
// `pulls`.
//
// Example: Job job{program, memory, config}; Cta cta(job);
#pragma once

#include <array>
#include <atomic>
#include <map>
#include <memory>
#include <vector>

#include "ptx/checks/hazards.h"
#include "ptx/decode/program.h"
#include "ptx/model/chain.h"
#include "ptx/state/memory.h"

namespace cutegen::ptx {

// A launch uses `Pulls` if only a sample of its CTAs runs and the CTAs take tiles from a counter in
// memory. A pull is one atomic addition to the counter. Before each pull, the simulator advances
// the counter by the pulls that the omitted CTAs would make.
struct Pulls {
  struct Word {
    std::array<std::byte, 8> first{};  // value of the counter when the launch began
    uint64_t pulls = 0;
    uint8_t bytes = 0;
  };
  double stands_for = 1;  // CTAs in the grid / CTAs that run
  std::map<std::byte*, Word> words;
  // Returns how many pulls the omitted CTAs make before the next pull from the counter at `place`.
  uint64_t before(std::byte* place, uint8_t bytes);
  // Resets all counters to their values when the launch began.
  void restore();
};

struct Job {
  const Program& program;
  const Memory::State& memory;
  const LaunchConfig& config;
  std::vector<std::byte> params;
  std::vector<uint64_t> variable_base;  // by Program::variables
  int64_t shared_bytes = 0;             // static and dynamic
  Checks checks;
  uint64_t budget = 0;  // warp instructions
  const Context& context;
  std::atomic<uint64_t> spent{0};
  std::atomic<int64_t> stop_after;         // CTAs with higher indices need not run
  uint64_t workspace = 0;                  // address of the workspace of a cooperative launch
  std::unique_ptr<LaunchHazards> hazards;  // nullptr: no race or undefined checks
  std::unique_ptr<Chain> chain;            // models the first warp of the CTA `traced`
  int64_t traced = -1;
  // First epoch (race-check id, checks/global_races.h) of the earlier launches that may still run;
  // 0 if all earlier launches have ended.
  uint32_t unsettled = 0;
  std::atomic<bool> waited{false};  // whether some warp has waited for the earlier launches
  Order order = Order::in_order;
  uint64_t order_seed = 1;
  // If set, a warp yields to other warps each time it takes a tile from a counter in memory, so
  // that all CTAs advance equally.
  bool fair = false;
  // nullptr unless only a sample of the CTAs runs and the CTAs take tiles from a counter.
  std::unique_ptr<Pulls> pulls;

  // `unit` is the index of a cluster in the grid or, if the launch has no clusters, of a CTA.
  int64_t cluster_size() const { return config.cluster[0] * config.cluster[1] * config.cluster[2]; }
  bool has_clusters() const { return program.uses_clusters || cluster_size() > 1; }
  int64_t cta_of(int64_t unit, int64_t rank) const;
  int64_t unit_of(const std::array<int64_t, 3>& cta) const;
  int64_t rank_of(const std::array<int64_t, 3>& cta) const;

  // Returns how often a warp polls one address before it yields. A warp yields sooner if CTAs may
  // begin before the CTAs for which they wait.
  uint32_t spins() const { return order == Order::in_order ? 64 : 16; }
};

}  // namespace cutegen::ptx
