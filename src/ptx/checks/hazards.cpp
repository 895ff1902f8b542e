// SPDX-License-Identifier: Apache-2.0
#include "ptx/checks/hazards.h"

#include <algorithm>
#include <bit>

#include "ptx/state/memory.h"

namespace cutegen::ptx {
namespace {

constexpr uint64_t kMostTracked = uint64_t{1} << 30;  // bytes of a buffer
constexpr uint32_t kLastEpoch = 0xe0000000;

// Halves each granule `times` times. All parts keep its epoch.
void split(Pages<uint32_t>& pages, int times) {
  Pages<uint32_t> finer;
  if (pages.size() == 0 || !finer.grow(pages.size() << times)) return pages.release();
  for (size_t i = 0; i < pages.size(); ++i)
    for (size_t k = 0; k < size_t{1} << times; ++k) finer[(i << times) + k] = pages[i];
  pages = std::move(finer);
}

// A launch that overlaps the previous one needs the epochs that the previous one stored.
void keep_granules(Memory::State& memory, HazardFacts& facts, bool overlaps) {
  if (overlaps && facts.global_shift > memory.shadow_shift)
    facts.global_shift = memory.shadow_shift;
  if (overlaps && facts.global_shift < memory.shadow_shift) {
    for (BufferShadow& s : memory.shadows) {
      split(s.writers, memory.shadow_shift - facts.global_shift);
      split(s.readers, memory.shadow_shift - facts.global_shift);
    }
  }
  memory.shadow_shift = facts.global_shift;
}

}  // namespace

std::unique_ptr<LaunchHazards> prepare_hazards(Memory::State& memory, const Program& program,
                                               const Checks& checks, int64_t block_threads,
                                               bool overlaps) {
  if (!checks.races && !checks.uninitialised) return nullptr;
  HazardFacts facts = hazard_facts(program, block_threads);
  keep_granules(memory, facts, overlaps);
  memory.shadows.resize(memory.buffers.size());
  if (memory.next_epoch > kLastEpoch) {
    for (BufferShadow& s : memory.shadows) s.writers.release(), s.readers.release();
    memory.next_epoch = memory.settled = 1;
  }
  for (size_t i = 0; i < memory.buffers.size(); ++i) {
    const Buffer& b = memory.buffers[i];
    BufferShadow& s = memory.shadows[i];
    if (b.access == Access::read_only || b.size == 0 || b.size > kMostTracked) continue;
    const size_t granules = size_t(b.size >> facts.global_shift) + 1;
    if (checks.races && !(s.writers.grow(granules) && s.readers.grow(granules)))
      s.writers.release();
    if (checks.uninitialised && b.content != Content::given) (void)s.defined.grow(b.size / 4 + 1);
  }
  return std::make_unique<LaunchHazards>(std::move(facts), memory.next_epoch, memory.shadows);
}

std::optional<Touch> LaunchHazards::conflict(const BufferShadow& shadow, Touch touch,
                                             uint32_t since, uint64_t from, uint64_t n) const {
  const int shift = facts.global_shift;
  const auto earlier = [&](uint32_t epoch) { return epoch >= since && epoch < epochs.first(); };
  for (size_t g = from >> shift; g <= (from + n - 1) >> shift; ++g) {
    if (earlier(shadow.writers[g])) return Touch::write;
    if (touch != Touch::read && earlier(shadow.readers[g])) return Touch::read;
  }
  return std::nullopt;
}

Hazards::Hazards(const Program& program, const Checks& checks, LaunchHazards& shared_state,
                 int warps, size_t shared_bytes)
    : launch(shared_state),
      clocks(warps, launch.facts.partial_order),
      seen_(launch.facts.access_pc.size() * size_t(warps) + 1) {
  if (checks.races) {
    global.emplace(launch.facts, clocks, launch.epochs, launch.times, warps);
    if ((warps > 1 || launch.facts.asynchronous) && shared_bytes > 0)
      shared.emplace(launch.facts, clocks, warps, shared_bytes);
  }
  if (checks.uninitialised)
    undefined.emplace(program, warps, shared_bytes, size_t(program.local_bytes));
}

void Hazards::fence(int warp, uint8_t kind) {
  if (kind == kDependencyWait) waited |= 1u << warp;
  const bool proxy = clocks.vector();
  if (proxy && (kind == kFenceProxy || kind == kFenceProxyShared))
    clocks.fence(FenceKind::proxy_shared, warp);
  if (proxy && (kind == kFenceProxy || kind == kFenceProxyGlobal))
    clocks.fence(FenceKind::proxy_global, warp);
  if (!global) return;
  if (kind == kFenceGpu) {
    clocks.fence(FenceKind::gpu, warp);
    global->fence();
  }
  if (kind == kFenceCta) global->release();
}

void Hazards::begin(int64_t cta, const InCluster& in) {
  waited = 0;
  clocks.begin(in.ctas, in.rank, in.ctas > 1 ? in.clocks : nullptr);
  std::fill(seen_.begin(), seen_.end(), Seen{});
  if (shared) shared->begin();
  if (global) global->begin(cta);
  if (undefined) undefined->begin();
}

Hazards::Seen& Hazards::seen(int warp, int32_t pc) {
  const int32_t i = launch.facts.access_index[size_t(pc)];
  if (i >= 0) return seen_[size_t(warp) * launch.facts.access_pc.size() + size_t(i)];
  return seen_.back() = Seen{};
}

void Hazards::arrive(int warp, int barrier) {
  if (!clocks.vector()) return;
  clocks.arrive(warp, barrier);
  if (global) global->join();
}

void Hazards::pass(uint32_t waiting, int barrier) {
  if (waited & waiting) waited |= waiting;  // one warp's wait for the launch counts for all
  if (clocks.vector()) {
    for (; waiting; waiting &= waiting - 1) clocks.leave(std::countr_zero(waiting), barrier);
    clocks.clear(barrier);
  } else {
    clocks.join();
    if (shared) shared->join();
  }
  if (global) global->join();
}

}  // namespace cutegen::ptx
