// SPDX-License-Identifier: Apache-2.0
#include "ptx/checks/undefined.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "ptx/decode/forms.h"

namespace cutegen::ptx {
namespace {

AluFn handler(const char* form) {
  const Form* f = forms().find(form);
  return f ? f->masked : nullptr;
}

}  // namespace

Undefined::Undefined(const Program& program, int warps, size_t shared_bytes, size_t local_bytes)
    : program_(program),
      registers_(program, warps),
      memory_(warps, shared_bytes, local_bytes),
      select_{handler("selp.b16"), handler("selp.b32"), handler("selp.b64")},
      and_(handler("and.pred")),
      or_(handler("or.pred")) {}

void Undefined::begin() {
  registers_.begin();
  memory_.begin();
}

std::optional<Undefined::Trouble> Undefined::follow(const Step& s) {
  if (!following()) registers_.watch(s);
  if (!following()) return std::nullopt;
  const Inst& in = s.in;
  if (in.guard >= 0 && in.op != Op::alu) {
    if (auto t = sink(s, in.guard, s.current, "whether this is executed")) return t;
  }
  switch (in.op) {
    case Op::branch_index:
      return sink(s, in.a, s.mask, "where to go");
    case Op::barrier:
      return sink(s, in.a, s.mask, "the barrier's number");
    case Op::load:
    case Op::store:
    case Op::atomic:
      if (auto t = sink(s, in.a, s.mask, "the address")) return t;
      for (int32_t slot : {in.b, in.c}) {
        if (in.op != Op::atomic || slot < 0) continue;
        if (auto t = sink(s, slot, s.mask, "the operand")) return t;
      }
      break;
    default:
      break;
  }
  result(s);
  return std::nullopt;
}

std::optional<Undefined::Trouble> Undefined::sink(const Step& s, int32_t slot, uint32_t lanes,
                                                  const char* what) {
  const uint32_t bad = at(s.warp, slot) & lanes;
  if (!bad) return std::nullopt;
  return Trouble{
      .origin = registers_.origin_of(s.warp, slot), .what = what, .lane = std::countr_zero(bad)};
}

// Returns the lanes in which one defined operand decides the predicate: false in an `and`, true in
// an `or`.
uint32_t Undefined::settled(const Step& s) {
  const Inst& in = s.in;
  auto known = [&](int32_t slot, bool negated, bool value) {
    uint32_t p = 0;
    std::memcpy(&p, s.registers + slot, 4);
    return ~at(s.warp, slot) & (negated == value ? ~p : p);
  };
  if (in.masked == and_ || in.masked == or_) {
    const bool value = in.masked == or_;
    return known(in.a, false, value) | known(in.b, false, value);
  }
  // the operand that setp.CMP.and or setp.CMP.or combines
  if (in.kind == Kind::compare && in.c >= 0 && in.sub < 2) return known(in.c, in.imm, in.sub == 1);
  return 0;
}

// Marks the results of an instruction that has undefined operands.
void Undefined::result(const Step& s) {
  const Inst& in = s.in;
  if (in.op == Op::shuffle) return shuffle(s);
  const auto& range = program_.effect_of[size_t(s.pc)];
  uint32_t lanes = 0;
  uint16_t origin = 0;
  auto take = [&](int32_t slot, uint32_t of) {
    const uint32_t m = at(s.warp, slot) & of;
    if (m) lanes |= m, origin = registers_.origin_index(s.warp, slot);
  };
  const bool across = in.op == Op::vote || in.op == Op::warp_reduce || in.op == Op::match;
  if (in.op == Op::alu && std::find(select_, select_ + 3, in.masked) != select_ + 3 && in.masked) {
    uint32_t p = 0;
    std::memcpy(&p, s.registers + in.c, 4);
    take(in.a, p & s.mask), take(in.b, ~p & s.mask), take(in.c, s.mask);
  } else if (in.op == Op::alu || across) {
    for (uint32_t i = range.begin; i < range.writes; ++i) take(program_.effects[i], s.mask);
    if (lanes && in.op == Op::alu) lanes &= ~settled(s);
    if (across && lanes) lanes = s.mask;
  }
  uint32_t of = s.mask;
  if (in.guard >= 0 && (at(s.warp, in.guard) & s.current)) {
    take(in.guard, s.current);
    of |= lanes;
  }
  for (uint32_t i = range.writes; i < range.end; ++i)
    registers_.mark(s.warp, program_.effects[i], lanes, origin, of);
}

// Runs the shuffle's handler on masks instead of values, and restores the registers.
void Undefined::shuffle(const Step& s) {
  const Inst& in = s.in;
  const uint32_t m = at(s.warp, in.a), p = at(s.warp, in.b) | at(s.warp, in.c);
  const uint16_t origin = registers_.origin_index(s.warp, m ? in.a : in.b);
  uint32_t moved = p ? s.mask : 0;
  if (m && !p) {
    uint32_t a[32], d[32], e = 0;
    std::memcpy(a, s.registers + in.a, sizeof a);
    std::memcpy(d, s.registers + in.d, sizeof d);
    if (in.e >= 0) std::memcpy(&e, s.registers + in.e, 4);
    auto* value = reinterpret_cast<uint32_t*>(s.registers + in.a);
    for (int lane = 0; lane < 32; ++lane) value[lane] = m >> lane & 1;
    in.masked(s.registers, in, s.mask);
    const auto* result = reinterpret_cast<const uint32_t*>(s.registers + in.d);
    for (int lane = 0; lane < 32; ++lane) moved |= (result[lane] & 1) << lane;
    moved &= s.mask;
    std::memcpy(s.registers + in.d, d, sizeof d);
    std::memcpy(s.registers + in.a, a, sizeof a);
    if (in.e >= 0) std::memcpy(s.registers + in.e, &e, 4);
  }
  registers_.mark(s.warp, in.d, moved, origin, s.mask);
  if (in.e >= 0) registers_.mark(s.warp, in.e, p ? s.mask : 0, origin, s.mask);
}

void Undefined::clear(const Step& s) {
  for (int k = 0; k < s.in.vec; ++k) {
    if (s.in.v[k] >= 0) registers_.mark(s.warp, s.in.v[k], 0, 0, s.mask);
  }
}

void Undefined::load(const Step& s, const uint8_t* state, const uint64_t* at,
                     const Origin& origin) {
  const uint32_t size = s.in.size;
  for (int k = 0; k < s.in.vec; ++k) {
    if (s.in.v[k] < 0) continue;
    uint32_t lanes = 0;
    Origin o = origin;
    for (uint32_t m = s.mask; m; m &= m - 1) {
      const int lane = std::countr_zero(m);
      each_word(at[lane] + uint64_t(k) * size, size, [&](uint64_t w) {
        if (state[w] == UndefinedMemory::kWritten) return;
        if (!lanes) {
          o.thread = s.warp * 32 + lane, o.copied = state[w] == UndefinedMemory::kCopy;
          o.at = at[lane] + uint64_t(k) * size - origin.at;
        }
        lanes |= 1u << lane;
      });
    }
    if (!lanes) continue;
    registers_.start();
    o.pc = s.pc;
    registers_.mark(s.warp, s.in.v[k], lanes, registers_.add_origin(o), s.mask);
  }
}

}  // namespace cutegen::ptx
