// SPDX-License-Identifier: Apache-2.0
// Loads, stores and atomics of a warp: space, checks, counters, transfer.
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>

#include "base/text.h"
#include "ptx/execute/cta.h"
#include "ptx/ops/atomic.h"

namespace cutegen::ptx {
namespace {

bool in_window(uint64_t address, uint64_t window) {
  return address - window < kWindowBytes;
}

uint64_t window_of(Space space) {
  return space == Space::shared  ? kSharedWindow
         : space == Space::local ? kLocalWindow
         : space == Space::param ? kParamWindow
                                 : 0;
}

Space space_of(uint64_t address) {
  if (in_window(address, kSharedWindow)) return Space::shared;
  if (in_window(address, kLocalWindow)) return Space::local;
  if (in_window(address, kParamWindow)) return Space::param;
  return Space::global;
}

AddressSummary summarize(const uint64_t* at, uint32_t mask) {
  AddressSummary s;
  s.low = ~uint64_t{0};
  for (uint32_t m = mask; m; m &= m - 1) {
    const uint64_t a = at[std::countr_zero(m)];
    s.low = std::min(s.low, a), s.high = std::max(s.high, a), s.bits |= a;
  }
  s.uniform = s.low == s.high;
  return s;
}

template <class M, class R>
void load_lanes(std::byte* to, const std::byte* zero, const uint64_t* at, uint32_t mask) {
  R* out = reinterpret_cast<R*>(to);
  if (mask == ~0u) {
    for (int lane = 0; lane < 32; ++lane) {
      M m;
      std::memcpy(&m, zero + at[lane], sizeof m);
      out[lane] = R(m);
    }
    return;
  }
  for (uint32_t rest = mask; rest; rest &= rest - 1) {
    const int lane = std::countr_zero(rest);
    M m;
    std::memcpy(&m, zero + at[lane], sizeof m);
    out[lane] = R(m);
  }
}
template <class M>
void store_lanes(const std::byte* from, int step, std::byte* zero, const uint64_t* at,
                 uint32_t mask) {
  for (uint32_t rest = mask; rest; rest &= rest - 1) {
    const int lane = std::countr_zero(rest);
    std::memcpy(zero + at[lane], from + lane * step, sizeof(M));
  }
}

template <class R>
void load_any(const Inst& in, std::byte* to, const std::byte* zero, const uint64_t* at,
              uint32_t mask) {
  switch (in.size * 2 + in.sign) {
    case 2:
      return load_lanes<uint8_t, R>(to, zero, at, mask);
    case 3:
      return load_lanes<int8_t, R>(to, zero, at, mask);
    case 4:
      return load_lanes<uint16_t, R>(to, zero, at, mask);
    case 5:
      return load_lanes<int16_t, R>(to, zero, at, mask);
    case 8:
      return load_lanes<uint32_t, R>(to, zero, at, mask);
    case 9:
      return load_lanes<int32_t, R>(to, zero, at, mask);
    default:
      return load_lanes<uint64_t, R>(to, zero, at, mask);
  }
}

// Consecutive vectors of V elements: element k of lane i is at i * V + k.
template <class T, int V>
void deinterleave(std::byte* registers, const int32_t* v, const std::byte* from) {
  const T* in = reinterpret_cast<const T*>(from);
  for (int k = 0; k < V; ++k) {
    if (v[k] < 0) continue;
    T* out = reinterpret_cast<T*>(registers + v[k]);
    for (int lane = 0; lane < 32; ++lane) out[lane] = in[lane * V + k];
  }
}
template <class T, int V>
void interleave(const std::byte* registers, const int32_t* v, std::byte* to) {
  T* out = reinterpret_cast<T*>(to);
  for (int k = 0; k < V; ++k) {
    const T* in = reinterpret_cast<const T*>(registers + v[k]);
    for (int lane = 0; lane < 32; ++lane) out[lane * V + k] = in[lane];
  }
}
bool vector_block(const Inst& in, std::byte* r, std::byte* memory) {
  const bool load = in.op == Op::load;
  auto go = [&]<class T, int V>() {
    if (load)
      deinterleave<T, V>(r, in.v, memory);
    else
      interleave<T, V>(r, in.v, memory);
    return true;
  };
  switch (in.size * 8 + in.vec) {
    case 34:
      return go.operator()<uint32_t, 2>();
    case 36:
      return go.operator()<uint32_t, 4>();
    case 66:
      return go.operator()<uint64_t, 2>();
    case 18:
      return go.operator()<uint16_t, 2>();
    case 20:
      return go.operator()<uint16_t, 4>();
    default:
      return false;
  }
}

const char* space_name(Space space) {
  switch (space) {
    case Space::shared:
      return "shared memory";
    case Space::local:
      return "local memory";
    case Space::param:
      return "the parameters";
    default:
      return "global memory";
  }
}

}  // namespace

bool Cta::access(Warp& w, const Inst& in, uint32_t mask) {
  if (in.constant_address && in.space == Space::param && mask == ~0u && parameter(w, in))
    return true;
  alignas(64) uint64_t at[32];
  const uint64_t bytes = uint64_t(in.size) * in.vec;
  AddressSummary s = forms_.addresses(w.registers + in.a, in.wide_address, in.imm, bytes, mask, at);
  if (s.bits & (bytes - 1) && !(s.contiguous && (s.low & (bytes - 1)) == 0)) {
    return fault(w, in, mask, in.space, at);
  }
  if (in.space != Space::generic) return access_at(w, in, mask, in.space, s, at);
  const Space space = space_of(s.low);
  if (space != space_of(s.high)) return mixed(w, in, mask, at);
  if (const uint64_t window = window_of(space)) {
    for (int lane = 0; lane < 32; ++lane) at[lane] -= window;
    s.low -= window, s.high -= window;
  }
  return access_at(w, in, mask, space, s, at);
}

// A parameter at a known place: read once, given to all lanes. False: not this simple.
bool Cta::parameter(Warp& w, const Inst& in) {
  uint64_t at = 0, value = 0;
  std::memcpy(&at, w.registers + in.a, 8);
  at += uint64_t(in.imm);
  const bool simple = in.op == Op::load && in.vec == 1 && in.v[0] >= 0 && in.size == in.reg_size &&
                      at % in.size == 0;
  if (!simple || at > job_.params.size() || job_.params.size() - at < in.size) return false;
  std::memcpy(&value, job_.params.data() + at, in.size);
  fill(w, in.v[0], in.size, value);
  return true;
}

// Generic addresses of several spaces in one instruction: one space after another.
bool Cta::mixed(Warp& w, const Inst& in, uint32_t mask, uint64_t* at) {
  for (Space space : {Space::global, Space::shared, Space::local, Space::param}) {
    uint32_t part = 0;
    uint64_t moved[32];
    for (uint32_t m = mask; m; m &= m - 1) {
      const int lane = std::countr_zero(m);
      if (space_of(at[lane]) != space) continue;
      part |= 1u << lane;
      moved[lane] = at[lane] - window_of(space);
    }
    if (part && !access_at(w, in, part, space, summarize(moved, part), moved)) return false;
  }
  return true;
}

bool Cta::access_at(Warp& w, const Inst& in, uint32_t mask, Space space, const AddressSummary& s,
                    uint64_t* at) {
  const uint64_t bytes = uint64_t(in.size) * in.vec, end = s.high + bytes;
  if (end < s.high) return fault(w, in, mask, space, at);
  if (space == Space::shared) {
    if (end > shared_.size()) return fault(w, in, mask, space, at);
    if (copies_in_flight_ && !delivering_ && copy_pending(w, in, mask, s, at)) return false;
    counting_->shared(w.current.pc, in, mask, s, at);
    if (hazards_ && !check_shared(w, in, mask, s, at)) return false;
    transfer(w, in, mask, s, at, shared_.data());
    return !races_ || s.contiguous || in.op != Op::store ||
           check_lanes(w, in, mask, at, shared_.data(), space, nullptr);
  }
  if (space == Space::local) return local(w, in, mask, s, at);
  if (space == Space::param) {
    if (end > job_.params.size() || in.op != Op::load) return fault(w, in, mask, space, at);
    transfer(w, in, mask, s, at, job_.params.data());
    return true;
  }
  const Buffer*& cached = last_[w.current.pc & 15];
  if (!cached || !cached->holds(s.low)) cached = job_.memory.find(s.low);
  const Buffer* b = cached;
  if (b && end - b->base <= b->size) {
    if (in.op != Op::load && b->access == Access::read_only) return fault(w, in, mask, space, at);
    if (in.space != Space::constant) counting_->global(w.current.pc, in, mask, s, at, index_of(b));
    return transfer_global(w, in, mask, s, at, b);
  }
  return scattered(w, in, mask, at);
}

// Lanes in several buffers.
bool Cta::scattered(Warp& w, const Inst& in, uint32_t mask, uint64_t* at) {
  const uint64_t bytes = uint64_t(in.size) * in.vec;
  const Buffer* of[32] = {};
  for (uint32_t m = mask; m; m &= m - 1) {
    const int lane = std::countr_zero(m);
    const Buffer* b = job_.memory.find(at[lane]);
    const bool bad = !b || at[lane] + bytes - b->base > b->size ||
                     (in.op != Op::load && b->access == Access::read_only);
    if (bad) return fault(w, in, mask, Space::global, at);
    of[lane] = b;
  }
  for (uint32_t rest = mask; rest;) {
    const Buffer* b = of[std::countr_zero(rest)];
    uint32_t part = 0;
    for (uint32_t m = rest; m; m &= m - 1) {
      if (of[std::countr_zero(m)] == b) part |= 1u << std::countr_zero(m);
    }
    rest &= ~part;
    const AddressSummary s = summarize(at, part);
    if (in.space != Space::constant) counting_->global(w.current.pc, in, part, s, at, index_of(b));
    if (!transfer_global(w, in, part, s, at, b)) return false;
  }
  return true;
}

bool Cta::transfer_global(Warp& w, const Inst& in, uint32_t mask, const AddressSummary& s,
                          const uint64_t* at, const Buffer* b) {
  if (hazards_ && !check_global(w, in, mask, s, at, b)) return false;
  transfer(w, in, mask, s, at, b->data - b->base);
  if (!races_) return true;
  if (in.op != Op::store && (in.ordered || in.d >= 0)) hazards_->global->acquire();
  return s.contiguous || in.op != Op::store ||
         check_lanes(w, in, mask, at, b->data - b->base, Space::global, b);
}

bool Cta::local(Warp& w, const Inst& in, uint32_t mask, const AddressSummary& s,
                const uint64_t* at) {
  const uint64_t bytes = uint64_t(in.size) * in.vec, size = uint64_t(job_.program.local_bytes);
  if (s.high + bytes > size || in.op == Op::atomic) return fault(w, in, mask, Space::local, at);
  counting_->local(w.current.pc, in, mask, s, at);
  uint64_t moved[32];
  for (int lane = 0; lane < 32; ++lane) moved[lane] = at[lane] + size * uint64_t(lane);
  AddressSummary scattered = s;
  scattered.contiguous = scattered.uniform = false;
  if (hazards_ && hazards_->undefined) {
    note_defined(w, in, mask, mask, scattered, moved, hazards_->undefined->local(w.index), nullptr,
                 {.space = Space::local});
  }
  transfer(w, in, mask, scattered, moved, local_.data() + size * 32 * size_t(w.index));
  return true;
}

// `zero` is where address 0 would be.
void Cta::transfer(Warp& w, const Inst& in, uint32_t mask, const AddressSummary& s,
                   const uint64_t* at, std::byte* zero) {
  if (in.op == Op::atomic) {
    const bool changed = atomics(w, in, mask, at, zero);
    return note_poll(w, in, s.low, changed);
  }
  if (in.ordered || (in.op == Op::store && w.spins)) note_poll(w, in, s.low, in.op == Op::store);
  if (s.contiguous && in.size == in.reg_size) {
    std::byte* memory = zero + s.low;
    if (in.vec == 1 && in.v[0] >= 0) {
      std::byte* r = w.registers + in.v[0];
      const size_t n = size_t(in.size) * 32;
      if (in.op == Op::load)
        std::memcpy(r, memory, n);
      else
        std::memcpy(memory, r, n);
      return;
    }
    if (in.vec > 1 && vector_block(in, w.registers, memory)) return;
  }
  for (int k = 0; k < in.vec; ++k) {
    if (in.v[k] < 0) continue;
    std::byte* r = w.registers + in.v[k];
    std::byte* base = zero + k * in.size;
    if (in.op == Op::load) {
      switch (in.reg_size) {
        case 2:
          load_any<uint16_t>(in, r, base, at, mask);
          break;
        case 4:
          load_any<uint32_t>(in, r, base, at, mask);
          break;
        default:
          load_any<uint64_t>(in, r, base, at, mask);
          break;
      }
      continue;
    }
    switch (in.size) {
      case 1:
        store_lanes<uint8_t>(r, in.reg_size, base, at, mask);
        break;
      case 2:
        store_lanes<uint16_t>(r, in.reg_size, base, at, mask);
        break;
      case 4:
        store_lanes<uint32_t>(r, in.reg_size, base, at, mask);
        break;
      default:
        store_lanes<uint64_t>(r, in.reg_size, base, at, mask);
        break;
    }
  }
}

// Whether memory may have changed.
bool Cta::atomics(Warp& w, const Inst& in, uint32_t mask, const uint64_t* at, std::byte* zero) {
  auto value = [&](int32_t slot, int lane) {
    uint64_t v = 0;
    if (slot >= 0) std::memcpy(&v, w.registers + slot + lane * in.size, in.size);
    return v;
  };
  bool changed = false;
  auto type = AtomicType(in.e);
  if (type == AtomicType::f32 && zero != shared_.data()) type = AtomicType::f32_flushed;
  for (uint32_t m = mask; m; m &= m - 1) {
    const int lane = std::countr_zero(m);
    const uint64_t b = value(in.b, lane);
    if (job_.pulls && in.pulls && zero != shared_.data() && b != 0) {
      const uint64_t others = job_.pulls->before(zero + at[lane], in.size);
      atomic_apply(AtomicOp::add, type, zero + at[lane], b * others, 0);
    }
    const uint64_t old =
        atomic_apply(AtomicOp(in.sub), type, zero + at[lane], b, value(in.c, lane));
    const auto op = AtomicOp(in.sub);
    changed = changed ||
              (op == AtomicOp::cas || op == AtomicOp::exch ? (op == AtomicOp::cas) == (old == b)
                                                           : b != 0);
    if (in.d >= 0) std::memcpy(w.registers + in.d + lane * in.size, &old, in.size);
  }
  return changed;
}

// Names the first lane at fault and why.
bool Cta::fault(Warp& w, const Inst& in, uint32_t mask, Space space, const uint64_t* at) {
  const uint64_t bytes = uint64_t(in.size) * in.vec;
  const char* what = in.op == Op::load ? "read" : in.op == Op::store ? "write" : "atomic";
  for (uint32_t m = mask; m; m &= m - 1) {
    const int lane = std::countr_zero(m);
    const uint64_t a = at[lane];
    finding_.address = a;
    if (a & (bytes - 1)) {
      const Buffer* b =
          space == Space::global || space == Space::generic ? job_.memory.find(a) : nullptr;
      if (b) finding_.buffer = b->name;
      return report(
          w, "misaligned",
          fmt::format("{} of {} bytes at {}{:#x}, which is no multiple of {}", what, bytes,
                      b ? "offset " + std::to_string(a - b->base) + " of " + b->name + ", address "
                        : "address ",
                      a, bytes),
          lane);
    }
    if (space == Space::shared || space == Space::local || space == Space::param) {
      const uint64_t size = space == Space::shared  ? shared_.size()
                            : space == Space::local ? uint64_t(job_.program.local_bytes)
                                                    : job_.params.size();
      if (a + bytes <= size && a + bytes > a && (space != Space::param || in.op == Op::load) &&
          (space != Space::local || in.op != Op::atomic))
        continue;
      finding_.buffer = space_name(space);
      return report(w, "out_of_bounds",
                    fmt::format("{} of {} bytes at offset {} of {}, which has {} bytes", what,
                                bytes, a, space_name(space), size),
                    lane);
    }
    const Buffer* b = job_.memory.find(a);
    if (b && a + bytes - b->base <= b->size) {
      if (in.op == Op::load || b->access != Access::read_only) continue;
      finding_.buffer = b->name;
      return report(w, "read_only",
                    fmt::format("{} of {} bytes at offset {} of {}, which is read-only", what,
                                bytes, a - b->base, b->name),
                    lane);
    }
    if (a < 4096)
      return report(w, "null_pointer",
                    fmt::format("{} of {} bytes at address {:#x}", what, bytes, a), lane);
    const Buffer* near = b ? b : job_.memory.nearest(a);
    finding_.buffer = near ? near->name : "";
    const std::string offset = !near ? "no buffer is bound"
                               : a < near->base
                                   ? fmt::format("{} bytes before {}", near->base - a, near->name)
                                   : fmt::format("at offset {} of {}, which has {} bytes",
                                                 a - near->base, near->name, near->size);
    return report(w, "out_of_bounds", fmt::format("{} of {} bytes {}", what, bytes, offset), lane);
  }
  return report(w, "out_of_bounds", fmt::format("{} of {} bytes", what, bytes),
                std::countr_zero(mask));
}

}  // namespace cutegen::ptx
