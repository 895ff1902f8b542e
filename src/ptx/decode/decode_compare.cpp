// SPDX-License-Identifier: Apache-2.0
// Comparisons: setp writes predicates, set writes registers. Both compare single values or pairs.
#include <fmt/format.h>

#include "base/text.h"
#include "ptx/decode/families.h"

namespace cutegen::ptx {
namespace {

struct Comparison {
  std::string form, half_form;  // half_form: to compare one half of a pair
  int combine = -1;             // 0 and, 1 or, 2 xor
  bool known = true;
};

// Reads the parts between the comparison and the types: [.BoolOp][.ftz].
Comparison read_comparison(const Modifiers& m, size_t types) {
  Comparison c;
  bool ftz = false;
  for (size_t i = 2; i + types < m.parts.size(); ++i) {
    const std::string_view p = m.parts[i];
    if (p == "ftz") {
      ftz = true;
    } else if (p == "and" || p == "or" || p == "xor") {
      c.combine = p == "and" ? 0 : p == "or" ? 1 : 2;
    } else {
      c.known = false;
    }
  }
  std::string_view type = m.type();
  const bool pair = type == "f16x2" || type == "bf16x2";
  if (pair) type.remove_suffix(2);
  const std::string name = "setp." + std::string(m.parts[1]) + "." + std::string(type) +
                           (ftz && (type == "f32" || type == "f16") ? "+" : "");
  (pair ? c.half_form : c.form) = name;
  return c;
}

// Splits a pair of 16-bit values into its halves.
Result<std::array<Slot, 2>> split_pair(Operands& ops, const Operand& o) {
  CG_TRY(Slot whole, ops.source(o, 4, "b32"));
  std::array<Slot, 2> out{Slot{.offset = ops.code.allocate(2), .size = 2},
                          Slot{.offset = ops.code.allocate(2), .size = 2}};
  for (size_t i = 0; i < 2; ++i)
    CG_CHECK(ops.code.simple("unpack.b16.b32", out[i], {whole}, int64_t(i) * 16));
  return out;
}

}  // namespace

// d = (a `name` b), combined with `with`; `e` receives the complement, unless its offset is -1.
Result<void> emit_compare(Operands& ops, const std::string& name, int combine, const Operand* with,
                          Slot a, Slot b, Slot d, Slot e) {
  const Form* form = forms().find(name);
  if (!form) return ops.code.unsupported(name);
  Inst in;
  in.masked = form->masked, in.kind = form->kind;
  in.a = a.offset, in.b = b.offset, in.d = d.offset, in.e = e.offset;
  std::vector<int32_t> reads{a.offset, b.offset}, writes;
  if (with) {
    CG_TRY(Slot c, ops.predicate(*with));
    in.c = c.offset, in.imm = with->negated, in.sub = uint8_t(combine);
    reads.push_back(c.offset);
  }
  if (d.offset >= 0) writes.push_back(d.offset);
  if (e.offset >= 0) writes.push_back(e.offset);
  ops.code.emit(in, std::move(reads), std::move(writes));
  return {};
}

// setp.CMP[.BoolOp][.ftz].type p[|q], a, b[, [!]c]
Result<void> decode_compare(Operands& ops, const Statement& s, const Modifiers& m) {
  if (m.parts.size() < 3) return ops.code.unsupported(sanitize(s.opcode, 80));
  const Comparison c = read_comparison(m, 1);
  const Form* form = forms().find(c.form + c.half_form);
  if (!c.known || !form) return ops.code.unsupported(sanitize(s.opcode, 80));
  CG_CHECK(ops.code.count(s, c.combine < 0 ? 3 : 4, c.combine < 0 ? 3 : 4));
  const Operand* with = c.combine < 0 ? nullptr : &s.operands[3];
  const Operand& to = s.operands[0];
  const std::vector<Operand> both =
      to.kind == Operand::Kind::vector ? to.items : std::vector<Operand>{to};
  Slot slots[2];
  for (size_t i = 0; i < both.size() && i < 2; ++i) {
    if (both[i].kind == Operand::Kind::sink) continue;
    CG_TRY(slots[i], ops.destination(both[i], 0));
  }
  if (c.form.empty()) {  // a predicate for each half
    CG_TRY(auto a, split_pair(ops, s.operands[1]));
    CG_TRY(auto b, split_pair(ops, s.operands[2]));
    const Slot first = with ? Slot{.offset = ops.code.allocate(0), .size = 0}
                            : slots[0];  // `with` may be overwritten
    CG_CHECK(emit_compare(ops, c.half_form, c.combine, with, a[0], b[0], first, {}));
    CG_CHECK(emit_compare(ops, c.half_form, c.combine, with, a[1], b[1], slots[1], {}));
    return with && slots[0].offset >= 0 ? ops.code.simple("mov.pred", slots[0], {first})
                                        : Result<void>{};
  }
  CG_TRY(Slot a, ops.source(s.operands[1], operand_size(form->signature[1]), m.type()));
  CG_TRY(Slot b, ops.source(s.operands[2], operand_size(form->signature[2]), m.type()));
  return emit_compare(ops, c.form, c.combine, with, a, b, slots[0], slots[1]);
}

// set.CMP[.BoolOp][.ftz].dtype.stype d, a, b[, [!]c]: into a register (all ones, or 1.0).
Result<void> decode_set(Operands& ops, const Statement& s, const Modifiers& m) {
  const size_t n = m.parts.size();
  if (n < 4) return ops.code.unsupported(sanitize(s.opcode, 80));
  const Comparison c = read_comparison(m, 2);
  const std::string_view to = m.parts[n - 2];
  const Form* form = forms().find(c.form + c.half_form);
  const bool is_float =
      to == "f16" || to == "bf16" || to == "f32" || to == "f16x2" || to == "bf16x2";
  const bool is_int = to == "u16" || to == "s16" || to == "u32" || to == "s32";
  if (!c.known || !form || !(is_float || is_int) || (c.form.empty() && to != m.type()))
    return ops.code.unsupported(sanitize(s.opcode, 80));
  CG_CHECK(ops.code.count(s, c.combine < 0 ? 3 : 4, c.combine < 0 ? 3 : 4));
  const Operand* with = c.combine < 0 ? nullptr : &s.operands[3];
  const uint64_t one = is_int         ? ~uint64_t{0}
                       : to == "f32"  ? 0x3f800000u
                       : to[0] == 'b' ? 0x3f80u
                                      : 0x3c00u;
  if (c.form.empty()) {
    CG_TRY(auto a, split_pair(ops, s.operands[1]));
    CG_TRY(auto b, split_pair(ops, s.operands[2]));
    CG_TRY(Slot d, ops.destination(s.operands[0], 4));
    Slot halves[2] = {{.offset = ops.code.allocate(2), .size = 2},
                      {.offset = ops.code.allocate(2), .size = 2}};
    for (size_t i = 0; i < 2; ++i) {
      Slot p{.offset = ops.code.allocate(0), .size = 0};
      CG_CHECK(emit_compare(ops, c.half_form, c.combine, with, a[i], b[i], p, {}));
      CG_CHECK(ops.code.simple("selp.b16", halves[i],
                               {ops.code.constant(one, 2), ops.code.constant(0, 2), p}));
    }
    return ops.code.simple("pack.b32", d, {halves[0], halves[1]});
  }
  CG_TRY(Slot a, ops.source(s.operands[1], operand_size(form->signature[1]), m.type()));
  CG_TRY(Slot b, ops.source(s.operands[2], operand_size(form->signature[2]), m.type()));
  const int size = int(type_bytes(to));
  CG_TRY(Slot d, ops.destination(s.operands[0], size));
  Slot p{.offset = ops.code.allocate(0), .size = 0};
  CG_CHECK(emit_compare(ops, c.form, c.combine, with, a, b, p, {}));
  return ops.code.simple(fmt::format("selp.b{}", 8 * size), d,
                         {ops.code.constant(one, size), ops.code.constant(0, size), p});
}

}  // namespace cutegen::ptx
