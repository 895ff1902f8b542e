// SPDX-License-Identifier: Apache-2.0
// What the checks are asked, and how their answers become findings.
#include <fmt/format.h>

#include <bit>
#include <cstring>
#include <utility>

#include "base/text.h"
#include "ptx/checks/hazards.h"
#include "ptx/checks/lanes.h"
#include "ptx/execute/cta.h"

namespace cutegen::ptx {
namespace {

const char* verb(Touch touch) {
  return touch == Touch::read ? "read" : touch == Touch::write ? "write" : "atomic operation";
}

// Lanes of a store that leave memory as it is.
uint32_t unchanged(const std::byte* registers, const Inst& in, uint32_t mask, const uint64_t* at,
                   const std::byte* zero) {
  uint32_t out = 0;
  if (in.op != Op::store) return 0;
  for (uint32_t m = mask; m; m &= m - 1) {
    const int lane = std::countr_zero(m);
    bool same = true;
    for (int k = 0; k < in.vec; ++k) {
      same = same && std::memcmp(zero + at[lane] + k * in.size,
                                 registers + in.v[k] + lane * in.reg_size, in.size) == 0;
    }
    out |= uint32_t(same) << lane;
  }
  return out;
}

}  // namespace

// The other side of a race, for the report; lane -1: some thread of the warp.
void Cta::name_party(int32_t pc, int warp, int lane, const std::array<int64_t, 3>& cta) {
  Finding::Party p;
  if (pc >= 0) {
    const SourceLine& line = job_.program.lines[size_t(pc)];
    p.ptx_line = line.line, p.source_line = line.source_line;
  }
  p.cta = cta, p.thread = warp * 32 + std::max(0, lane);
  finding_.other = p;
}

bool Cta::follow(Warp& w, const Inst& in, uint32_t mask) {
  auto trouble =
      hazards_->undefined->follow({w.registers, in, w.current.pc, w.index, mask, w.current.mask});
  if (!trouble) return true;
  return report_undefined(w, trouble->origin, fmt::format("{} depends on", trouble->what),
                          trouble->lane);
}

bool Cta::report_undefined(Warp& w, const Origin& o, const std::string& what, int lane) {
  std::string source = "a register";
  if (o.space == Space::shared || o.space == Space::local)
    source =
        fmt::format("{} memory at offset {}", o.space == Space::shared ? "shared" : "local",
                    o.space == Space::shared ? o.at : o.at % uint64_t(job_.program.local_bytes));
  if (o.space == Space::global)
    source = fmt::format("{} at offset {}", job_.memory.buffers[size_t(o.buffer)].name, o.at);
  name_party(o.pc, o.thread / 32, o.thread % 32, at_);
  return report(
      w, "uninitialised",
      fmt::format("{} {}, {} (read by thread {} at {})", what, source,
                  o.copied ? "which holds a value that nobody wrote" : "which nobody wrote",
                  o.thread, place(o.pc)),
      lane);
}

// Loads and stores of memory that has a state for each word; false: an undefined value is stored
// where it must not be.
void Cta::note_defined(Warp& w, const Inst& in, uint32_t mask, uint32_t lanes,
                       const AddressSummary& s, const uint64_t* at, uint8_t* state, size_t* left,
                       const Origin& origin) {
  Undefined& u = *hazards_->undefined;
  const uint32_t bytes = uint32_t(in.size) * in.vec;
  const Undefined::Step step{w.registers, in, w.current.pc, w.index, mask, w.current.mask};
  if (in.op != Op::load) {
    if (!left || *left || u.following()) u.store(step, state, s, at, left);
    return;
  }
  if (u.following()) u.clear(step);
  if ((!left || *left) && Undefined::suspicious(state, lanes, s, at, bytes)) {
    u.load(step, state, at, origin);
  }
}

bool Cta::check_shared(Warp& w, const Inst& in, uint32_t mask, const AddressSummary& s,
                       const uint64_t* at) {
  Hazards& h = *hazards_;
  Hazards::Seen& seen = h.seen(w.index, w.current.pc);
  const Hazards::Seen key{uint32_t(s.low), uint32_t(s.high), uint32_t(s.bits), uint32_t(at[1])};
  const bool again = mask == ~0u && seen.lanes && seen.low == key.low && seen.high == key.high &&
                     seen.bits == key.bits && seen.second == key.second;
  const uint32_t lanes = again ? seen.lanes : distinct_lanes(mask, s, at);
  if (!again) seen = key, seen.lanes = mask == ~0u ? lanes : 0;
  const bool written = again && seen.written;
  if (h.undefined && !(written && !h.undefined->following())) {
    note_defined(w, in, mask, lanes, s, at, h.undefined->shared(), h.undefined->shared_left(),
                 {.space = Space::shared});
    seen.written = !h.undefined->following();
  }
  if (!h.shared) return true;
  const uint32_t bytes = uint32_t(in.size) * in.vec;
  const Touch touch = touch_of(in);
  const bool orders = in.ordered || (touch == Touch::atomic && in.d >= 0);
  if (orders && h.clocks.vector()) {
    for (uint32_t m = mask; m; m &= m - 1) {
      const uint64_t place = at[std::countr_zero(m)];
      if (touch != Touch::write) h.clocks.acquire(w.index, place);
      if (touch != Touch::read) h.clocks.release(w.index, place);
    }
    if (h.global) h.global->join();
    if (in.ordered) return true;
  }
  const uint32_t bad = h.shared->touch(touch, w.index, w.current.pc, lanes, s, at, bytes);
  return bad == 0 || shared_race(w, in, bad, at);
}

bool Cta::shared_race(Warp& w, const Inst& in, uint32_t bad, const uint64_t* at) {
  bad &= ~unchanged(w.registers, in, bad, at, shared_.data());
  const Touch touch = touch_of(in);
  const uint32_t bytes = uint32_t(in.size) * in.vec;
  for (; bad; bad &= bad - 1) {
    const int lane = std::countr_zero(bad);
    const auto other = hazards_->shared->party(touch, w.index, at[lane], bytes);
    if (other.warp < 0) continue;
    const std::string who = other.lane >= 0 ? fmt::format("thread {}", other.warp * 32 + other.lane)
                                            : fmt::format("a thread of warp {}", other.warp);
    finding_.address = at[lane], finding_.buffer = "shared memory";
    name_party(other.pc, other.warp, other.lane, at_);
    return report(w, "shared_race",
                  fmt::format("{} of {} bytes at offset {} of shared memory by thread {} and the "
                              "{} by {}{} are not ordered by a barrier",
                              verb(touch), bytes, at[lane], w.index * 32 + lane,
                              other.wrote ? "write" : "read", who,
                              other.pc >= 0 ? " at " + place(other.pc) : ""),
                  lane);
  }
  return true;
}

bool Cta::check_global(Warp& w, const Inst& in, uint32_t mask, const AddressSummary& s,
                       const uint64_t* at, const Buffer* b) {
  Hazards& h = *hazards_;
  if (b->access == Access::read_only) return true;
  const size_t index = size_t(b - job_.memory.buffers.data());
  if (index >= h.launch.shadows.size()) return true;
  BufferShadow& shadow = h.launch.shadows[index];
  if (h.undefined && !stored_defined(w, in, mask, at, b)) return false;
  if (h.undefined && b->content != Content::given && shadow.defined.size()) {
    Origin origin{.space = Space::global, .at = b->base, .buffer = int32_t(index)};
    note_defined(w, in, mask, mask, s, at, shadow.defined.data() - b->base / 4, nullptr, origin);
  }
  if (!h.global) return true;
  const Touch touch = touch_of(in);
  if (job_.unsettled && b->base != job_.workspace && !(h.waited >> w.index & 1) &&
      shadow.writers.size() && !check_settled(w, in, mask, at, shadow, b))
    return false;
  if (touch != Touch::read && in.releases) h.global->publish();
  if (touch != Touch::read && (in.ordered || touch == Touch::atomic)) h.global->release();
  if (in.ordered && touch != Touch::atomic) return true;
  if (!shadow.writers.size()) return true;
  const GlobalAccess a{touch, w.index, w.current.pc, mask, s, at, uint32_t(in.size) * in.vec};
  const uint32_t bad = h.global->touch(a, shadow, b->base);
  return bad == 0 || global_race(w, in, bad, at, b);
}

// The launch before may still run: what it wrote is not there yet, what it reads must stay.
bool Cta::check_settled(Warp& w, const Inst& in, uint32_t mask, const uint64_t* at,
                        BufferShadow& shadow, const Buffer* b) {
  const int shift = hazards_->launch.facts.global_shift;
  const uint32_t now = hazards_->launch.epochs.first();
  auto unsettled = [&](uint32_t epoch) { return epoch >= job_.unsettled && epoch < now; };
  const Touch touch = touch_of(in);
  const uint64_t bytes = uint64_t(in.size) * in.vec;
  for (uint32_t m = mask; m; m &= m - 1) {
    const int lane = std::countr_zero(m);
    const uint64_t from = at[lane] - b->base;
    for (size_t g = from >> shift; g <= (from + bytes - 1) >> shift; ++g) {
      const bool written = unsettled(shadow.writers[g]);
      if (!written && (touch == Touch::read || !unsettled(shadow.readers[g]))) continue;
      finding_.address = at[lane], finding_.buffer = b->name;
      return report(
          w, "pdl_race",
          fmt::format("{} of {} bytes at offset {} of {} by thread {} before "
                      "griddepcontrol.wait: the step before, which {} them, may still run",
                      verb(touch), bytes, from, b->name, w.index * 32 + lane,
                      written ? "writes" : "reads"),
          lane);
    }
  }
  return true;
}

// What is stored for others to see must not depend on what nobody wrote.
bool Cta::stored_defined(Warp& w, const Inst& in, uint32_t mask, const uint64_t* at,
                         const Buffer* b) {
  const Undefined& u = *hazards_->undefined;
  if (in.op != Op::store || !u.following() || b->content == Content::scratch) return true;
  for (int k = 0; k < in.vec; ++k) {
    const uint32_t bad = u.mask_of(w.index, in.v[k]) & mask;
    if (!bad) continue;
    const int lane = std::countr_zero(bad);
    const Origin origin = u.origin_of(w.index, in.v[k]);
    const bool wait = origin.space == Space::shared && races_ && warps_.size() > 1;
    if (wait && pending_) return true;
    finding_.address = at[lane] + uint64_t(k) * in.size, finding_.buffer = b->name;
    report_undefined(w, origin,
                     fmt::format("the value stored to {} at offset {} depends on", b->name,
                                 finding_.address - b->base),
                     lane);
    if (!wait) return false;
    // A warp that came too early also races with the one that is to write: that says more.
    pending_ = std::exchange(finding_, {});
    status_ = LaunchStatus::ok;
    return true;
  }
  return true;
}

bool Cta::global_race(Warp& w, const Inst& in, uint32_t bad, const uint64_t* at, const Buffer* b) {
  bad &= ~unchanged(w.registers, in, bad, at, b->data - b->base);
  if (!bad) return true;
  const Epoch& e = hazards_->global->other();
  const int lane = std::countr_zero(bad);
  const auto& g = job_.config.grid;
  const std::array<int64_t, 3> cta{e.cta % g[0], e.cta / g[0] % g[1], e.cta / (g[0] * g[1])};
  const bool known = e.stride > 0 && at[lane] >= e.low && at[lane] - e.low < 32 * e.stride;
  const int other = known ? int((at[lane] - e.low) / e.stride) : -1;
  finding_.address = at[lane], finding_.buffer = b->name;
  name_party(e.pc, e.warp, other, cta);
  const std::string who = known ? fmt::format("thread {}", e.warp * 32 + other)
                                : fmt::format("a thread of warp {}", e.warp);
  const std::string where =
      e.cta == linear_ ? "" : fmt::format(" of CTA ({},{},{})", cta[0], cta[1], cta[2]);
  return report(w, "global_race",
                fmt::format("{} of {} bytes at offset {} of {} by thread {} and the {} by {}{} at "
                            "{} are not ordered",
                            verb(touch_of(in)), int(in.size) * in.vec, at[lane] - b->base, b->name,
                            w.index * 32 + lane, verb(e.touch), who, where, place(e.pc)),
                lane);
}

// After a store to places that are not side by side: two lanes may have written one place.
bool Cta::check_lanes(Warp& w, const Inst& in, uint32_t mask, const uint64_t* at,
                      const std::byte* zero, Space space, const Buffer* b) {
  uint32_t lost = mask & ~unchanged(w.registers, in, mask, at, zero);
  const uint64_t bytes = uint64_t(in.size) * in.vec;
  for (; lost; lost &= lost - 1) {
    const int lane = std::countr_zero(lost);
    for (uint32_t m = mask & ~(1u << lane); m; m &= m - 1) {
      const int other = std::countr_zero(m);
      if (at[other] >= at[lane] + bytes || at[lane] >= at[other] + bytes) continue;
      finding_.address = at[lane];
      finding_.buffer = b ? b->name : space == Space::shared ? "shared memory" : "";
      name_party(w.current.pc, w.index, other, at_);
      return report(w, b ? "global_race" : "shared_race",
                    fmt::format("threads {} and {} store different values to offset {} of {} in "
                                "one instruction",
                                w.index * 32 + lane, w.index * 32 + other,
                                at[lane] - (b ? b->base : 0), finding_.buffer),
                    lane);
    }
  }
  return true;
}

}  // namespace cutegen::ptx
