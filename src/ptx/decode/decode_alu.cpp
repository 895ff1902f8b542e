// SPDX-License-Identifier: Apache-2.0
// Arithmetic and moves.
#include <fmt/format.h>

#include "base/text.h"
#include "ptx/decode/decoder.h"

namespace cutegen::ptx {
namespace {

struct Flags {
  std::string name;  // the opcode without rounding and flags, without the type
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

// lop3.BoolOp.b32 d|p, a, b, c, table, q: p says whether d is not zero, combined with q.
Result<void> Decoder::table_logic(const Statement& s, const Modifiers& m) {
  CG_CHECK(count(s, 6, 6));
  const Operand& to = s.operands[0];
  if (to.kind != Operand::Kind::vector || to.items.size() != 2) return wrong("lop3 needs d|p");
  if (s.operands[4].kind != Operand::Kind::integer)
    return wrong("the table of lop3 must be a number");
  std::vector<Slot> sources;
  for (size_t i = 1; i < 4; ++i) {
    CG_TRY(Slot slot, source(s.operands[i], 4, "b32"));
    sources.push_back(slot);
  }
  CG_TRY(Slot d, destination(to.items[0], 4));
  CG_TRY(Slot p, destination(to.items[1], 0));
  CG_CHECK(simple("lop3.b32", d, sources, s.operands[4].value));
  return emit_compare("setp.ne.b32", m.parts[1] == "and" ? 0 : 1, &s.operands[5], d, constant(0, 4),
                      p, {});
}

Result<void> Decoder::arithmetic(const Statement& s, const Modifiers& m) {
  if (m.base() == "lop3" && m.parts.size() == 3 && (m.parts[1] == "or" || m.parts[1] == "and"))
    return table_logic(s, m);
  const std::string_view type = m.type();
  const bool is_half = type == "f16" || type == "bf16" || type == "f16x2" || type == "bf16x2";
  const Flags flags = read_flags(m, is_half);
  std::string name = flags.name + "." + std::string(type);
  const Form* form = nullptr;
  if (m.base() == "prmt" && m.parts.size() == 3)
    return with_form(s, "prmt." + std::string(m.parts[2]) + "." + std::string(m.parts[1]));
  if (m.base() == "slct" && m.parts.size() == 3)
    return with_form(s, "slct." + bits_type(m.parts[1]) + "." + std::string(type));
  if (s.opcode == "rcp.approx.ftz.f64" || s.opcode == "rsqrt.approx.ftz.f64")
    return with_form(s, std::string(m.base()) + ".gross.f64");
  if (flags.sub == 0) {
    form = forms().find(name);
    if (!form) form = forms().find(flags.name + "." + bits_type(type));
  } else if (flags.sub == kFtz && !(form = forms().find(name + "~"))) {
    form = forms().find(name + "+");
  } else if (!form) {
    form = forms().find(name + "+");
  }
  if (!form || m.parts.size() < 2) return unsupported(sanitize(s.opcode, 80));
  return apply_form(s, *form, flags.sub, type);
}

// A form that has no flags, by its name in the table.
Result<void> Decoder::with_form(const Statement& s, const std::string& name) {
  const Form* form = forms().find(name);
  if (!form) return unsupported(sanitize(s.opcode, 80));
  return apply_form(s, *form, 0, "");
}

Result<void> Decoder::apply_form(const Statement& s, const Form& form, uint8_t sub,
                                 std::string_view type) {
  const std::string& letters = form.signature;
  size_t wanted = letters.size();
  const bool lut = s.opcode.starts_with("lop3");
  CG_CHECK(count(s, wanted + (lut ? 1 : 0), wanted + (lut ? 1 : 0)));
  Inst in;
  in.full = form.full, in.masked = form.masked, in.kind = form.kind, in.flops = form.flops,
  in.sub = sub;
  if (lut) {
    if (s.operands[wanted].kind != Operand::Kind::integer)
      return wrong("the table of lop3 must be a number");
    in.imm = s.operands[wanted].value;
  }
  std::vector<int32_t> reads;
  int32_t* fields[] = {&in.a, &in.b, &in.c, &in.e};
  for (size_t i = 1; i < wanted; ++i) {
    Slot slot;
    if (letters[i] == 'p') {
      CG_TRY(slot, predicate(s.operands[i]));
    } else {
      CG_TRY(slot, source(s.operands[i], operand_size(letters[i]), type));
    }
    *fields[i - 1] = slot.offset;
    reads.push_back(slot.offset);
  }
  CG_TRY(Slot d, destination(s.operands[0], operand_size(letters[0])));
  in.d = d.offset;
  const bool gives_carry = s.opcode.find(".cc") != std::string_view::npos;
  const bool takes_carry =
      s.opcode.starts_with("addc") || s.opcode.starts_with("subc") || s.opcode.starts_with("madc");
  if (gives_carry || takes_carry) {
    if (carry_.offset < 0) {
      carry_ = {allocate(0), 0};
      slots_.push_back({carry_.offset, 4});
    }
    in.e = carry_.offset;
    if (takes_carry) reads.push_back(in.e);
    emit(in, std::move(reads),
         gives_carry ? std::vector<int32_t>{in.d, in.e} : std::vector<int32_t>{in.d});
  } else {
    emit(in, std::move(reads), {in.d});
  }
  return {};
}

Result<void> Decoder::simple(const std::string& name, Slot d, std::vector<Slot> sources,
                             int64_t imm) {
  const Form* form = forms().find(name);
  if (!form) return unsupported(name);
  Inst in;
  in.full = form->full, in.masked = form->masked, in.kind = form->kind, in.flops = form->flops;
  in.d = d.offset, in.imm = imm;
  int32_t* fields[] = {&in.a, &in.b, &in.c, &in.e};
  std::vector<int32_t> reads;
  for (size_t i = 0; i < sources.size(); ++i) {
    *fields[i] = sources[i].offset;
    reads.push_back(sources[i].offset);
  }
  emit(in, std::move(reads), {d.offset});
  return {};
}

// mov.b64 d, {a, b} and its relatives; parts in ascending order of significance.
Result<void> Decoder::pack(const Operand& to, const std::vector<Operand>& from, int whole) {
  const int part = whole / int(from.size());
  CG_TRY(Slot d, destination(to, whole));
  std::vector<Slot> parts;
  for (const Operand& o : from) {
    CG_TRY(Slot slot, source(o, part, ""));
    parts.push_back(slot);
  }
  if (parts.size() == 4) {
    Slot low{allocate(whole / 2), whole / 2}, high{allocate(whole / 2), whole / 2};
    std::string form = fmt::format("pack.b{}", 4 * whole);
    CG_CHECK(simple(form, low, {parts[0], parts[1]}));
    CG_CHECK(simple(form, high, {parts[2], parts[3]}));
    parts = {low, high};
  }
  return simple(fmt::format("pack.b{}", 8 * whole), d, parts);
}

Result<void> Decoder::unpack(const std::vector<Operand>& to, const Operand& from, int whole) {
  const int part = whole / int(to.size());
  CG_TRY(Slot a, source(from, whole, ""));
  for (size_t i = 0; i < to.size(); ++i) {
    if (to[i].kind == Operand::Kind::sink) continue;
    CG_TRY(Slot d, destination(to[i], part));
    CG_CHECK(
        simple(fmt::format("unpack.b{}.b{}", 8 * part, 8 * whole), d, {a}, int64_t(i) * part * 8));
  }
  return {};
}

Result<void> Decoder::move(const Statement& s, const Modifiers& m) {
  CG_CHECK(count(s, 2, 2));
  const Operand &to = s.operands[0], &from = s.operands[1];
  const int whole = int(type_bytes(m.type()));
  if (m.parts.size() != 2 || (whole == 0 && m.type() != "pred"))
    return unsupported(sanitize(s.opcode, 80));
  auto parts_fit = [&](const Operand& o) {
    size_t n = o.items.size();
    return (n == 2 || n == 4) && whole / int(n) >= 2;
  };
  if (from.kind == Operand::Kind::vector) {
    return parts_fit(from) ? pack(to, from.items, whole) : unsupported("mov of bytes");
  }
  if (to.kind == Operand::Kind::vector) {
    return parts_fit(to) ? unpack(to.items, from, whole) : unsupported("mov of bytes");
  }
  const bool is_clock = from.text == "%clock" || from.text == "%clock64" ||
                        from.text == "%globaltimer" || from.text == "%clock_hi" ||
                        from.text == "%globaltimer_lo";
  if (is_clock) {
    CG_TRY(Slot d, destination(to, whole));
    Inst in;
    in.op = Op::clock, in.kind = Kind::move, in.d = d.offset, in.reg_size = uint8_t(d.size);
    emit(in, {}, {d.offset});
    return {};
  }
  if (from.kind == Operand::Kind::word && from.text.starts_with('%') && !find_register(from.text) &&
      !find_special(from.text)) {
    return unsupported("special register " + sanitize(from.text, 60));
  }
  Slot a;
  if (whole == 0) {
    CG_TRY(a, predicate(from));
  } else {
    CG_TRY(a, source(from, whole, m.type()));
  }
  CG_TRY(Slot d, destination(to, whole));
  return simple(whole == 0 ? "mov.pred" : "mov." + bits_type(m.type()), d, {a});
}

}  // namespace cutegen::ptx
