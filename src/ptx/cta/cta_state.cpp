// SPDX-License-Identifier: Apache-2.0
#include "ptx/cta/cta_state.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <utility>

#include "base/text.h"
#include "ptx/cta/register_pool.h"

namespace cutegen::ptx {
namespace {

// Leaves room for 2^32 changes.
uint64_t first_version() {
  static std::atomic<uint64_t> last{0};
  return (last.fetch_add(1, std::memory_order_relaxed) + 1) << 32;
}

int64_t threads_in(const LaunchConfig& config) {
  return config.block[0] * config.block[1] * config.block[2];
}

}  // namespace

CtaState::CtaState(Job& launch)
    : job(launch),
      block_threads(threads_in(launch.config)),
      warps(size_t((block_threads + 31) / 32)),
      registers(launch, warps.size()),
      shared(size_t(launch.shared_bytes)),
      local(size_t(launch.program.local_bytes) * warps.size() * 32),
      copies(warps.size(), shared.size()),
      mbarrier_waits(warps.size()),
      guard(shared.size()),
      races(launch.hazards && launch.checks.races) {
  for (size_t i = 0; i < warps.size(); ++i) {
    warps[i].index = int(i);
    warps[i].registers = registers.of(i);
  }
  if (job.program.uses_wgmma)
    wgmma = std::make_unique<WgmmaState>(warps.size(), size_t(job.program.register_bytes));
  if (job.hazards) {
    hazards = std::make_unique<Hazards>(job.program, job.checks, *job.hazards, int(warps.size()),
                                        shared.size());
  }
}

int64_t CtaState::bytes(const Job& job) {
  const int64_t warps = (threads_in(job.config) + 31) / 32;
  return warps *
             (job.program.register_bytes + 32 * job.program.local_bytes + int64_t(sizeof(Warp))) +
         job.shared_bytes * (job.hazards ? 4 + warps : 1);
}

void CtaState::begin(int64_t index, Counting& counter, std::shared_ptr<ClusterState> of) {
  linear = index;
  counting = &counter;
  work = {};
  const auto& g = job.config.grid;
  at = {linear % g[0], linear / g[0] % g[1], linear / (g[0] * g[1])};
  rank = size_t(job.rank_of(at)), first = job.cta_of(job.unit_of(at), 0);
  registers.begin(at);
  for (Warp& w : warps) w.begin(threads_of(w));
  alive_warps = int(warps.size());
  cluster = std::move(of);
  if (cluster) cluster->add(*this);
  copies.clear();
  if (wgmma) wgmma->begin(first_registers(job.program, warps.size()));
  mbarriers.clear();
  std::fill(mbarrier_waits.begin(), mbarrier_waits.end(), MbarrierWait{});
  bulk.begin(warps.size() * 32);
  guard.clear();
  if (hazards && cluster)
    hazards->begin(
        linear, {.ctas = int(job.cluster_size()), .rank = int(rank), .clocks = &cluster->clocks});
  if (hazards && !cluster) hazards->begin(linear, {});
  pending.reset();
  shared_version = first_version();
  // Words that nobody has written read as NaN, the same in every run.
  if (!shared.empty()) std::memset(shared.data(), 0xff, shared.size());
  if (!local.empty()) std::memset(local.data(), 0xff, local.size());
}

void CtaState::report(const Warp& w, int lane, Finding found) {
  status = LaunchStatus::finding;
  finding = located(w, lane, std::move(found));
}

Finding CtaState::located(const Warp& w, int lane, Finding found) const {
  const SourceLine& line = job.program.lines[size_t(w.current.pc)];
  found.instruction = sanitize(line.text, 200);
  found.ptx_line = line.line, found.source_line = line.source_line;
  found.cta = at;
  found.thread = w.index * 32 + lane;
  return found;
}

std::string CtaState::place(int32_t pc) const {
  const SourceLine& line = job.program.lines[size_t(pc)];
  const std::string text = sanitize(line.text, 60);
  if (line.source_line > 0) return fmt::format("line {} ({})", line.source_line, text);
  return fmt::format("ptx line {} ({})", line.line, text);
}

std::array<int64_t, 3> CtaState::place_of(int rank_in_cluster) const {
  if (rank_in_cluster < 0) return at;
  const auto& g = job.config.grid;
  const int64_t other = job.cta_of(job.unit_of(at), rank_in_cluster);
  return {other % g[0], other / g[0] % g[1], other / (g[0] * g[1])};
}

// pc -1: unknown.
Finding::Party CtaState::party(int32_t pc, int thread, const std::array<int64_t, 3>& of) const {
  Finding::Party p;
  if (pc >= 0) {
    const SourceLine& line = job.program.lines[size_t(pc)];
    p.ptx_line = line.line, p.source_line = line.source_line;
  }
  p.cta = of, p.thread = thread;
  return p;
}

uint64_t CtaState::executed() const {
  uint64_t out = 0;
  for (const Warp& w : warps) out += w.executed;
  return out;
}

uint32_t CtaState::threads_of(const Warp& w) const {
  const int64_t threads = std::min<int64_t>(32, block_threads - w.index * 32);
  return threads == 32 ? ~0u : (1u << threads) - 1;
}

}  // namespace cutegen::ptx
