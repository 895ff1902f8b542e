// SPDX-License-Identifier: Apache-2.0
// Operands: registers, immediates, special registers and symbols become slots.
#include <fmt/format.h>

#include <bit>
#include <charconv>

#include "base/text.h"
#include "ptx/decode/decoder.h"

namespace cutegen::ptx {
namespace {

std::string quoted(std::string_view name) {
  return "'" + sanitize(name, 60) + "'";
}

}  // namespace

tl::unexpected<Error> Decoder::wrong(const std::string& message) const {
  return user_error(message + (now_->opcode.empty() ? "" : " in " + sanitize(now_->text, 120)),
                    fmt::format("ptx:{}", now_->line),
                    "give the PTX text as the compiler wrote it");
}

Result<void> Decoder::count(const Statement& s, size_t least, size_t most) const {
  if (s.operands.size() >= least && s.operands.size() <= most) return {};
  return wrong(fmt::format("{} operands (expected {})", s.operands.size(), least));
}

// Predicates are packed sixteen to a line of 64 bytes; other slots are 32 lanes.
int32_t Decoder::allocate(int size) {
  if (size == 0) {
    if (predicates_at_ % 64 == 0) predicates_at_ = used_, used_ += 64;
    int32_t at = int32_t(predicates_at_);
    predicates_at_ += 4;
    return at;
  }
  int32_t at = int32_t(used_);
  used_ += std::max(64, 32 * size);
  return at;
}

const RegisterRange* Decoder::find_range(std::string_view name, int* scope) const {
  const size_t digits = name.find_last_not_of("0123456789") + 1;
  std::string_view stem = name.substr(0, digits), number = name.substr(digits);
  for (int s = now_->scope; s >= 0 && size_t(s) < frame_.f->scopes.size();
       s = frame_.f->scopes[size_t(s)].parent) {
    const auto& registers = frame_.f->scopes[size_t(s)].registers;
    *scope = s;
    if (auto it = registers.find(name); it != registers.end() && it->second.count == 0)
      return &it->second;
    if (number.empty() || (number.size() > 1 && number[0] == '0')) continue;
    auto it = registers.find(stem);
    int64_t n = 0;
    auto [end, e] = std::from_chars(number.data(), number.data() + number.size(), n);
    if (it != registers.end() && e == std::errc{} && n < it->second.count) return &it->second;
  }
  return nullptr;
}

std::optional<Slot> Decoder::find_register(std::string_view name) {
  int scope = 0;
  const RegisterRange* range = find_range(name, &scope);
  if (!range) return std::nullopt;
  auto [it, fresh] = frame_.registers.try_emplace({scope, name});
  if (fresh) {
    it->second.size = range->type == "pred" ? 0 : int(type_bytes(range->type));
    if (it->second.size == 1) it->second.size = 2;  // registers of 8 bits take 16
    it->second.offset = allocate(it->second.size);
    slots_.push_back({it->second.offset, it->second.size == 0 ? 4 : 32 * it->second.size});
  }
  return it->second;
}

std::optional<Slot> Decoder::find_special(std::string_view name) {
  using S = Special;
  static const std::unordered_map<std::string_view, S> names{
      {"%tid.x", S::tid_x},
      {"%tid.y", S::tid_y},
      {"%tid.z", S::tid_z},
      {"%ntid.x", S::ntid_x},
      {"%ntid.y", S::ntid_y},
      {"%ntid.z", S::ntid_z},
      {"%ctaid.x", S::ctaid_x},
      {"%ctaid.y", S::ctaid_y},
      {"%ctaid.z", S::ctaid_z},
      {"%nctaid.x", S::nctaid_x},
      {"%nctaid.y", S::nctaid_y},
      {"%nctaid.z", S::nctaid_z},
      {"%laneid", S::laneid},
      {"%warpid", S::warpid},
      {"%nwarpid", S::nwarpid},
      {"%lanemask_eq", S::lanemask_eq},
      {"%lanemask_le", S::lanemask_le},
      {"%lanemask_lt", S::lanemask_lt},
      {"%lanemask_ge", S::lanemask_ge},
      {"%lanemask_gt", S::lanemask_gt},
      {"%dynamic_smem_size", S::dynamic_smem_size},
      {"%total_smem_size", S::total_smem_size},
      {"%envreg0", S::zero},
      {"%envreg1", S::workspace_high},
      {"%envreg2", S::workspace_low},
      // Every CTA is a cluster of its own.
      {"%clusterid.x", S::ctaid_x},
      {"%clusterid.y", S::ctaid_y},
      {"%clusterid.z", S::ctaid_z},
      {"%nclusterid.x", S::nctaid_x},
      {"%nclusterid.y", S::nctaid_y},
      {"%nclusterid.z", S::nctaid_z},
      {"%cluster_ctaid.x", S::zero},
      {"%cluster_ctaid.y", S::zero},
      {"%cluster_ctaid.z", S::zero},
      {"%cluster_nctaid.x", S::one},
      {"%cluster_nctaid.y", S::one},
      {"%cluster_nctaid.z", S::one},
      {"%cluster_ctarank", S::zero},
      // One SM runs everything. Other environment registers are zero.
      {"%smid", S::zero},
      {"%nsmid", S::one},
      {"%cluster_nctarank", S::one}};
  auto it = names.find(name);
  if (it == names.end()) return std::nullopt;
  auto [slot, fresh] = specials_.try_emplace(it->second);
  if (fresh) {
    slot->second = {allocate(4), 4};
    p_.specials.push_back({slot->second.offset, 4, it->second});
  }
  return slot->second;
}

Slot Decoder::constant(uint64_t bits, int size, int32_t variable) {
  if (size > 0 && size < 8) bits &= (uint64_t{1} << (8 * size)) - 1;
  auto [it, fresh] = constants_.try_emplace({bits, size, variable});
  if (fresh) {
    it->second = {allocate(size), size};
    p_.constants.push_back({it->second.offset, uint8_t(size), bits, variable});
  }
  return it->second;
}

// The address of a variable in its own space; with `generic`, in the generic space.
Result<Slot> Decoder::symbol(std::string_view name, int64_t offset, int size, bool generic) {
  if (auto place = parameter_place(name))
    return constant(uint64_t(*place + offset) + (generic ? kLocalWindow : 0), size);
  for (const ParamSlot& p : p_.params) {
    if (p.name == name && frame_.depth == 0)
      return constant(uint64_t(p.offset + offset) + (generic ? kParamWindow : 0), size);
  }
  for (int s = now_->scope; s >= 0; s = frame_.f->scopes[size_t(s)].parent) {
    const auto& variables = frame_.f->scopes[size_t(s)].variables;
    auto it = variables.find(name);
    if (it == variables.end()) continue;
    const Variable& v = frame_.f->variables[it->second];
    const auto& places = v.space == Space::shared ? shared_places_ : frame_.places;
    auto place = places.find(&v);
    if (place == places.end())
      return unsupported_error("variable " + quoted(name) + " in this space",
                               fmt::format("ptx:{}", now_->line));
    uint64_t window = !generic ? 0 : v.space == Space::shared ? kSharedWindow : kLocalWindow;
    return constant(uint64_t(place->second + offset) + window, size);
  }
  auto it = module_.by_name.find(name);
  if (it == module_.by_name.end()) return wrong("unknown name " + quoted(name));
  const Variable& v = module_.variables[it->second];
  if (v.space != Space::shared) {
    p_.variables.push_back(int32_t(it->second));
    return constant(uint64_t(offset), size, int32_t(it->second));
  }
  const uint64_t window = generic ? kSharedWindow : 0;
  if (v.is_extern || v.count == 0) return constant(uint64_t(offset) + window, size, -2);
  auto [place, fresh] = shared_places_.try_emplace(&v, 0);
  if (fresh) {
    place->second = (p_.static_shared + v.align - 1) / v.align * v.align;
    p_.static_shared = place->second + v.bytes();
    if (p_.static_shared > (int64_t{1} << 24))
      return wrong("variable " + quoted(name) + " is too large");
  }
  return constant(uint64_t(place->second + offset) + window, size);
}

Result<Slot> Decoder::source(const Operand& o, int size, std::string_view type) {
  if (o.negated) return wrong("a negated operand where none is allowed");
  if (o.kind == Operand::Kind::integer) {
    if (size == 0) return constant(o.value ? ~0u : 0u, 0);
    if (type == "f32" || type == "f64") return wrong("an integer where a float is expected");
    return constant(uint64_t(o.value), size);
  }
  if (o.kind == Operand::Kind::real) {
    if (o.is_single && size == 4) return constant(uint64_t(o.value), 4);
    double d = o.is_single ? double(std::bit_cast<float>(uint32_t(o.value)))
                           : std::bit_cast<double>(o.value);
    if (size == 8) return constant(std::bit_cast<uint64_t>(d), 8);
    if (size == 4) return constant(std::bit_cast<uint32_t>(float(d)), 4);
    return wrong("a float where an integer is expected");
  }
  if (o.kind != Operand::Kind::word) return wrong("an operand of the wrong form");
  if (auto slot = find_register(o.text)) {
    if (slot->size != size) {
      return wrong(
          fmt::format("{} has {} bytes where {} are expected", quoted(o.text), slot->size, size));
    }
    return *slot;
  }
  if (o.text.starts_with('%')) {
    auto slot = find_special(o.text);
    if (slot && slot->size == size) return *slot;
    if (slot) return wrong(quoted(o.text) + " has 4 bytes");
    return wrong("unknown register " + quoted(o.text));
  }
  if (o.text == "WARP_SZ") return constant(32, size);
  if (size < 4) return wrong("an address where a small integer is expected");
  return symbol(o.text, o.value, size, false);
}

Result<Slot> Decoder::destination(const Operand& o, int size) {
  if (o.kind == Operand::Kind::sink) return Slot{allocate(size), size};
  if (o.kind != Operand::Kind::word || o.negated) return wrong("a destination must be a register");
  auto slot = find_register(o.text);
  if (!slot) return wrong("unknown register " + quoted(o.text));
  if (slot->size != size) {
    return wrong(
        fmt::format("{} has {} bytes where {} are expected", quoted(o.text), slot->size, size));
  }
  return *slot;
}

Result<Slot> Decoder::predicate(const Operand& o) {
  if (o.kind == Operand::Kind::integer) return constant(o.value ? ~0u : 0u, 0);
  if (o.kind != Operand::Kind::word) return wrong("a predicate is expected");
  auto slot = find_register(o.text);
  if (!slot || slot->size != 0) return wrong(quoted(o.text) + " is not a predicate");
  return *slot;
}

Result<Slot> Decoder::register_of(const Operand& o) {
  if (o.kind != Operand::Kind::word || o.negated) return wrong("a register is expected");
  auto slot = find_register(o.text);
  if (!slot) return wrong("unknown register " + quoted(o.text));
  return *slot;
}

}  // namespace cutegen::ptx
