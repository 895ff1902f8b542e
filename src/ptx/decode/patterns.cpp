// SPDX-License-Identifier: Apache-2.0
#include "ptx/decode/patterns.h"

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

// A value may pass between threads, other than between the lanes of a warp in one instruction.
bool passes_values(const Inst& in) {
  const bool shared = in.space == Space::shared && (in.op == Op::load || in.op == Op::store);
  return in.op == Op::barrier || in.op == Op::atomic || in.op == Op::async_copy || in.ordered ||
         shared || in.op == Op::load_matrix || in.op == Op::store_matrix ||
         (in.op == Op::fence && (in.sub == kFenceGpu || in.sub == kFenceCta));
}

// By pc: how many backward branches span it.
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

}  // namespace cutegen::ptx
