// SPDX-License-Identifier: Apache-2.0
#include "ptx/decode/patterns.h"

#include <unordered_map>
#include <unordered_set>

#include "ptx/ops/atomic.h"

namespace cutegen::ptx {
namespace {

bool may_be_global(const Inst& in) {
  return in.space == Space::global || in.space == Space::generic;
}

bool is_integer(AtomicType type) {
  return type == AtomicType::u32 || type == AtomicType::s32 || type == AtomicType::u64 ||
         type == AtomicType::s64;
}

bool pulls(const Inst& in) {
  return in.op == Op::atomic && in.d >= 0 && may_be_global(in) &&
         AtomicOp(in.sub) == AtomicOp::add && is_integer(AtomicType(in.e));
}

// Whether threads may exchange values by the instruction. Exchanges within one instruction of a
// warp do not count.
bool passes_values(const Inst& in) {
  const bool shared = in.space == Space::shared && (in.op == Op::load || in.op == Op::store);
  return in.op == Op::barrier || in.op == Op::cluster_barrier || in.op == Op::atomic ||
         in.op == Op::async_copy || in.op == Op::mbarrier || in.op == Op::bulk_copy || in.ordered ||
         shared || in.op == Op::load_matrix || in.op == Op::store_matrix ||
         (in.op == Op::fence && (in.sub == kFenceGpu || in.sub == kFenceCta));
}

// By pc: the number of backward branches that jump over it.
std::vector<int> loops_of(const Program& p) {
  std::vector<int> change(p.code.size() + 1);
  auto span = [&](int32_t target, size_t pc) {
    if (target < 0 || size_t(target) > pc) return;
    ++change[size_t(target)], --change[pc + 1];
  };
  for (size_t pc = 0; pc < p.code.size(); ++pc) {
    const Inst& in = p.code[pc];
    if (in.op == Op::branch) span(in.target, pc);
    if (in.op != Op::branch_index) continue;
    for (int32_t target : p.tables[size_t(in.target)]) span(target, pc);
  }
  for (size_t pc = 1; pc < change.size(); ++pc) change[pc] += change[pc - 1];
  return change;
}

using Slots = std::unordered_set<int32_t>;

Slots operands_of_products(const Program& p) {
  Slots slots;
  for (const Inst& in : p.code) {
    if (in.op != Op::wgmma || in.sub != kWgmmaMultiply) continue;
    const WgmmaOp& op = p.wgmmas[size_t(in.target)];
    slots.insert(in.list, in.list + op.d + (op.a_in_registers ? op.a() : 0));
  }
  return slots;
}

// Adds the registers that receive copies of `slots`, directly or through other copies.
void add_copies(const Program& p, Slots& slots) {
  std::unordered_multimap<int32_t, int32_t> copies;
  for (size_t pc = 0; pc < p.code.size(); ++pc) {
    const auto& range = p.effect_of[pc];
    if (is_copy(p, pc)) copies.emplace(p.effects[range.begin], p.effects[range.writes]);
  }
  std::vector<int32_t> work(slots.begin(), slots.end());
  while (!work.empty()) {
    const auto [first, last] = copies.equal_range(work.back());
    work.pop_back();
    for (auto it = first; it != last; ++it)
      if (slots.insert(it->second).second) work.push_back(it->second);
  }
}

}  // namespace

void mark_patterns(Program& p) {
  const std::vector<int> loops = loops_of(p);
  for (size_t pc = 0; pc < p.code.size(); ++pc) {
    Inst& in = p.code[pc];
    p.communicates = p.communicates || passes_values(in);
    if (loops[pc] == 0) continue;
    in.pulls = pulls(in);
    p.pulls = p.pulls || in.pulls;
    p.waits = p.waits || (in.op == Op::load && in.ordered && may_be_global(in));
  }
}

bool is_copy(const Program& p, size_t pc) {
  const auto& range = p.effect_of[pc];
  const Inst& in = p.code[pc];
  return in.op == Op::alu && in.kind == Kind::move && in.guard < 0 &&
         range.writes - range.begin == 1 && range.end - range.writes == 1;
}

void mark_wgmma_registers(Program& p) {
  if (p.wgmmas.empty()) return;
  Slots slots = operands_of_products(p);
  add_copies(p, slots);
  for (size_t pc = 0; pc < p.code.size(); ++pc) {
    const auto& range = p.effect_of[pc];
    for (uint32_t i = range.begin; i < range.end; ++i)
      if (slots.contains(p.effects[i])) p.code[pc].watched = true;
  }
}

}  // namespace cutegen::ptx
