// SPDX-License-Identifier: Apache-2.0
#include "ptx/cta/cta_slice.h"

#include <algorithm>
#include <cstring>
#include <string_view>
#include <utility>

#include "ptx/model/store_paths.h"

namespace cutegen::ptx {
namespace {

constexpr int32_t kWarpLanes = 32;
constexpr int32_t kPredicateBytes = 4, kLeastRegisterBytes = 2 * kWarpLanes;

bool loads_parameter(const Inst& in) {
  return in.op == Op::load && in.space == Space::param && in.constant_address && in.vec == 1 &&
         in.v[0] >= 0 && in.size == in.reg_size;
}

bool computes_with_data(const Inst& in) {
  return in.kind == Kind::fp32 || in.kind == Kind::fma || in.kind == Kind::half ||
         in.kind == Kind::fp64 || in.kind == Kind::sfu;
}

Compared compared_as(std::string_view opcode) {
  static constexpr std::pair<std::string_view, Compared> kinds[] = {
      {".s16", Compared::s16}, {".u16", Compared::u16}, {".b16", Compared::u16},
      {".s32", Compared::s32}, {".u32", Compared::u32}, {".b32", Compared::u32},
      {".s64", Compared::s64}, {".u64", Compared::u64}, {".b64", Compared::u64},
      {".f32", Compared::f32}, {".f64", Compared::f64}};
  for (const auto& [end, type] : kinds)
    if (opcode.ends_with(end)) return type;
  return Compared::none;
}

template <class F>
void each_read(const Program& p, size_t pc, F f) {
  const auto& range = p.effect_of[pc];
  for (uint32_t i = range.begin; i < range.writes; ++i) f(p.effects[i]);
}
template <class F>
void each_write(const Program& p, size_t pc, F f) {
  const auto& range = p.effect_of[pc];
  for (uint32_t i = range.writes; i < range.end; ++i) f(p.effects[i]);
}

template <class F>
std::vector<int32_t> conditions_of(const Program& p, F is_known) {
  std::vector<int32_t> out;
  for (const Inst& in : p.code)
    if ((in.op == Op::branch || in.op == Op::exit || in.op == Op::store) && is_known(in.guard) &&
        out.size() < StorePaths::kMostPredicates && std::ranges::find(out, in.guard) == out.end())
      out.push_back(in.guard);
  return out;
}

}  // namespace

uint8_t dependence(Special which) {
  auto between = [which](Special first, Special last) { return which >= first && which <= last; };
  if (between(Special::ctaid_x, Special::ctaid_z)) return kByCta;
  if (between(Special::clusterid_x, Special::cluster_ctarank)) return kByCta;
  const bool lane = which == Special::laneid || which == Special::warpid ||
                    between(Special::lanemask_eq, Special::lanemask_gt);
  return lane || between(Special::tid_x, Special::tid_z) ? kByThread : 0;
}

CtaSlice::CtaSlice(const Program& program, Of of) : p_(program) {
  for (size_t pc = 0; pc < p_.code.size(); ++pc)
    each_write(p_, pc, [&](int32_t s) { writers_[s].push_back(pc); });
  for (const SlotRange& s : p_.zeroed)
    writers_.erase(s.offset);  // may be read before it is written
  find_counters();
  if (of == Of::decisions) {
    find_decisions();
    find_factors();
  } else {
    find_stores();
    conditions = conditions_of(p_, [this](int32_t predicate) {
      auto at = known_.find(predicate);
      return at != known_.end() && !(at->second.depends & kByLoop);
    });
  }
  keep_needed();
}

bool CtaSlice::is_plain(size_t pc) const {
  const Inst& in = p_.code[pc];
  return in.guard < 0 && (in.op == Op::alu || loads_parameter(in));
}

bool CtaSlice::knows(size_t pc) const {
  bool all = true;
  each_read(p_, pc, [&](int32_t s) { all = all && known_.contains(s); });
  return all;
}

uint8_t CtaSlice::depends_of(size_t pc) const {
  uint8_t out = 0;
  each_read(p_, pc, [&](int32_t s) { out |= known_.at(s).depends; });
  return out;
}

// Assumes that each register with two writers is a counter, and drops those that are not.
void CtaSlice::find_counters() {
  for (const auto& [slot, pcs] : writers_)
    if (pcs.size() == 2 && is_plain(pcs[0]) && is_plain(pcs[1]))
      counters.push_back({.slot = slot, .first = pcs[0], .next = pcs[1]});
  std::sort(counters.begin(), counters.end(),
            [](const Counter& a, const Counter& b) { return a.first < b.first; });
  for (bool more = true; more;) {
    spread();
    const size_t dropped = std::erase_if(counters, [&](const Counter& c) {
      return !knows(c.first) || !knows(c.next) || (depends_of(c.first) & kByLoop);
    });
    more = dropped > 0;
    for (Counter& c : counters) {
      const uint8_t now =
          dropped > 0 ? kByLoop : uint8_t(c.depends | depends_of(c.first) | depends_of(c.next));
      more = more || now != c.depends;
      c.depends = now;
    }
  }
}

// Finds the instructions whose operands are all known.
void CtaSlice::spread() {
  known_.clear(), order_.clear();
  for (const ConstantSlot& c : p_.constants) known_[c.offset] = {};
  for (const SpecialSlot& s : p_.specials) known_[s.offset] = {.depends = dependence(s.which)};
  for (const Counter& c : counters) known_[c.slot] = {.depends = c.depends};
  std::vector<char> done(p_.code.size());
  for (bool more = true; more;) {
    more = false;
    for (size_t pc = 0; pc < p_.code.size(); ++pc) {
      if (done[pc] || !is_plain(pc) || !knows(pc)) continue;
      bool single = true;
      each_write(p_, pc, [&](int32_t s) {
        auto at = writers_.find(s);
        single = single && at != writers_.end() && at->second.size() == 1;
      });
      if (!single) continue;
      const Value value{.depends = depends_of(pc), .pc = int64_t(pc)};
      each_write(p_, pc, [&](int32_t s) { known_[s] = value; });
      order_.push_back(pc);
      done[pc] = 1, more = true;
    }
  }
}

int32_t CtaSlice::bytes_of(int32_t slot) const {
  auto at = std::lower_bound(p_.registers.begin(), p_.registers.end(), slot,
                             [](const SlotRange& r, int32_t s) { return r.offset < s; });
  return at == p_.registers.end() || at->offset != slot ? 0 : at->bytes;
}

// `written`: the register that the decision determines.
void CtaSlice::add(int32_t written, Decision decision) {
  decision.depends = known_.at(decision.slot).depends;
  if (decision.other >= 0) decision.depends |= known_.at(decision.other).depends;
  if (!(decision.depends & kByCta) || !decided_.insert(written).second) return;
  if (guards_.contains(written)) decision.guard = written;
  depends_on_threads = depends_on_threads || (decision.depends & kByThread);
  decisions.push_back(decision);
}

void CtaSlice::add_zero(int32_t slot) {
  const int32_t bytes = bytes_of(slot);
  if (bytes < kLeastRegisterBytes) return;
  add(slot, {.of = Decision::Of::zero, .slot = slot, .bytes = bytes / kWarpLanes});
}

void CtaSlice::find_decisions() {
  for (const Inst& in : p_.code)
    if (in.op == Op::branch && in.guard >= 0) guards_.insert(in.guard);
  std::vector<size_t> pcs = order_;
  for (const Counter& c : counters) pcs.push_back(c.first), pcs.push_back(c.next);
  for (size_t pc : pcs) {
    const std::string_view opcode = p_.lines[pc].opcode;
    const Inst& in = p_.code[pc];
    const bool compares =
        opcode.starts_with("setp.") || opcode.starts_with("min.") || opcode.starts_with("max.");
    const bool bits = opcode.starts_with("shr.") || opcode.starts_with("bfe.");
    const Compared as = compares ? compared_as(opcode) : Compared::none;
    each_write(p_, pc, [&](int32_t s) {
      if (as != Compared::none && in.a >= 0 && in.b >= 0)
        add(s, {.of = Decision::Of::order, .slot = in.a, .other = in.b, .as = as});
      if (bytes_of(s) == kPredicateBytes) add(s, {.slot = s});
      if (bits) add_zero(s);
    });
  }
}

// If arithmetic on data has a known operand, adds a decision: whether the operand, perhaps a
// factor, is zero.
void CtaSlice::find_factors() {
  for (size_t pc = 0; pc < p_.code.size(); ++pc) {
    if (!computes_with_data(p_.code[pc]) || knows(pc)) continue;
    each_read(p_, pc, [&](int32_t s) {
      if (known_.contains(s)) add_zero(s);
    });
  }
}

void CtaSlice::find_stores() {
  for (size_t pc = 0; pc < p_.code.size(); ++pc) {
    const Inst& in = p_.code[pc];
    if (in.op != Op::store || in.a < 0 || in.constant_address || !in.wide_address) continue;
    auto at = known_.find(in.a);
    if (at != known_.end()) stores.push_back({.pc = pc, .depends = at->second.depends});
  }
}

void CtaSlice::keep_needed() {
  std::unordered_set<int64_t> needed;
  std::unordered_set<int32_t> seen;
  std::vector<int32_t> work;
  auto add_operands = [&](size_t pc) { each_read(p_, pc, [&](int32_t s) { work.push_back(s); }); };
  for (const Decision& d : decisions)
    for (int32_t slot : {d.slot, d.other, d.guard})
      if (slot >= 0) work.push_back(slot);
  for (const StorePlace& store : stores) work.push_back(p_.code[store.pc].a);
  work.insert(work.end(), conditions.begin(), conditions.end());
  while (!work.empty()) {
    const int32_t slot = work.back();
    work.pop_back();
    if (!seen.insert(slot).second) continue;
    for (const Counter& c : counters)
      if (c.slot == slot) add_operands(c.first), add_operands(c.next);
    const int64_t pc = known_.at(slot).pc;
    if (pc >= 0 && needed.insert(pc).second) add_operands(size_t(pc));
  }
  std::erase_if(counters, [&](const Counter& c) { return !seen.contains(c.slot); });
  for (size_t pc : order_) {
    if (!needed.contains(int64_t(pc))) continue;
    const uint8_t depends = depends_of(pc);
    (depends & kByLoop     ? by_loop
     : depends & kByThread ? by_thread
     : depends & kByCta    ? by_cta
                           : once)
        .push_back(pc);
  }
}

void SliceValues::run(size_t pc) {
  const Inst& in = job_.program.code[pc];
  ++steps_;
  if (in.op == Op::load) return load(in);
  (in.full ? in.full : in.masked)(registers_, in, ~0u);
}

void SliceValues::load(const Inst& in) {
  uint64_t at = 0, value = 0;
  std::memcpy(&at, registers_ + in.a, sizeof at);
  at += uint64_t(in.imm);
  if (at > job_.params.size() || job_.params.size() - at < in.size) return;
  std::memcpy(&value, job_.params.data() + at, in.size);
  fill_register(registers_, in.v[0], in.size, value);
}

void SliceValues::set_ctas(const Ctas& ctas) {
  const auto& g = job_.config.grid;
  for (size_t lane = 0; lane < kLanes; ++lane) {
    const int64_t n = ctas[lane];
    const std::array<int64_t, 3> at{n % g[0], n / g[0] % g[1], n / (g[0] * g[1])};
    for (const SpecialSlot& s : job_.program.specials)
      if (dependence(s.which) == kByCta) set_lane(s, lane, cta_value(s.which, at));
  }
}

void SliceValues::set_lane(const SpecialSlot& s, size_t lane, int64_t value) {
  const auto word = uint32_t(value);
  std::memcpy(registers_ + size_t(s.offset) + 4 * lane, &word, sizeof word);
}

int64_t SliceValues::cta_value(Special which, const std::array<int64_t, 3>& at) const {
  const auto& c = job_.config.cluster;
  if (which == Special::cluster_ctarank) return job_.rank_of(at);
  if (which <= Special::ctaid_z) return at[size_t(which) - size_t(Special::ctaid_x)];
  const bool within = which >= Special::cluster_ctaid_x;
  const size_t axis =
      size_t(which) - size_t(within ? Special::cluster_ctaid_x : Special::clusterid_x);
  return within ? at[axis] % c[axis] : at[axis] / c[axis];
}

void SliceValues::set_thread(int64_t thread) {
  for (const SpecialSlot& s : job_.program.specials)
    if (dependence(s.which) == kByThread)
      fill_register(registers_, s.offset, 4, thread_value(s.which, thread));
}

uint32_t SliceValues::thread_value(Special which, int64_t thread) const {
  const auto& b = job_.config.block;
  const auto lane = uint32_t(thread % 32);
  switch (which) {
    case Special::tid_x:
      return uint32_t(thread % b[0]);
    case Special::tid_y:
      return uint32_t(thread / b[0] % b[1]);
    case Special::tid_z:
      return uint32_t(thread / (b[0] * b[1]));
    case Special::laneid:
      return lane;
    case Special::warpid:
      return uint32_t(thread / 32);
    case Special::lanemask_eq:
      return 1u << lane;
    case Special::lanemask_lt:
      return (1u << lane) - 1;
    case Special::lanemask_le:
      return (2u << lane) - 1;
    case Special::lanemask_ge:
      return ~((1u << lane) - 1);
    default:
      return ~((2u << lane) - 1);
  }
}

}  // namespace cutegen::ptx
