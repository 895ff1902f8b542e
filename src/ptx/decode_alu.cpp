// SPDX-License-Identifier: Apache-2.0
// Arithmetic, moves, comparisons and address conversions.
#include <fmt/format.h>

#include "base/text.h"
#include "ptx/decoder.h"

namespace cutegen::ptx {
namespace {

// "s32" -> "b32" and so on: forms that only look at bits are kept once.
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

struct Flags {
  std::string name;  // the opcode without rounding and flags, without the type
  uint8_t sub = 0;
  bool odd = false;  // a modifier that is not handled
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

Result<void> Decoder::arithmetic(const Statement& s, const Modifiers& m) {
  const std::string_view type = m.type();
  const bool is_half = type == "f16" || type == "bf16" || type == "f16x2" || type == "bf16x2";
  const Flags flags = read_flags(m, is_half);
  const std::string name = flags.name + "." + std::string(type);
  const Form* form = nullptr;
  if (flags.sub == 0) {
    form = forms().find(name);
    if (!form) form = forms().find(flags.name + "." + bits_type(type));
  } else if (flags.sub == kFtz && !(form = forms().find(name + "~"))) {
    form = forms().find(name + "+");
  } else if (!form) {
    form = forms().find(name + "+");
  }
  const bool is_reciprocal_64 = m.base() == "rcp" && type == "f64" && m.has("ftz");
  if (!form && is_reciprocal_64) form = forms().find("rcp.f64");
  if (!form || m.parts.size() < 2) return unsupported(sanitize(s.opcode, 80));
  return apply_form(s, *form, flags.sub, type);
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
  const bool chains = s.opcode.find(".cc") != std::string_view::npos ||
                      s.opcode.starts_with("addc") || s.opcode.starts_with("subc") ||
                      s.opcode.starts_with("madc");
  if (chains) {
    if (carry_.offset < 0) {
      carry_ = {allocate(0), 0};
      slots_.push_back({carry_.offset, 4});
    }
    in.e = carry_.offset;
    reads.push_back(in.e);
    emit(in, std::move(reads), {in.d, in.e});
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

Result<void> Decoder::compare(const Statement& s, const Modifiers& m) {
  CG_CHECK(count(s, 3, 4));
  if (m.parts.size() < 3) return unsupported(sanitize(s.opcode, 80));
  const bool combined = s.operands.size() == 4;
  std::string name = "setp." + std::string(m.parts[1]) + "." + std::string(m.type());
  if (m.has("ftz") && m.type() == "f32") name += "+";
  const Form* form = forms().find(name);
  const std::string_view how = m.parts[2];
  const bool known = how == "and" || how == "or" || how == "xor";
  if (!form || combined != known) return unsupported(sanitize(s.opcode, 80));
  Inst in;
  in.masked = form->masked, in.kind = form->kind;
  CG_TRY(Slot a, source(s.operands[1], operand_size(form->signature[1]), m.type()));
  CG_TRY(Slot b, source(s.operands[2], operand_size(form->signature[2]), m.type()));
  in.a = a.offset, in.b = b.offset;
  std::vector<int32_t> reads{a.offset, b.offset}, writes;
  if (combined) {
    CG_TRY(Slot c, predicate(s.operands[3]));
    in.c = c.offset, in.imm = s.operands[3].negated,
    in.sub = how == "and"  ? 0
             : how == "or" ? 1
                           : 2;
    reads.push_back(c.offset);
  }
  const Operand& to = s.operands[0];
  std::vector<Operand> both =
      to.kind == Operand::Kind::vector ? to.items : std::vector<Operand>{to};
  int32_t* fields[] = {&in.d, &in.e};
  for (size_t i = 0; i < both.size() && i < 2; ++i) {
    if (both[i].kind == Operand::Kind::sink) continue;
    CG_TRY(Slot d, destination(both[i], 0));
    *fields[i] = d.offset;
    writes.push_back(d.offset);
  }
  emit(in, std::move(reads), std::move(writes));
  return {};
}

// set.CMP.dtype.stype d, a, b: a comparison into a register (all ones, or 1.0).
Result<void> Decoder::set(const Statement& s, const Modifiers& m) {
  CG_CHECK(count(s, 3, 3));
  const size_t n = m.parts.size();
  if (n < 4) return unsupported(sanitize(s.opcode, 80));
  const std::string_view to = m.parts[n - 2];
  std::string name = "setp." + std::string(m.parts[1]) + "." + std::string(m.type());
  if (m.has("ftz") && m.type() == "f32") name += "+";
  const Form* form = forms().find(name);
  if (!form || (to != "u32" && to != "s32" && to != "f32"))
    return unsupported(sanitize(s.opcode, 80));
  CG_TRY(Slot a, source(s.operands[1], operand_size(form->signature[1]), m.type()));
  CG_TRY(Slot b, source(s.operands[2], operand_size(form->signature[2]), m.type()));
  CG_TRY(Slot d, destination(s.operands[0], 4));
  Slot p{allocate(0), 0};
  Inst in;
  in.masked = form->masked, in.kind = form->kind, in.a = a.offset, in.b = b.offset, in.d = p.offset;
  emit(in, {a.offset, b.offset}, {});
  return simple("selp.b32", d, {constant(to == "f32" ? 0x3f800000u : ~0u, 4), constant(0, 4), p});
}

Result<void> Decoder::convert(const Statement& s, const Modifiers& m) {
  const size_t n = m.parts.size();
  if (n < 3) return unsupported(sanitize(s.opcode, 80));
  const std::string_view to = m.parts[n - 2], from = m.parts[n - 1];
  uint8_t sub = 0;
  int64_t to_integer = 0;
  bool known = true;
  for (size_t i = 1; i + 2 < n; ++i) {
    const std::string_view p = m.parts[i];
    if (p == "rn" || p == "rz" || p == "rm" || p == "rp") {
      sub |= p == "rz" ? kRoundZero : p == "rm" ? kRoundDown : p == "rp" ? kRoundUp : kRoundNearest;
    } else if (p == "rni" || p == "rzi" || p == "rmi" || p == "rpi") {
      to_integer = 1;
      sub |= p == "rzi"   ? kRoundZero
             : p == "rmi" ? kRoundDown
             : p == "rpi" ? kRoundUp
                          : kRoundNearest;
    } else if (p == "ftz") {
      sub |= kFtz;
    } else if (p == "sat") {
      sub |= kSaturate;
    } else if (p == "relu") {
      sub |= kRelu;
    } else {
      known = p == "rna" && to == "tf32";
    }
  }
  auto is_int = [](std::string_view t) { return t[0] == 's' || t[0] == 'u'; };
  const bool narrow = to == "f16" || to == "bf16" || to == "f16x2" || to == "bf16x2";
  if (narrow && (sub & kRoundMask) > kRoundZero) known = false;
  if ((sub & kRelu) && !narrow) known = false;
  std::string name = "cvt." + std::string(to) + "." + std::string(from);
  if (to == "tf32") name = m.has("rna") ? "cvt.rna.tf32.f32" : m.has("rn") ? "cvt.rn.tf32.f32" : "";
  if (is_int(to) && is_int(from) && (sub & kSaturate)) name = "cvt.sat." + name.substr(4);
  if ((to == "f16" || to == "bf16") && from == "f32" && sub) name += "+";
  const Form* form = known ? forms().find(name) : nullptr;
  if (!form) return unsupported(sanitize(s.opcode, 80));

  const size_t sources = form->signature.size() - 1;
  CG_CHECK(count(s, sources + 1, sources + 1));
  std::vector<Slot> in_slots;
  for (size_t i = 1; i <= sources; ++i) {
    const int size = operand_size(form->signature[i]);
    const Operand& o = s.operands[i];
    auto wider = o.kind == Operand::Kind::word ? find_register(o.text) : std::nullopt;
    if (wider && wider->size > size && is_int(from)) {  // the low part of a wider register
      Slot cut{allocate(size), size};
      CG_CHECK(simple(fmt::format("cvt.u{}.u{}", 8 * size, 8 * wider->size), cut, {*wider}));
      in_slots.push_back(cut);
    } else {
      CG_TRY(Slot slot, source(o, size, from));
      in_slots.push_back(slot);
    }
  }
  const int out_size = operand_size(form->signature[0]);
  Slot out;
  auto wider =
      s.operands[0].kind == Operand::Kind::word ? find_register(s.operands[0].text) : std::nullopt;
  const bool extend = wider && wider->size > out_size && is_int(to);
  if (extend) {
    out = {allocate(out_size), out_size};
  } else {
    CG_TRY(out, destination(s.operands[0], out_size));
  }
  CG_CHECK(simple(name, out, in_slots, to_integer));
  p_.code.back().sub = sub;
  if (!extend) return {};
  return simple(fmt::format("cvt.{0}{1}.{0}{2}", to[0], 8 * wider->size, 8 * out_size), *wider,
                {out});
}

Result<void> Decoder::convert_address(const Statement& s, const Modifiers& m) {
  CG_CHECK(count(s, 2, 2));
  if (m.type() != "u64") return unsupported(sanitize(s.opcode, 80));
  uint64_t window = 0;
  for (std::string_view p : m.parts) {
    if (p.starts_with("shared")) window = kSharedWindow;
    if (p == "local") window = kLocalWindow;
    if (p.starts_with("param")) window = kParamWindow;
  }
  CG_TRY(Slot a, source(s.operands[1], 8, "u64"));
  CG_TRY(Slot d, destination(s.operands[0], 8));
  if (window == 0) return simple("mov.b64", d, {a});
  return simple(m.has("to") ? "sub.u64" : "add.u64", d, {a, constant(window, 8)});
}

}  // namespace cutegen::ptx
