// SPDX-License-Identifier: Apache-2.0
// Loads, stores and atomics.
#include <array>

#include "base/text.h"
#include "ptx/decode/families.h"
#include "ptx/ops/atomic.h"

namespace cutegen::ptx {
namespace {

// Applies one part of the opcode: space, order, vector, hint. False: unknown.
bool read_part(std::string_view p, Inst& in) {
  static constexpr std::string_view ignored[] = {
      "weak", "gpu", "sys", "cta", "cluster", "nc",      "ca",    "cg",
      "cs",   "lu",  "cv",  "wb",  "wt",      "unified", "noftz", "entry"};
  static constexpr std::string_view ordered[] = {"volatile", "relaxed", "acquire",
                                                 "release",  "acq_rel", "mmio"};
  if (std::find(std::begin(ordered), std::end(ordered), p) != std::end(ordered)) {
    in.ordered = true;
    in.releases = in.releases || p == "release" || p == "acq_rel";
    return true;
  }
  if (p == "global")
    in.space = Space::global;
  else if (p == "shared" || p == "shared::cta" || p == "shared::cluster")
    in.space = Space::shared;
  else if (p == "local")
    in.space = Space::local;
  else if (p == "param" || p == "param::entry" || p == "param::func")
    in.space = Space::param;
  else if (p == "const")
    in.space = Space::constant;
  else if (p == "v2")
    in.vec = 2;
  else if (p == "v4")
    in.vec = 4;
  else if (p.starts_with("L1::") || p.starts_with("L2::") || p.starts_with("level::"))
    return true;
  else
    return std::find(std::begin(ignored), std::end(ignored), p) != std::end(ignored);
  return true;
}

Kind memory_kind(Space space, bool store) {
  switch (space) {
    case Space::shared:
      return store ? Kind::store_shared : Kind::load_shared;
    case Space::local:
      return store ? Kind::store_local : Kind::load_local;
    case Space::param:
    case Space::constant:
      return Kind::load_const;
    default:
      return store ? Kind::store_global : Kind::load_global;
  }
}

// A release of CTA scope orders nothing for other CTAs.
void keep_to_scope(const Modifiers& m, Inst& in) {
  if (m.has("cta")) in.releases = false;
}

Result<void> memory_registers(Operands& ops, const Operand& o, Inst& in,
                              std::vector<int32_t>& slots) {
  const bool is_vector = o.kind == Operand::Kind::vector;
  const std::vector<Operand> items = is_vector ? o.items : std::vector<Operand>{o};
  if (items.size() != in.vec) return ops.code.wrong("the vector has the wrong length");
  const bool store = in.op == Op::store;
  for (size_t i = 0; i < items.size(); ++i) {
    if (items[i].kind == Operand::Kind::sink && !store) continue;
    auto slot =
        items[i].kind == Operand::Kind::word ? ops.find_register(items[i].text) : std::nullopt;
    if (!slot && store) {
      CG_TRY(slot, ops.source(items[i], in.size, ""));
    }
    if (!slot || slot->size < in.size)
      return ops.code.wrong("the register is too small for the type");
    if (in.reg_size != 0 && in.reg_size != slot->size)
      return ops.code.wrong("the registers differ in size");
    in.reg_size = uint8_t(slot->size);
    in.v[i] = slot->offset;
    slots.push_back(slot->offset);
  }
  if (in.reg_size == 0) in.reg_size = in.size;
  return {};
}

// red and atom on vectors: one operation per element, because the ISA promises no more.
Result<void> atomic_vector(Operands& ops, const Statement& s, const Modifiers& m, const Inst& one) {
  const bool returns = m.base() == "atom";
  const size_t first = returns ? 1 : 0;
  CG_CHECK(ops.code.count(s, first + 2, first + 3));
  const Operand& values = s.operands[first + 1];
  const bool fits = values.kind == Operand::Kind::vector && values.items.size() == one.vec &&
                    (!returns || (s.operands[0].kind == Operand::Kind::vector &&
                                  s.operands[0].items.size() == one.vec));
  if (!fits) return ops.code.wrong("the vector has the wrong length");
  std::vector<Slot> from;
  for (const Operand& o : values.items) {
    CG_TRY(Slot slot, ops.source(o, one.size, ""));
    if (returns) {  // a destination may be a later source
      const Slot copy{.offset = ops.code.allocate(one.size), .size = one.size};
      CG_CHECK(ops.code.simple(one.size == 2 ? "mov.b16" : "mov.b32", copy, {slot}));
      slot = copy;
    }
    from.push_back(slot);
  }
  for (size_t k = 0; k < one.vec; ++k) {
    Inst in = one;
    in.vec = 1;
    CG_CHECK(ops.address(s.operands[first], in));
    in.imm += int64_t(k) * one.size;
    in.b = from[k].offset;
    std::vector<int32_t> writes;
    if (returns) {
      CG_TRY(Slot d, ops.destination(s.operands[0].items[k], one.size));
      in.d = d.offset;
      writes.push_back(in.d);
    }
    ops.code.emit(in, {in.a, in.b}, std::move(writes));
  }
  return {};
}

}  // namespace

Result<void> decode_memory(Operands& ops, const Statement& s, const Modifiers& m) {
  if (m.base() == "st" && m.parts.size() > 1 && m.parts[1] == "async")
    return decode_deposit(ops, s, m);
  Inst in;
  in.op = m.base() == "st" ? Op::store : Op::load;
  bool known = m.parts.size() >= 2 && type_bytes(m.type()) > 0;
  for (size_t i = 1; i + 1 < m.parts.size(); ++i) known = read_part(m.parts[i], in) && known;
  keep_to_scope(m, in);
  const bool store = in.op == Op::store;
  const std::string_view base = s.operands.size() < 2 ? "" : s.operands[store ? 0 : 1].text;
  if (in.space == Space::param && ops.parameter_place(base)) in.space = Space::local;
  if (store && (in.space == Space::param || in.space == Space::constant)) known = false;
  if (!known) return ops.code.unsupported(sanitize(s.opcode, 80));
  CG_CHECK(ops.code.count(s, 2, 3));  // a cache hint may follow
  in.size = uint8_t(type_bytes(m.type()));
  in.sign = m.type()[0] == 's';
  in.kind = memory_kind(in.space, store);
  std::vector<int32_t> reads, writes;
  CG_CHECK(memory_registers(ops, s.operands[store ? 1 : 0], in, store ? reads : writes));
  CG_CHECK(ops.address(s.operands[store ? 0 : 1], in));
  reads.push_back(in.a);
  ops.code.emit(in, std::move(reads), std::move(writes));
  return {};
}

// createpolicy: a cache policy says how long to keep a line. It is accepted and has no effect.
Result<void> decode_policy(Operands& ops, const Statement& s, const Modifiers& m) {
  if (m.parts.size() < 3 || m.type() != "b64") return ops.code.unsupported(sanitize(s.opcode, 80));
  CG_CHECK(ops.code.count(s, 1, 4));
  CG_TRY(Slot d, ops.destination(s.operands[0], 8));
  return ops.code.simple("mov.b64", d, {ops.code.constant(0, 8)});
}

Result<void> decode_atomic(Operands& ops, const Statement& s, const Modifiers& m) {
  if (m.base() == "red" && m.parts.size() > 1 && m.parts[1] == "async")
    return decode_deposit(ops, s, m);
  Inst in;
  in.op = Op::atomic, in.kind = Kind::atomic;
  std::optional<AtomicOp> op;
  std::optional<AtomicType> type;
  std::string_view of;  // the type, which may come before the operation: atom.global.v2.f32.add
  bool known = true;
  for (size_t i = 1; i < m.parts.size(); ++i) {
    if (auto found = atomic_op(m.parts[i])) {
      op = found;
    } else if (auto t = atomic_type(m.parts[i])) {
      type = t, of = m.parts[i];
    } else if (m.parts[i] == "v8") {
      in.vec = 8;
    } else {
      known = read_part(m.parts[i], in) && known;
    }
  }
  keep_to_scope(m, in);
  if (in.space != Space::generic && in.space != Space::global && in.space != Space::shared)
    known = false;
  const bool vector = in.vec > 1;
  if (!known || !op || !type ||
      !(vector ? atomic_vector_known(*op, *type, in.vec) : atomic_known(*op, *type)))
    return ops.code.unsupported(sanitize(s.opcode, 80));
  in.size = uint8_t(type_bytes(of));
  in.sub = uint8_t(*op), in.e = int32_t(*type);
  in.flops = *op == AtomicOp::add && of.find('f') != std::string_view::npos ? 1 : 0;
  if (vector) return atomic_vector(ops, s, m, in);
  const bool returns = m.base() == "atom", swap = *op == AtomicOp::cas;
  const size_t first = returns ? 1 : 0, wanted = first + (swap ? 3 : 2);
  CG_CHECK(ops.code.count(s, wanted, wanted + 1));
  std::vector<int32_t> reads, writes;
  if (returns) {
    CG_TRY(Slot d, ops.destination(s.operands[0], in.size));
    in.d = d.offset;
    writes.push_back(d.offset);
  }
  CG_CHECK(ops.address(s.operands[first], in));
  CG_TRY(Slot b, ops.source(s.operands[first + 1], in.size, of));
  in.b = b.offset;
  reads = {in.a, in.b};
  if (swap) {
    CG_TRY(Slot c, ops.source(s.operands[first + 2], in.size, of));
    in.c = c.offset;
    reads.push_back(in.c);
  }
  ops.code.emit(in, std::move(reads), std::move(writes));
  return {};
}

}  // namespace cutegen::ptx
