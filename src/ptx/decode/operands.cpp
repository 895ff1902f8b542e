// SPDX-License-Identifier: Apache-2.0
#include "ptx/decode/operands.h"

#include <fmt/format.h>

#include <bit>
#include <charconv>

#include "base/text.h"

namespace cutegen::ptx {
namespace {

constexpr int64_t kMostStatic = int64_t{1} << 24;
constexpr int64_t kMostLocal = 512 << 10;

std::string quoted(std::string_view name) {
  return "'" + sanitize(name, 60) + "'";
}

std::optional<Special> special_of(std::string_view name) {
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
      {"%clusterid.x", S::clusterid_x},
      {"%clusterid.y", S::clusterid_y},
      {"%clusterid.z", S::clusterid_z},
      {"%nclusterid.x", S::nclusterid_x},
      {"%nclusterid.y", S::nclusterid_y},
      {"%nclusterid.z", S::nclusterid_z},
      {"%cluster_ctaid.x", S::cluster_ctaid_x},
      {"%cluster_ctaid.y", S::cluster_ctaid_y},
      {"%cluster_ctaid.z", S::cluster_ctaid_z},
      {"%cluster_nctaid.x", S::cluster_nctaid_x},
      {"%cluster_nctaid.y", S::cluster_nctaid_y},
      {"%cluster_nctaid.z", S::cluster_nctaid_z},
      {"%cluster_ctarank", S::cluster_ctarank},
      {"%cluster_nctarank", S::cluster_nctarank},
      // One SM runs the whole grid. The other environment registers are zero.
      {"%smid", S::zero},
      {"%nsmid", S::one}};
  auto it = names.find(name);
  return it == names.end() ? std::optional<Special>() : it->second;
}

}  // namespace

