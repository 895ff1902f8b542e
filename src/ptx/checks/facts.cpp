// SPDX-License-Identifier: Apache-2.0
#include "ptx/checks/facts.h"

#include <algorithm>
#include <bit>

#include "ptx/ops/warp_ops.h"

namespace cutegen::ptx {
namespace {

// Whether the instruction itself shows that the barrier is for all warps.
bool whole(const Program& p, const Inst& in, int64_t block_threads) {
  if (in.sub == kBarrierArrive) return false;
  if (in.b < 0) return true;
  for (const ConstantSlot& c : p.constants) {
    if (c.offset == in.b) return int64_t(c.bits) == (block_threads + 31) / 32 * 32;
  }
  return false;
}

bool may_be_shared(const Inst& in) {
  return in.space == Space::shared || in.space == Space::generic || in.op == Op::async_copy;
}

}  // namespace

HazardFacts hazard_facts(const Program& p, int64_t block_threads) {
  HazardFacts f;
  f.access_index.assign(p.code.size(), -1);
  f.partial_order = p.uses_clusters || !p.wgmmas.empty();
  for (size_t pc = 0; pc < p.code.size(); ++pc) {
    const Inst& in = p.code[pc];
    if (in.op == Op::barrier && !whole(p, in, block_threads)) f.partial_order = true;
    if (in.op == Op::mbarrier || in.op == Op::bulk_copy) f.asynchronous = f.partial_order = true;
    if (in.op == Op::alu || in.size == 0) continue;
    const int shift = std::min(2, std::countr_zero(unsigned(in.size)));
    if (may_be_shared(in)) {
      f.shared_shift = std::min(f.shared_shift, shift);
      f.access_index[pc] = int32_t(f.access_pc.size());
      f.access_pc.push_back(int32_t(pc));
      f.access_writes.push_back(in.op != Op::load && in.op != Op::load_matrix &&
                                in.op != Op::wgmma);
      const bool is_atomic = in.op == Op::atomic;
      f.shared_atomics = f.shared_atomics || is_atomic;
      // an atomic without a result does not order other accesses
      if (in.ordered || (is_atomic && in.d >= 0)) f.partial_order = true;
    }
    if (in.space != Space::shared) f.global_shift = std::min(f.global_shift, shift);
  }
  return f;
}

}  // namespace cutegen::ptx
