// SPDX-License-Identifier: Apache-2.0
// Calls. Each call inlines the function's body with registers of its own: so lanes that return at
// different times reconverge behind it, and a pc names one call. Arguments in .param variables lie
// in the local memory of the calling thread.
#include <fmt/format.h>

#include "base/text.h"
#include "ptx/decode/decoder.h"

namespace cutegen::ptx {
namespace {

constexpr int kMostNested = 16;
constexpr size_t kMostCode = size_t{1} << 18;  // instructions beyond which no call is expanded
constexpr int64_t kMostLocal = 512 << 10;

int64_t align_up(int64_t n, int64_t to) {
  return (n + to - 1) / to * to;
}

}  // namespace

Result<int64_t> Decoder::local_place(int64_t bytes, int64_t align) {
  const int64_t at = align_up(p_.local_bytes, align);
  if (bytes > kMostLocal || at + bytes > kMostLocal)
    return wrong(fmt::format("more than {} bytes of local memory", kMostLocal));
  p_.local_bytes = at + bytes;
  return at;
}

// The place in local memory of a .param variable, or of a parameter of a called function.
std::optional<int64_t> Decoder::parameter_place(std::string_view name) const {
  if (auto it = frame_.parameters.find(name); it != frame_.parameters.end()) return it->second;
  for (int s = now_->scope; s >= 0 && size_t(s) < frame_.f->scopes.size();
       s = frame_.f->scopes[size_t(s)].parent) {
    const auto& variables = frame_.f->scopes[size_t(s)].variables;
    auto it = variables.find(name);
    if (it == variables.end()) continue;
    const Variable& v = frame_.f->variables[it->second];
    auto place = frame_.places.find(&v);
    if (v.space != Space::param || place == frame_.places.end()) return std::nullopt;
    return place->second;
  }
  return std::nullopt;
}

Result<void> Decoder::copy_register(Slot from, Slot to) {
  if (from.size != to.size) return wrong("an argument of the wrong size");
  return simple(from.size == 0 ? "mov.pred" : fmt::format("mov.b{}", from.size * 8), to, {from});
}

// Loads a register from a place in local memory, or stores it there.
Result<void> Decoder::move_local(Op op, int64_t place, Slot slot) {
  Inst in;
  in.op = op, in.space = Space::local;
  in.size = in.reg_size = uint8_t(slot.size);
  in.v[0] = slot.offset;
  in.a = constant(uint64_t(place), 8).offset, in.constant_address = true;
  std::vector<int32_t> reads{in.a}, writes;
  (op == Op::store ? reads : writes).push_back(slot.offset);
  emit(in, std::move(reads), std::move(writes));
  return {};
}

// Binds the parameters of the function to the places or registers of the arguments.
Result<void> Decoder::bind_arguments(const Statement& s, const Function& callee, Frame& frame) {
  const auto &results = s.operands[0].items, &arguments = s.operands[2].items;
  if (results.size() != callee.returns.size() || arguments.size() != callee.params.size())
    return wrong("a call with the wrong number of arguments");
  for (size_t i = 0; i < results.size(); ++i) {
    const Variable& formal = callee.returns[i];
    if (formal.is_register) continue;  // copied behind the call
    if (auto place = parameter_place(results[i].text)) {
      frame.parameters[formal.name] = *place;
    } else {
      CG_TRY(frame.parameters[formal.name], local_place(formal.bytes(), formal.align));
    }
  }
  for (size_t i = 0; i < arguments.size(); ++i) {
    const Variable& formal = callee.params[i];
    const auto place = arguments[i].kind == Operand::Kind::word ? parameter_place(arguments[i].text)
                                                                : std::optional<int64_t>();
    if (place && !formal.is_register) {
      frame.parameters[formal.name] = *place;
      continue;
    }
    const int size = formal.type == "pred" ? 0 : std::max(2, int(type_bytes(formal.type)));
    Slot from{-1, size};
    if (place) {
      from.offset = allocate(size);
      CG_CHECK(move_local(Op::load, *place, from));
    } else {
      CG_TRY(from, source(arguments[i], size, formal.type));
    }
    if (!formal.is_register) {
      if (formal.bytes() != from.size) return wrong("an argument of the wrong size");
      CG_TRY(frame.parameters[formal.name], local_place(formal.bytes(), formal.align));
      CG_CHECK(move_local(Op::store, frame.parameters[formal.name], from));
      continue;
    }
    Slot to{allocate(size), size};
    slots_.push_back({to.offset, size == 0 ? 4 : 32 * size});
    CG_CHECK(copy_register(from, to));
    frame.registers[{0, formal.name}] = to;
  }
  return {};
}

Result<void> Decoder::inline_call(const Statement& s, const Function& callee) {
  std::optional<size_t> skip;  // lanes that do not call
  if (guard_.guard >= 0) {
    Inst in;
    in.op = Op::branch, in.kind = Kind::branch;
    skip = p_.code.size();
    emit(in, {}, {}).guard_negated = !guard_.guard_negated;
    guard_ = Inst{};
  }
  Frame frame;
  frame.f = &callee, frame.depth = frame_.depth + 1;
  CG_CHECK(bind_arguments(s, callee, frame));
  std::swap(frame, frame_);
  CG_CHECK(function_body());
  CG_CHECK(resolve_targets());
  const int32_t end = int32_t(p_.code.size());
  for (size_t at : frame_.returns) p_.code[at].target = end;
  std::vector<std::optional<Slot>> results;
  for (const Variable& v : callee.returns) {
    auto it = frame_.registers.find({0, v.name});
    results.push_back(it == frame_.registers.end() ? std::optional<Slot>() : it->second);
  }
  std::swap(frame, frame_);
  now_ = &s, guard_ = Inst{};
  for (size_t i = 0; i < results.size(); ++i) {
    const Operand& to = s.operands[0].items[i];
    const Variable& formal = callee.returns[i];
    if (!formal.is_register && parameter_place(to.text)) continue;
    const int size = formal.type == "pred" ? 0 : std::max(2, int(type_bytes(formal.type)));
    CG_TRY(Slot d, destination(to, size));
    if (!formal.is_register) {
      CG_CHECK(move_local(Op::load, frame.parameters[formal.name], d));
    } else if (results[i]) {
      CG_CHECK(copy_register(*results[i], d));
    }
  }
  Inst join;  // the lanes reconverge here; branches to the end go here
  join.op = Op::fence, join.kind = Kind::branch;
  emit(join, {}, {});
  if (skip) p_.code[*skip].target = int32_t(p_.code.size()) - 1;
  return {};
}

// vprintf and __assertfail: ptx/units/host_calls.h does the rest.
Result<void> Decoder::host_call(const Statement& s, Op op, size_t arguments) {
  Inst in;
  in.op = op;
  if (s.operands[2].items.size() < arguments) return wrong("too few arguments");
  for (size_t i = 0; i < arguments; ++i) {
    auto place = parameter_place(s.operands[2].items[i].text);
    if (!place) return wrong("an argument that is not a .param variable");
    in.v[i] = int32_t(*place);
  }
  emit(in, {}, {});
  return {};
}

Result<void> Decoder::call(const Statement& s, const Modifiers&) {
  CG_CHECK(count(s, 3, 3));
  const std::string_view name = s.operands[1].text;
  auto it = module_.device_functions.find(name);
  if (it == module_.device_functions.end()) {
    if (name == "vprintf") return host_call(s, Op::print, 2);
    if (name == "__assertfail") return host_call(s, Op::assert_fail, 4);
    return unsupported(fmt::format("a call of {}", name.empty() ? "an unknown function"
                                                   : name.starts_with('%')
                                                       ? "a function by its address"
                                                       : sanitize(name, 80)));
  }
  if (frame_.depth >= kMostNested || p_.code.size() > kMostCode) {
    return unsupported(fmt::format("a call of {} inside {} others (recursion?)", sanitize(name, 80),
                                   frame_.depth));
  }
  return inline_call(s, module_.functions[it->second]);
}

}  // namespace cutegen::ptx
