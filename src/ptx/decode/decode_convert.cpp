// SPDX-License-Identifier: Apache-2.0
// Conversions between types and between address spaces.
#include <fmt/format.h>

#include "base/text.h"
#include "ptx/decode/families.h"

namespace cutegen::ptx {
namespace {

bool is_integer(std::string_view type) {
  return type[0] == 's' || type[0] == 'u';
}

struct Conversion {
  std::string_view to, from;
  uint8_t sub = 0;
  bool to_integral = false;  // the instruction rounds to an integer
  bool known = true;
  std::string_view tie;  // rounding of ties, for tf32
};

Conversion read_conversion(const Modifiers& m) {
  static constexpr std::string_view rounds[] = {"rn", "rz", "rm", "rp"},
                                    integral[] = {"rni", "rzi", "rmi", "rpi"};
  const size_t n = m.parts.size();
  Conversion c;
  c.to = m.parts[n - 2], c.from = m.parts[n - 1];
  for (size_t i = 1; i + 2 < n; ++i) {
    const std::string_view p = m.parts[i];
    const auto round = std::find(std::begin(rounds), std::end(rounds), p);
    const auto whole = std::find(std::begin(integral), std::end(integral), p);
    if (c.to == "tf32" && (p == "rna" || p == "rn" || p == "rz")) {
      c.tie = p;
    } else if (round != std::end(rounds)) {
      c.sub |= uint8_t(round - rounds);
    } else if (whole != std::end(integral)) {
      c.sub |= uint8_t(whole - integral), c.to_integral = true;
    } else if (p == "ftz") {
      c.sub |= kFtz;
    } else if (p == "sat") {
      c.sub |= kSaturate;
    } else if (p == "relu") {
      c.sub |= kRelu;
    } else if (p == "satfinite") {
      c.sub |= kFinite;
    } else {
      c.known = false;
    }
  }
  const bool narrow = c.to == "f16" || c.to == "bf16", pair = c.to.ends_with("x2");
  const bool is_float = narrow || pair || c.to == "tf32";
  if ((c.sub & (kRelu | kFinite)) && !is_float) c.known = false;
  if (pair && (c.sub & kRoundMask) > kRoundZero) c.known = false;
  return c;
}

std::string conversion_name(const Conversion& c) {
  std::string name = "cvt." + std::string(c.to) + "." + std::string(c.from);
  if (c.to == "tf32") name = "cvt." + std::string(c.tie) + ".tf32." + std::string(c.from);
  if (is_integer(c.to) && is_integer(c.from) && (c.sub & kSaturate))
    name = "cvt.sat." + name.substr(4);
  if ((c.to == "f16" || c.to == "bf16") && c.from == "f32" && c.sub) name += "+";
  return name;
}

}  // namespace

Result<void> decode_convert(Operands& ops, const Statement& s, const Modifiers& m) {
  if (m.parts.size() < 3) return ops.code.unsupported(sanitize(s.opcode, 80));
  if (m.parts[1] == "pack") return decode_form(ops, s, std::string(s.opcode));
  const Conversion c = read_conversion(m);
  const Form* form = c.known ? forms().find(conversion_name(c)) : nullptr;
  if (!form) return ops.code.unsupported(sanitize(s.opcode, 80));

  const size_t sources = form->signature.size() - 1;
  CG_CHECK(ops.code.count(s, sources + 1, sources + 1));
  std::vector<Slot> in_slots;
  for (size_t i = 1; i <= sources; ++i) {
    const int size = operand_size(form->signature[i]);
    const Operand& o = s.operands[i];
    auto wider = o.kind == Operand::Kind::word ? ops.find_register(o.text) : std::nullopt;
    if (wider && wider->size > size &&
        is_integer(c.from)) {  // use the low part of a wider register
      Slot cut{.offset = ops.code.allocate(size), .size = size};
      CG_CHECK(
          ops.code.simple(fmt::format("cvt.u{}.u{}", 8 * size, 8 * wider->size), cut, {*wider}));
      in_slots.push_back(cut);
    } else {
      CG_TRY(Slot slot, ops.source(o, size, c.from));
      in_slots.push_back(slot);
    }
  }
  const int out_size = operand_size(form->signature[0]);
  Slot out;
  auto wider = s.operands[0].kind == Operand::Kind::word ? ops.find_register(s.operands[0].text)
                                                         : std::nullopt;
  const bool extend = wider && wider->size > out_size && is_integer(c.to);
  if (extend) {
    out = {.offset = ops.code.allocate(out_size), .size = out_size};
  } else {
    CG_TRY(out, ops.destination(s.operands[0], out_size));
  }
  CG_CHECK(ops.code.simple(conversion_name(c), out, in_slots, c.to_integral));
  ops.code.last().sub = c.sub;
  if (!extend) return {};
  return ops.code.simple(fmt::format("cvt.{0}{1}.{0}{2}", c.to[0], 8 * wider->size, 8 * out_size),
                         *wider, {out});
}

Result<void> decode_convert_address(Operands& ops, const Statement& s, const Modifiers& m) {
  CG_CHECK(ops.code.count(s, 2, 2));
  if (m.type() != "u64") return ops.code.unsupported(sanitize(s.opcode, 80));
  uint64_t window = 0;
  for (std::string_view p : m.parts) {
    if (p.starts_with("shared")) window = kSharedWindow;
    if (p == "local") window = kLocalWindow;
    if (p.starts_with("param")) window = kParamWindow;
  }
  CG_TRY(Slot a, ops.source(s.operands[1], 8, "u64"));
  CG_TRY(Slot d, ops.destination(s.operands[0], 8));
  if (window == 0) return ops.code.simple("mov.b64", d, {a});
  return ops.code.simple(m.has("to") ? "sub.u64" : "add.u64", d, {a, ops.code.constant(window, 8)});
}

// isspacep.SPACE p, a: whether a generic address is in a space.
Result<void> decode_in_space(Operands& ops, const Statement& s, const Modifiers& m) {
  CG_CHECK(ops.code.count(s, 2, 2));
  CG_TRY(Slot a, ops.source(s.operands[1], 8, "u64"));
  CG_TRY(Slot d, ops.destination(s.operands[0], 0));
  const std::string_view space = m.parts.size() == 2 ? m.type() : "";
  if (space == "global")
    return ops.code.simple("setp.ge.u64", d, {a, ops.code.constant(kGlobalBase, 8)});
  const uint64_t window = space.starts_with("shared")  ? kSharedWindow
                          : space == "local"           ? kLocalWindow
                          : space.starts_with("param") ? kParamWindow
                                                       : 0;
  if (window == 0) return ops.code.unsupported(sanitize(s.opcode, 80));
  // shared::cta, which .shared means, has no addresses with a rank (ptx/cta/cluster_state.h).
  const bool own = space == "shared" || space == "shared::cta";
  const uint64_t size = own ? kSharedOfCta : kWindowBytes;
  Slot offset{.offset = ops.code.allocate(8), .size = 8};
  CG_CHECK(ops.code.simple("sub.u64", offset, {a, ops.code.constant(window, 8)}));
  return ops.code.simple("setp.lt.u64", d, {offset, ops.code.constant(size, 8)});
}

}  // namespace cutegen::ptx
