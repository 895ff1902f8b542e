// SPDX-License-Identifier: Apache-2.0
// Instructions that synchronise the lanes of a warp or the warps of a CTA.
#include "base/text.h"
#include "ptx/decode/families.h"
#include "ptx/ops/warp_ops.h"

namespace cutegen::ptx {

// shfl.sync.mode.b32 d[|p], a, b, c, membermask
Result<void> decode_shuffle(Operands& ops, const Statement& s, const Modifiers& m) {
  Inst in;
  in.op = Op::shuffle, in.kind = Kind::shuffle;
  const bool known = m.parts.size() == 4 && m.parts[1] == "sync" && m.type() == "b32";
  const Form* form = known ? forms().find("shfl." + std::string(m.parts[2]) + ".b32") : nullptr;
  if (!form) return ops.code.unsupported(sanitize(s.opcode, 80));
  in.masked = form->masked;
  CG_CHECK(ops.code.count(s, 5, 5));
  CG_TRY(Slot a, ops.source(s.operands[1], 4, "b32"));
  CG_TRY(Slot b, ops.source(s.operands[2], 4, "b32"));
  CG_TRY(Slot c, ops.source(s.operands[3], 4, "b32"));
  CG_TRY(Slot members, ops.source(s.operands[4], 4, "b32"));
  in.a = a.offset, in.b = b.offset, in.c = c.offset, in.v[0] = members.offset;
  std::vector<int32_t> writes;
  const Operand& to = s.operands[0];
  if (to.kind == Operand::Kind::vector && to.items.size() == 2) {
    CG_TRY(Slot d, ops.destination(to.items[0], 4));
    CG_TRY(Slot p, ops.destination(to.items[1], 0));
    in.d = d.offset, in.e = p.offset;
    writes = {in.d, in.e};
  } else {
    CG_TRY(Slot d, ops.destination(to, 4));
    in.d = d.offset;
    writes = {in.d};
  }
  ops.code.emit(in, {in.a, in.b, in.c, in.v[0]}, std::move(writes));
  return {};
}

// vote.sync.{all,any,uni}.pred p, q, mask; vote.sync.ballot.b32 d, q, mask
Result<void> decode_vote(Operands& ops, const Statement& s, const Modifiers& m) {
  Inst in;
  in.op = Op::vote, in.kind = Kind::vote;
  const std::string_view mode = m.parts.size() == 4 && m.parts[1] == "sync" ? m.parts[2] : "";
  if (mode == "all")
    in.sub = kVoteAll;
  else if (mode == "any")
    in.sub = kVoteAny;
  else if (mode == "uni")
    in.sub = kVoteUniform;
  else if (mode == "ballot")
    in.sub = kVoteBallot;
  else
    return ops.code.unsupported(sanitize(s.opcode, 80));
  CG_CHECK(ops.code.count(s, 3, 3));
  CG_TRY(Slot a, ops.predicate(s.operands[1]));
  CG_TRY(Slot members, ops.source(s.operands[2], 4, "b32"));
  CG_TRY(Slot d, ops.destination(s.operands[0], in.sub == kVoteBallot ? 4 : 0));
  in.a = a.offset, in.v[0] = members.offset, in.d = d.offset, in.imm = s.operands[1].negated;
  ops.code.emit(in, {in.a, in.v[0]}, {in.d});
  return {};
}

Result<void> decode_collective(Operands& ops, const Statement& s, const Modifiers& m) {
  Inst in;
  in.kind = Kind::vote;
  if (m.base() == "activemask") {
    CG_CHECK(ops.code.count(s, 1, 1));
    CG_TRY(Slot d, ops.destination(s.operands[0], 4));
    in.op = Op::active_mask, in.d = d.offset;
    ops.code.emit(in, {}, {in.d});
    return {};
  }
  if (m.base() == "elect") {
    CG_CHECK(ops.code.count(s, 2, 2));
    const Operand& to = s.operands[0];
    if (to.kind != Operand::Kind::vector || to.items.size() != 2)
      return ops.code.wrong("elect needs d|p");
    CG_TRY(Slot d, ops.destination(to.items[0], 4));
    CG_TRY(Slot p, ops.destination(to.items[1], 0));
    CG_TRY(Slot members, ops.source(s.operands[1], 4, "b32"));
    in.op = Op::elect, in.d = d.offset, in.e = p.offset, in.v[0] = members.offset;
    ops.code.emit(in, {in.v[0]}, {in.d, in.e});
    return {};
  }
  CG_CHECK(ops.code.count(s, 3, 3));
  const bool is_match = m.base() == "match";
  const int size = int(type_bytes(m.type()));
  // match.any.sync.b32, but redux.sync.add.s32
  const bool known = m.parts.size() == 4 && m.parts[is_match ? 2 : 1] == "sync";
  if (!known) return ops.code.unsupported(sanitize(s.opcode, 80));
  if (is_match) {
    const std::string_view mode = m.parts[1];
    in.op = Op::match, in.sub = mode == "all" ? 1 : 0;
    if ((size != 4 && size != 8) || (mode != "all" && mode != "any"))
      return ops.code.unsupported(sanitize(s.opcode, 80));
  } else {
    auto op = reduce_op(m.parts[2], m.type());
    if (!op) return ops.code.unsupported(sanitize(s.opcode, 80));
    in.op = Op::warp_reduce, in.sub = uint8_t(*op);
  }
  in.reg_size = uint8_t(size);
  CG_TRY(Slot a, ops.source(s.operands[1], size, m.type()));
  CG_TRY(Slot members, ops.source(s.operands[2], 4, "b32"));
  in.a = a.offset, in.v[0] = members.offset;
  std::vector<int32_t> writes;
  const Operand& to = s.operands[0];
  const bool pair = to.kind == Operand::Kind::vector && to.items.size() == 2;
  CG_TRY(Slot d, ops.destination(pair ? to.items[0] : to, 4));
  in.d = d.offset;
  writes.push_back(in.d);
  if (pair) {
    CG_TRY(Slot p, ops.destination(to.items[1], 0));
    in.e = p.offset;
    writes.push_back(in.e);
  }
  ops.code.emit(in, {in.a, in.v[0]}, std::move(writes));
  return {};
}

// bar[.cta].{sync,arrive,red}, barrier...; bar.warp.sync mask
Result<void> decode_barrier(Operands& ops, const Statement& s, const Modifiers& m) {
  Inst in;
  in.op = Op::barrier, in.kind = Kind::barrier;
  in.aligned = m.base() == "bar" || m.has("aligned");
  if (m.has("warp")) {
    CG_CHECK(ops.code.count(s, 1, 1));
    CG_TRY(Slot members, ops.source(s.operands[0], 4, "b32"));
    in.op = Op::warp_sync, in.v[0] = members.offset;
    ops.code.emit(in, {in.v[0]}, {});
    return {};
  }
  if (m.has("cluster")) return decode_cluster_barrier(ops, s, m);
  const bool red = m.has("red");
  in.sub = m.has("arrive") ? kBarrierArrive
           : !red          ? kBarrierSync
           : m.has("popc") ? kBarrierCount
           : m.has("and")  ? kBarrierAnd
                           : kBarrierOr;
  const size_t n = s.operands.size(), first = red ? 1 : 0, most = first + (red ? 3 : 2);
  CG_CHECK(ops.code.count(s, first + (red ? 2 : 1), most));
  std::vector<int32_t> reads, writes;
  CG_TRY(Slot id, ops.source(s.operands[first], 4, "u32"));
  in.a = id.offset;
  reads.push_back(in.a);
  const bool has_count = n - first - (red ? 1 : 0) == 2;
  if (has_count) {
    CG_TRY(Slot threads, ops.source(s.operands[first + 1], 4, "u32"));
    in.b = threads.offset;
    reads.push_back(in.b);
  }
  if (red) {
    CG_TRY(Slot p, ops.predicate(s.operands[n - 1]));
    CG_TRY(Slot d, ops.destination(s.operands[0], in.sub == kBarrierCount ? 4 : 0));
    in.c = p.offset, in.d = d.offset, in.imm = s.operands[n - 1].negated;
    reads.push_back(in.c);
    writes.push_back(in.d);
  }
  ops.code.emit(in, std::move(reads), std::move(writes));
  return {};
}

}  // namespace cutegen::ptx