const RegisterRange* Operands::find_range(std::string_view name, int* scope) const {
  const size_t digits = name.find_last_not_of("0123456789") + 1;
  std::string_view stem = name.substr(0, digits), number = name.substr(digits);
  for (int s = code.now().scope; s >= 0 && size_t(s) < frame.f->scopes.size();
       s = frame.f->scopes[size_t(s)].parent) {
    const auto& registers = frame.f->scopes[size_t(s)].registers;
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

std::optional<Slot> Operands::find_register(std::string_view name) {
  int scope = 0;
  const RegisterRange* range = find_range(name, &scope);
  if (!range) return std::nullopt;
  auto [it, fresh] = frame.registers.try_emplace({scope, name});
  if (fresh) {
    const int size = range->type == "pred" ? 0 : int(type_bytes(range->type));
    it->second = code.add_register(size == 1 ? 2 : size);  // an 8-bit register takes 16 bits
  }
  return it->second;
}

std::optional<Slot> Operands::find_special(std::string_view name) {
  const auto which = special_of(name);
  return which ? code.special(*which) : std::optional<Slot>();
}

// The variable of the function with this name, from the innermost scope.
const Variable* Operands::find_variable(std::string_view name) const {
  for (int s = code.now().scope; s >= 0 && size_t(s) < frame.f->scopes.size();
       s = frame.f->scopes[size_t(s)].parent) {
    const auto& variables = frame.f->scopes[size_t(s)].variables;
    if (auto it = variables.find(name); it != variables.end())
      return &frame.f->variables[it->second];
  }
  return nullptr;
}

std::optional<int64_t> Operands::parameter_place(std::string_view name) const {
  if (auto it = frame.parameters.find(name); it != frame.parameters.end()) return it->second;
  const Variable* v = find_variable(name);
  if (!v || v->space != Space::param) return std::nullopt;
  auto place = frame.places.find(v);
  return place == frame.places.end() ? std::optional<int64_t>() : place->second;
}

Result<int64_t> Operands::local_place(int64_t bytes, int64_t align) {
  const int64_t at = align_up(code.program.local_bytes, align);
  if (bytes > kMostLocal || at + bytes > kMostLocal)
    return code.wrong(fmt::format("more than {} bytes of local memory", kMostLocal));
  code.program.local_bytes = at + bytes;
  return at;
}

Result<int64_t> Operands::shared_place(const Variable& v) {
  auto [place, fresh] = shared_places_.try_emplace(&v, 0);
  if (fresh) {
    place->second = align_up(code.program.static_shared, v.align);
    code.program.static_shared = place->second + v.bytes();
    if (code.program.static_shared > kMostStatic)
      return code.wrong("variable " + quoted(v.name) + " is too large");
  }
  return place->second;
}

// The address of a variable in its own space; with `generic`, in the generic space.
Result<Slot> Operands::symbol(std::string_view name, int64_t offset, int size, bool generic) {
  if (auto place = parameter_place(name))
    return code.constant(uint64_t(*place + offset) + (generic ? kLocalWindow : 0), size);
  for (const ParamSlot& p : code.program.params) {
    if (p.name == name && frame.depth == 0)
      return code.constant(uint64_t(p.offset + offset) + (generic ? kParamWindow : 0), size);
  }
  const Variable* v = find_variable(name);
  if (!v) return module_symbol(name, offset, size, generic);
  const auto& places = v->space == Space::shared ? shared_places_ : frame.places;
  auto place = places.find(v);
  if (place == places.end())
    return unsupported_error("variable " + quoted(name) + " in this space",
                             fmt::format("ptx:{}", code.now().line));
  const uint64_t window = !generic ? 0 : v->space == Space::shared ? kSharedWindow : kLocalWindow;
  return code.constant(uint64_t(place->second + offset) + window, size);
}

Result<Slot> Operands::module_symbol(std::string_view name, int64_t offset, int size,
                                     bool generic) {
  auto it = module_.by_name.find(name);
  if (it == module_.by_name.end()) return code.wrong("unknown name " + quoted(name));
  const Variable& v = module_.variables[it->second];
  if (v.space != Space::shared) {
    code.program.variables.push_back(int32_t(it->second));
    return code.constant(uint64_t(offset), size, int32_t(it->second));
  }
  const uint64_t window = generic ? kSharedWindow : 0;
  if (v.is_extern || v.count == 0) return code.constant(uint64_t(offset) + window, size, -2);
  CG_TRY(const int64_t place, shared_place(v));
  return code.constant(uint64_t(place + offset) + window, size);
}

Result<Slot> Operands::source(const Operand& o, int size, std::string_view type) {
  if (o.negated) return code.wrong("a negated operand where none is allowed");
  if (o.kind == Operand::Kind::integer) {
    if (size == 0) return code.constant(o.value ? ~0u : 0u, 0);
    if (type == "f32" || type == "f64") return code.wrong("an integer where a float is expected");
    return code.constant(uint64_t(o.value), size);
  }
  if (o.kind == Operand::Kind::real) {
    if (o.is_single && size == 4) return code.constant(uint64_t(o.value), 4);
    double d = o.is_single ? double(std::bit_cast<float>(uint32_t(o.value)))
                           : std::bit_cast<double>(o.value);
    if (size == 8) return code.constant(std::bit_cast<uint64_t>(d), 8);
    if (size == 4) return code.constant(std::bit_cast<uint32_t>(float(d)), 4);
    return code.wrong("a float where an integer is expected");
  }
  if (o.kind != Operand::Kind::word) return code.wrong("an operand of the wrong form");
  return word(o, size);
}

// A register, a special register or a symbol.
Result<Slot> Operands::word(const Operand& o, int size) {
  if (auto slot = find_register(o.text)) {
    if (slot->size != size) {
      return code.wrong(
          fmt::format("{} has {} bytes where {} are expected", quoted(o.text), slot->size, size));
    }
    return *slot;
  }
  if (o.text.starts_with('%')) {
    auto slot = find_special(o.text);
    if (slot && slot->size == size) return *slot;
    if (slot) return code.wrong(quoted(o.text) + " has 4 bytes");
    return code.wrong("unknown register " + quoted(o.text));
  }
  if (o.text == "WARP_SZ") return code.constant(32, size);
  if (size < 4) return code.wrong("an address where a small integer is expected");
  return symbol(o.text, o.value, size, false);
}

Result<Slot> Operands::destination(const Operand& o, int size) {
  if (o.kind == Operand::Kind::sink) return Slot{.offset = code.allocate(size), .size = size};
  if (o.kind != Operand::Kind::word || o.negated)
    return code.wrong("a destination must be a register");
  auto slot = find_register(o.text);
  if (!slot) return code.wrong("unknown register " + quoted(o.text));
  if (slot->size != size) {
    return code.wrong(
        fmt::format("{} has {} bytes where {} are expected", quoted(o.text), slot->size, size));
  }
  return *slot;
}

Result<Slot> Operands::predicate(const Operand& o) {
  if (o.kind == Operand::Kind::integer) return code.constant(o.value ? ~0u : 0u, 0);
  if (o.kind != Operand::Kind::word) return code.wrong("a predicate is expected");
  auto slot = find_register(o.text);
  if (!slot || slot->size != 0) return code.wrong(quoted(o.text) + " is not a predicate");
  return *slot;
}

Result<void> Operands::address(const Operand& o, Inst& in) {
  if (o.kind != Operand::Kind::address || !o.items.empty())
    return code.wrong("an address is expected");
  in.imm = o.value;
  if (!o.has_base) {
    in.a = code.constant(0, 8).offset, in.constant_address = true;
    return {};
  }
  if (auto slot = find_register(o.text)) {
    if (slot->size != 8 && slot->size != 4) return code.wrong("an address must have 32 or 64 bits");
    in.a = slot->offset, in.wide_address = slot->size == 8;
    return {};
  }
  CG_TRY(Slot slot, symbol(o.text, 0, 8, in.space == Space::generic));
  in.a = slot.offset, in.constant_address = true;
  return {};
}

}  // namespace cutegen::ptx
