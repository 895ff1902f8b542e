// SPDX-License-Identifier: Apache-2.0
// Decodes calls. Each call inlines the function's body with its own registers. So lanes that return
// at different times reconverge after the call, and a pc belongs to one call. Arguments in .param
// variables are in the local memory of the calling thread.
#include <fmt/format.h>

#include "base/text.h"
#include "ptx/decode/decoder.h"

namespace cutegen::ptx {
namespace {

constexpr int kMostNested = 16;
// Number of instructions above which no call is inlined.
constexpr size_t kMostCode = size_t{1} << 18;

Result<void> copy_register(Operands& ops, Slot from, Slot to) {
  if (from.size != to.size) return ops.code.wrong("an argument of the wrong size");
  return ops.code.simple(from.size == 0 ? "mov.pred" : fmt::format("mov.b{}", from.size * 8), to,
                         {from});
}

// Loads a register from local memory, or stores it there.
Result<void> move_local(Operands& ops, Op op, int64_t place, Slot slot) {
  Inst in;
  in.op = op, in.space = Space::local;
  in.size = in.reg_size = uint8_t(slot.size);
  in.v[0] = slot.offset;
  in.a = ops.code.constant(uint64_t(place), 8).offset, in.constant_address = true;
  std::vector<int32_t> reads{in.a}, writes;
  (op == Op::store ? reads : writes).push_back(slot.offset);
  ops.code.emit(in, std::move(reads), std::move(writes));
  return {};
}

// Binds the function's parameters to the places or registers of the arguments.
Result<void> bind_arguments(Operands& ops, const Statement& s, const Function& callee,
                            Frame& frame) {
  const auto &results = s.operands[0].items, &arguments = s.operands[2].items;
  if (results.size() != callee.returns.size() || arguments.size() != callee.params.size())
    return ops.code.wrong("a call with the wrong number of arguments");
  for (size_t i = 0; i < results.size(); ++i) {
    const Variable& formal = callee.returns[i];
    if (formal.is_register) continue;  // copied after the inlined body
    if (auto place = ops.parameter_place(results[i].text)) {
      frame.parameters[formal.name] = *place;
    } else {
      CG_TRY(frame.parameters[formal.name], ops.local_place(formal.bytes(), formal.align));
    }
  }
  for (size_t i = 0; i < arguments.size(); ++i) {
    const Variable& formal = callee.params[i];
    const auto place = arguments[i].kind == Operand::Kind::word
                           ? ops.parameter_place(arguments[i].text)
                           : std::optional<int64_t>();
    if (place && !formal.is_register) {
      frame.parameters[formal.name] = *place;
      continue;
    }
    const int size = formal.type == "pred" ? 0 : std::max(2, int(type_bytes(formal.type)));
    Slot from{.offset = -1, .size = size};
    if (place) {
      from.offset = ops.code.allocate(size);
      CG_CHECK(move_local(ops, Op::load, *place, from));
    } else {
      CG_TRY(from, ops.source(arguments[i], size, formal.type));
    }
    if (!formal.is_register) {
      if (formal.bytes() != from.size) return ops.code.wrong("an argument of the wrong size");
      CG_TRY(frame.parameters[formal.name], ops.local_place(formal.bytes(), formal.align));
      CG_CHECK(move_local(ops, Op::store, frame.parameters[formal.name], from));
      continue;
    }
    const Slot to = ops.code.add_register(size);
    CG_CHECK(copy_register(ops, from, to));
    frame.registers[{0, formal.name}] = to;
  }
  return {};
}

Result<void> inline_call(Decoder& decoder, const Statement& s, const Function& callee) {
  Operands& ops = decoder.operands();
  std::optional<size_t> skip;  // branch of the lanes that do not call
  if (ops.code.guard().slot >= 0) {
    Inst in;
    in.op = Op::branch, in.kind = Kind::branch;
    skip = ops.code.program.code.size();
    ops.code.emit(in, {}, {}).guard_negated = !ops.code.guard().negated;
    ops.code.begin(s, {});
  }
  Frame frame;
  frame.f = &callee, frame.depth = ops.frame.depth + 1;
  CG_CHECK(bind_arguments(ops, s, callee, frame));
  std::swap(frame, ops.frame);
  CG_CHECK(decoder.function_body());
  const int32_t end = int32_t(ops.code.program.code.size());
  for (size_t at : ops.frame.returns) ops.code.program.code[at].target = end;
  std::vector<std::optional<Slot>> results;
  for (const Variable& v : callee.returns) {
    auto it = ops.frame.registers.find({0, v.name});
    results.push_back(it == ops.frame.registers.end() ? std::optional<Slot>() : it->second);
  }
  std::swap(frame, ops.frame);
  ops.code.begin(s, {});
  for (size_t i = 0; i < results.size(); ++i) {
    const Operand& to = s.operands[0].items[i];
    const Variable& formal = callee.returns[i];
    if (!formal.is_register && ops.parameter_place(to.text)) continue;
    const int size = formal.type == "pred" ? 0 : std::max(2, int(type_bytes(formal.type)));
    CG_TRY(Slot d, ops.destination(to, size));
    if (!formal.is_register) {
      CG_CHECK(move_local(ops, Op::load, frame.parameters[formal.name], d));
    } else if (results[i]) {
      CG_CHECK(copy_register(ops, *results[i], d));
    }
  }
  Inst join;  // the lanes reconverge here; branches to the end go here
  join.op = Op::fence, join.kind = Kind::branch;
  ops.code.emit(join, {}, {});
  if (skip) ops.code.program.code[*skip].target = int32_t(ops.code.program.code.size()) - 1;
  return {};
}

// Emits vprintf or __assertfail, which ptx/units/host_calls.h executes.
Result<void> host_call(Operands& ops, const Statement& s, Op op, size_t arguments) {
  Inst in;
  in.op = op;
  if (s.operands[2].items.size() < arguments) return ops.code.wrong("too few arguments");
  for (size_t i = 0; i < arguments; ++i) {
    auto place = ops.parameter_place(s.operands[2].items[i].text);
    if (!place) return ops.code.wrong("an argument that is not a .param variable");
    in.v[i] = int32_t(*place);
  }
  ops.code.emit(in, {}, {});
  return {};
}

}  // namespace

Result<void> decode_call(Decoder& decoder, const Statement& s) {
  Operands& ops = decoder.operands();
  CG_CHECK(ops.code.count(s, 3, 3));
  const ParsedModule& module = ops.module();
  const std::string_view name = s.operands[1].text;
  auto it = module.device_functions.find(name);
  if (it == module.device_functions.end()) {
    if (name == "vprintf") return host_call(ops, s, Op::print, 2);
    if (name == "__assertfail") return host_call(ops, s, Op::assert_fail, 4);
    return ops.code.unsupported(fmt::format("a call of {}", name.empty() ? "an unknown function"
                                                            : name.starts_with('%')
                                                                ? "a function by its address"
                                                                : sanitize(name, 80)));
  }
  if (ops.frame.depth >= kMostNested || ops.code.program.code.size() > kMostCode) {
    return ops.code.unsupported(fmt::format("a call of {} inside {} others (recursion?)",
                                            sanitize(name, 80), ops.frame.depth));
  }
  return inline_call(decoder, s, module.functions[it->second]);
}

}  // namespace cutegen::ptx
