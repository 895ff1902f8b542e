// SPDX-License-Identifier: Apache-2.0
// Moves of registers, vectors and special registers.
#include <fmt/format.h>

#include "base/text.h"
#include "ptx/decode/families.h"

namespace cutegen::ptx {
namespace {

// mov.b64 d, {a, b} and the like; the least significant part comes first.
Result<void> pack(Operands& ops, const Operand& to, const std::vector<Operand>& from, int whole) {
  const int part = whole / int(from.size());
  CG_TRY(Slot d, ops.destination(to, whole));
  std::vector<Slot> parts;
  for (const Operand& o : from) {
    CG_TRY(Slot slot, ops.source(o, part, ""));
    parts.push_back(slot);
  }
  if (parts.size() == 4) {
    Slot low{.offset = ops.code.allocate(whole / 2), .size = whole / 2},
        high{.offset = ops.code.allocate(whole / 2), .size = whole / 2};
    std::string form = fmt::format("pack.b{}", 4 * whole);
    CG_CHECK(ops.code.simple(form, low, {parts[0], parts[1]}));
    CG_CHECK(ops.code.simple(form, high, {parts[2], parts[3]}));
    parts = {low, high};
  }
  return ops.code.simple(fmt::format("pack.b{}", 8 * whole), d, parts);
}

Result<void> unpack(Operands& ops, const std::vector<Operand>& to, const Operand& from, int whole) {
  const int part = whole / int(to.size());
  CG_TRY(Slot a, ops.source(from, whole, ""));
  for (size_t i = 0; i < to.size(); ++i) {
    if (to[i].kind == Operand::Kind::sink) continue;
    CG_TRY(Slot d, ops.destination(to[i], part));
    CG_CHECK(ops.code.simple(fmt::format("unpack.b{}.b{}", 8 * part, 8 * whole), d, {a},
                             int64_t(i) * part * 8));
  }
  return {};
}

}  // namespace

Result<void> decode_move(Operands& ops, const Statement& s, const Modifiers& m) {
  CG_CHECK(ops.code.count(s, 2, 2));
  const Operand &to = s.operands[0], &from = s.operands[1];
  const int whole = int(type_bytes(m.type()));
  if (m.parts.size() != 2 || (whole == 0 && m.type() != "pred"))
    return ops.code.unsupported(sanitize(s.opcode, 80));
  auto parts_fit = [&](const Operand& o) {
    size_t n = o.items.size();
    return (n == 2 || n == 4) && whole / int(n) >= 2;
  };
  if (from.kind == Operand::Kind::vector) {
    return parts_fit(from) ? pack(ops, to, from.items, whole)
                           : ops.code.unsupported("mov of bytes");
  }
  if (to.kind == Operand::Kind::vector) {
    return parts_fit(to) ? unpack(ops, to.items, from, whole)
                         : ops.code.unsupported("mov of bytes");
  }
  const bool is_clock = from.text == "%clock" || from.text == "%clock64" ||
                        from.text == "%globaltimer" || from.text == "%clock_hi" ||
                        from.text == "%globaltimer_lo";
  if (is_clock) {
    CG_TRY(Slot d, ops.destination(to, whole));
    Inst in;
    in.op = Op::clock, in.kind = Kind::move, in.d = d.offset, in.reg_size = uint8_t(d.size);
    ops.code.emit(in, {}, {d.offset});
    return {};
  }
  if (whole == 0 && from.text == "%is_explicit_cluster") {
    // A plan gives a size only to clusters of several CTAs.
    CG_TRY(Slot d, ops.destination(to, 0));
    return emit_compare(ops, "setp.gt.u32", -1, nullptr,
                        ops.code.special(Special::cluster_nctarank), ops.code.constant(1, 4), d,
                        {});
  }
  if (from.kind == Operand::Kind::word && from.text.starts_with('%') &&
      !ops.find_register(from.text) && !ops.find_special(from.text)) {
    return ops.code.unsupported("special register " + sanitize(from.text, 60));
  }
  Slot a;
  if (whole == 0) {
    CG_TRY(a, ops.predicate(from));
  } else {
    CG_TRY(a, ops.source(from, whole, m.type()));
  }
  CG_TRY(Slot d, ops.destination(to, whole));
  return ops.code.simple(whole == 0 ? "mov.pred" : "mov." + bits_type(m.type()), d, {a});
}

}  // namespace cutegen::ptx
