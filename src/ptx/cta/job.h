// SPDX-License-Identifier: Apache-2.0
// Job: the data that the host threads of one launch share.
//
// Contract: launch() fills it before the first CTA begins. After that, CTAs change only the atomics
// and `hazards`, and also `chain` and `pulls` if the launch runs on one host thread.
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

// For a sample of a kernel whose CTAs take work from a counter. A pull is one atomic addition to
// this counter. Before each pull, advances the counter by the pulls that the omitted CTAs would
// make.
struct Pulls {
  struct Word {
    std::array<std::byte, 8> first{};  // the counter's value at the beginning of the launch
    uint64_t pulls = 0;
    uint8_t bytes = 0;
  };
  double stands_for = 1;  // CTAs of the grid, divided by those that run
  std::map<std::byte*, Word> words;
  // How many pulls the omitted CTAs make before the next pull from the counter at `place`.
  uint64_t before(std::byte* place, uint8_t bytes);
  // Resets the counters to their values at the beginning.
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
  std::atomic<int64_t> stop_after;         // CTAs after this one need not run
  uint64_t workspace = 0;                  // address of a cooperative launch's workspace
  std::unique_ptr<LaunchHazards> hazards;  // nullptr: the checks are off
  std::unique_ptr<Chain> chain;            // follows the first warp of CTA `traced`
  int64_t traced = -1;
  // First epoch (checks/global_races.h) of earlier launches that may still run; 0: all have ended.
  uint32_t unsettled = 0;
  std::atomic<bool> waited{false};  // some warp has waited for these launches
  Order order = Order::in_order;
  uint64_t order_seed = 1;
  // A warp yields each time it takes work from a counter, so that all CTAs advance equally.
  bool fair = false;
  // Set if only a sample of the CTAs runs and these take their work from a counter.
  std::unique_ptr<Pulls> pulls;

  // A unit is a cluster, or a CTA if the launch has no clusters. `unit`: its number in the grid.
  int64_t cluster_size() const { return config.cluster[0] * config.cluster[1] * config.cluster[2]; }
  bool has_clusters() const { return program.uses_clusters || cluster_size() > 1; }
  int64_t cta_of(int64_t unit, int64_t rank) const;
  int64_t unit_of(const std::array<int64_t, 3>& cta) const;
  int64_t rank_of(const std::array<int64_t, 3>& cta) const;

  // How often a warp polls one address before it yields: less often if CTAs may begin before the
  // CTAs that they wait for.
  uint32_t spins() const { return order == Order::in_order ? 64 : 16; }
};

}  // namespace cutegen::ptx
