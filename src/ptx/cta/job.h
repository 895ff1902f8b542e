// SPDX-License-Identifier: Apache-2.0
// Job: what the host threads of one launch share, from the program to the instruction budget.
//
// Contract: launch() fills it before the first CTA begins. From then on CTAs change only the
// atomics, `hazards` and, in a launch that runs on one host thread, `chain` and `pulls`.
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

// Stands in for the CTAs that a sample leaves out, in kernels whose CTAs take work from a counter:
// each CTA that runs finds the counter advanced by its share of them.
struct Pulls {
  struct Word {
    std::array<std::byte, 8> first{};  // its value at the beginning of the launch
    uint64_t pulls = 0;
    uint8_t bytes = 0;
  };
  double stands_for = 1;  // CTAs of the grid for each one that runs
  std::map<std::byte*, Word> words;
  // How many others take work before this CTA does.
  uint64_t before(std::byte* place, uint8_t bytes);
  // Gives the counters their first values back.
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
  std::atomic<int64_t> stop_after;         // CTAs beyond this one need not run
  uint64_t workspace = 0;                  // of a cooperative launch
  std::unique_ptr<LaunchHazards> hazards;  // nullptr: the checks are off
  std::unique_ptr<Chain> chain;            // of the first warp of CTA `traced`
  int64_t traced = -1;
  uint32_t unsettled = 0;           // first epoch of launches that may still run; 0: all have ended
  std::atomic<bool> waited{false};  // some warp has waited for those launches
  Order order = Order::in_order;
  uint64_t order_seed = 1;
  bool fair = false;             // CTAs advance in step: a warp that pulls yields
  std::unique_ptr<Pulls> pulls;  // in a sampled launch whose CTAs pull

  // Clusters: `unit` is the number of one in the grid.
  int64_t cluster_size() const { return config.cluster[0] * config.cluster[1] * config.cluster[2]; }
  bool has_clusters() const { return program.uses_clusters || cluster_size() > 1; }
  int64_t cta_of(int64_t unit, int64_t rank) const;
  int64_t unit_of(const std::array<int64_t, 3>& cta) const;
  int64_t rank_of(const std::array<int64_t, 3>& cta) const;

  // Polls of one address before a warp yields. If CTAs that wait begin first, a few must do.
  uint32_t spins() const { return order == Order::in_order ? 64 : 16; }
};

}  // namespace cutegen::ptx
