// SPDX-License-Identifier: Apache-2.0
// Branches, ends, traps, fences, and hints without effect.
#include "base/text.h"
#include "ptx/decode/families.h"

namespace cutegen::ptx {
namespace {

// Inst::sub of a fence: its scope, the wait for the previous launch, or a sleep.
uint8_t fence_kind(const Modifiers& m) {
  const std::string_view base = m.base();
  if (base == "nanosleep") return kSleep;
  if (base == "griddepcontrol") return m.has("wait") ? kDependencyWait : kNoFence;
  if (base != "membar" && base != "fence") return kNoFence;
  return m.has("cta") ? kFenceCta : kFenceGpu;
}

}  // namespace

Result<void> decode_control(Operands& ops, const Statement& s, const Modifiers& m) {
  Inst in;
  in.kind = Kind::branch;
  std::vector<int32_t> reads;
  const std::string_view base = m.base();
  if (base == "bra") {
    CG_CHECK(ops.code.count(s, 1, 1));
    in.op = Op::branch;
    ops.frame.branches.push_back({ops.code.program.code.size(), {s.scope, s.operands[0].text}});
  } else if (base == "brx") {
    CG_CHECK(ops.code.count(s, 2, 2));
    CG_TRY(Slot index, ops.source(s.operands[0], 4, "u32"));
    in.op = Op::branch_index, in.a = index.offset;
    reads.push_back(index.offset);
    ops.frame.branches.push_back({ops.code.program.code.size(), {s.scope, s.operands[1].text}});
  } else if (base == "ret" && ops.frame.depth > 0) {
    in.op = Op::branch;
    ops.frame.returns.push_back(ops.code.program.code.size());
  } else if (base == "ret" || base == "exit") {
    in.op = Op::exit;
  } else if (base == "trap" || base == "brkpt") {
    in.op = Op::trap, in.sub = base == "brkpt";
  } else if (base == "griddepcontrol" &&
             (m.parts.size() != 2 || (m.type() != "wait" && m.type() != "launch_dependents"))) {
    return ops.code.unsupported(sanitize(s.opcode, 80));
  } else {
    in.op = Op::fence, in.kind = Kind::other;
    in.sub = fence_kind(m);
  }
  if (in.op == Op::fence && in.sub == kSleep) {
    CG_CHECK(ops.code.count(s, 1, 1));
    CG_TRY(Slot time, ops.source(s.operands[0], 4, "u32"));
    in.a = time.offset;
    reads.push_back(time.offset);
  }
  ops.code.emit(in, std::move(reads), {});
  return {};
}

}  // namespace cutegen::ptx
