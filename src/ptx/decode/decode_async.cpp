// SPDX-License-Identifier: Apache-2.0
// Asynchronous copies: cp.async and its groups.
#include "base/text.h"
#include "ptx/decode/families.h"
#include "ptx/ops/async_copy.h"

namespace cutegen::ptx {
namespace {

Result<void> async_operands(Operands& ops, const Statement& s, const Modifiers& m, Inst in) {
  const bool hint = m.has("L2::cache_hint");
  CG_CHECK(ops.code.count(s, hint ? 4 : 3, hint ? 5 : 4));
  const Operand& bytes = s.operands[2];
  const bool legal =
      bytes.kind == Operand::Kind::integer &&
      (bytes.value == 16 || (!m.has("cg") && (bytes.value == 4 || bytes.value == 8)));
  if (!legal) return ops.code.wrong("a copy must have 4, 8 or 16 bytes (16 with .cg)");
  Inst to;  // used only to decode the address
  to.space = Space::shared;
  CG_CHECK(ops.address(s.operands[0], to));
  in.op = Op::async_copy, in.kind = Kind::load_global, in.space = Space::global;
  in.size = in.reg_size = 4, in.vec = uint8_t(bytes.value / 4);
  CG_CHECK(ops.address(s.operands[1], in));
  std::copy_n(ops.code.scratch(), 4, in.v);
  std::vector<int32_t> reads{in.a, to.a};
  if (s.operands.size() > (hint ? 4u : 3u)) {
    const Operand& o = s.operands[3];
    auto slot = o.kind == Operand::Kind::word ? ops.find_register(o.text) : std::nullopt;
    if (slot && slot->size == 0) {
      in.e = slot->offset, in.sub = o.negated;
    } else {
      CG_TRY(slot, ops.source(o, 4, "u32"));
      in.c = slot->offset;
    }
    reads.push_back(slot->offset);
  }
  if (to.imm < INT32_MIN || to.imm > INT32_MAX) return ops.code.wrong("the offset is too large");
  in.list = ops.code.keep({to.a, int32_t(to.imm), to.wide_address, ops.code.scratch()[4]});
  ops.code.emit(in, std::move(reads), {});
  return {};
}

}  // namespace

// cp.async.{ca,cg}.shared.global [d], [s], bytes[, src-bytes | ignore-src][, cache-policy]
// cp.async.commit_group; cp.async.wait_group n; cp.async.wait_all
Result<void> decode_async(Operands& ops, const Statement& s, const Modifiers& m) {
  if (m.has("bulk")) return decode_bulk(ops, s, m);
  if (m.has("mbarrier")) return decode_copies_arrive(ops, s, m);
  const std::string_view what = m.parts.size() > 2 && m.parts[1] == "async" ? m.parts[2] : "";
  Inst in;
  if (what == "commit_group" || what == "wait_group" || what == "wait_all") {
    const bool counted = what == "wait_group";
    if (m.parts.size() != 3) return ops.code.unsupported(sanitize(s.opcode, 80));
    CG_CHECK(ops.code.count(s, counted ? 1 : 0, counted ? 1 : 0));
    in.op = what == "commit_group" ? Op::async_commit : Op::async_wait;
    if (counted && (s.operands[0].kind != Operand::Kind::integer || s.operands[0].value < 0))
      return ops.code.wrong("the number of groups must be a number");
    in.imm = counted ? s.operands[0].value : kWaitAll;
    ops.code.emit(in, {}, {});
    return {};
  }
  bool known = what == "ca" || what == "cg", to_shared = false, from_global = false;
  for (size_t i = 3; i < m.parts.size(); ++i) {
    const std::string_view p = m.parts[i];
    if (p == "shared" || p == "shared::cta") {
      to_shared = true;
    } else if (p == "global") {
      from_global = true;
    } else {
      known = known && p.starts_with("L2::");
    }
  }
  if (!known || !to_shared || !from_global) return ops.code.unsupported(sanitize(s.opcode, 80));
  return async_operands(ops, s, m, in);
}

}  // namespace cutegen::ptx
