// SPDX-License-Identifier: Apache-2.0
// Arithmetic and moves.
#include <fmt/format.h>

#include "base/text.h"
#include "ptx/decode/families.h"

namespace cutegen::ptx {
namespace {

struct Flags {
  std::string name;  // the opcode without rounding, flags and type
  uint8_t sub = 0;
  bool odd = false;  // an unknown modifier
};

Flags read_flags(const Modifiers& m, bool is_half) {
  Flags f;
  f.name = std::string(m.base());
  for (size_t i = 1; i + 1 < m.parts.size(); ++i) {
    const std::string_view p = m.parts[i];
    if (p == "rn" || p == "approx" || p == "full" || p == "uni") continue;
    if (p == "rz")
      f.sub |= kRoundZero;
    else if (p == "rm")
      f.sub |= kRoundDown;
    else if (p == "rp")
      f.sub |= kRoundUp;
    else if (p == "ftz")
      f.sub |= kFtz;
    else if (p == "sat" && m.type().starts_with('f'))
      f.sub |= kSaturate;
    else if (p == "NaN" && !is_half)
      f.sub |= kNaN;
    else
      f.name += "." + std::string(p);
  }
  return f;
}

Result<void> apply_form(Operands& ops, const Statement& s, const Form& form, uint8_t sub,
                        std::string_view type) {
  const std::string& letters = form.signature;
  size_t wanted = letters.size();
  const bool lut = s.opcode.starts_with("lop3");
  CG_CHECK(ops.code.count(s, wanted + (lut ? 1 : 0), wanted + (lut ? 1 : 0)));
  Inst in;
  in.full = form.full, in.masked = form.masked, in.kind = form.kind, in.flops = form.flops,
  in.sub = sub;
  if (lut) {
    if (s.operands[wanted].kind != Operand::Kind::integer)
      return ops.code.wrong("the table of lop3 must be a number");
    in.imm = s.operands[wanted].value;
  }
  std::vector<int32_t> reads;
  int32_t* fields[] = {&in.a, &in.b, &in.c, &in.e};
  for (size_t i = 1; i < wanted; ++i) {
    Slot slot;
    if (letters[i] == 'p') {
      CG_TRY(slot, ops.predicate(s.operands[i]));
    } else {
      CG_TRY(slot, ops.source(s.operands[i], operand_size(letters[i]), type));
    }
    *fields[i - 1] = slot.offset;
    reads.push_back(slot.offset);
  }
  CG_TRY(Slot d, ops.destination(s.operands[0], operand_size(letters[0])));
  in.d = d.offset;
  const bool gives_carry = s.opcode.find(".cc") != std::string_view::npos;
  const bool takes_carry =
      s.opcode.starts_with("addc") || s.opcode.starts_with("subc") || s.opcode.starts_with("madc");
  if (gives_carry || takes_carry) {
    in.e = ops.code.carry().offset;
    if (takes_carry) reads.push_back(in.e);
    ops.code.emit(in, std::move(reads),
                  gives_carry ? std::vector<int32_t>{in.d, in.e} : std::vector<int32_t>{in.d});
  } else {
    ops.code.emit(in, std::move(reads), {in.d});
  }
  return {};
}

// lop3.BoolOp.b32 d|p, a, b, c, table, q: p is (d != 0) BoolOp q.
Result<void> table_logic(Operands& ops, const Statement& s, const Modifiers& m) {
  CG_CHECK(ops.code.count(s, 6, 6));
  const Operand& to = s.operands[0];
  if (to.kind != Operand::Kind::vector || to.items.size() != 2)
    return ops.code.wrong("lop3 needs d|p");
  if (s.operands[4].kind != Operand::Kind::integer)
    return ops.code.wrong("the table of lop3 must be a number");
  std::vector<Slot> sources;
  for (size_t i = 1; i < 4; ++i) {
    CG_TRY(Slot slot, ops.source(s.operands[i], 4, "b32"));
    sources.push_back(slot);
  }
  CG_TRY(Slot d, ops.destination(to.items[0], 4));
  CG_TRY(Slot p, ops.destination(to.items[1], 0));
  CG_CHECK(ops.code.simple("lop3.b32", d, sources, s.operands[4].value));
  return emit_compare(ops, "setp.ne.b32", m.parts[1] == "and" ? 0 : 1, &s.operands[5], d,
                      ops.code.constant(0, 4), p, {});
}

}  // namespace

std::string bits_type(std::string_view type) {
  const int64_t n = type_bytes(type);
  return n == 0 ? std::string(type) : fmt::format("b{}", 8 * n);
}

int operand_size(char letter) {
  switch (letter) {
    case 'p':
      return 0;
    case 'b':
      return 1;
    case 'h':
    case 'H':
      return 2;
    case 'd':
    case 'F':
      return 8;
    default:
      return 4;
  }
}

// Decodes a form without flags, by its name in the table.
Result<void> decode_form(Operands& ops, const Statement& s, const std::string& name) {
  const Form* form = forms().find(name);
  if (!form) return ops.code.unsupported(sanitize(s.opcode, 80));
  return apply_form(ops, s, *form, 0, "");
}

Result<void> decode_arithmetic(Operands& ops, const Statement& s, const Modifiers& m) {
  if (m.base() == "lop3" && m.parts.size() == 3 && (m.parts[1] == "or" || m.parts[1] == "and"))
    return table_logic(ops, s, m);
  const std::string_view type = m.type();
  const bool is_half = type == "f16" || type == "bf16" || type == "f16x2" || type == "bf16x2";
  const Flags flags = read_flags(m, is_half);
  std::string name = flags.name + "." + std::string(type);
  const Form* form = nullptr;
  if (m.base() == "prmt" && m.parts.size() == 3)
    return decode_form(ops, s, "prmt." + std::string(m.parts[2]) + "." + std::string(m.parts[1]));
  if (m.base() == "slct" && m.parts.size() == 3)
    return decode_form(ops, s, "slct." + bits_type(m.parts[1]) + "." + std::string(type));
  if (s.opcode == "rcp.approx.ftz.f64" || s.opcode == "rsqrt.approx.ftz.f64")
    return decode_form(ops, s, std::string(m.base()) + ".gross.f64");
  if (flags.sub == 0) {
    form = forms().find(name);
    if (!form) form = forms().find(flags.name + "." + bits_type(type));
  } else if (flags.sub == kFtz && !(form = forms().find(name + "~"))) {
    form = forms().find(name + "+");
  } else if (!form) {
    form = forms().find(name + "+");
  }
  if (!form || m.parts.size() < 2) return ops.code.unsupported(sanitize(s.opcode, 80));
  return apply_form(ops, s, *form, flags.sub, type);
}

}  // namespace cutegen::ptx
