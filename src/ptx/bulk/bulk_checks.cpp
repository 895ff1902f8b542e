// SPDX-License-Identifier: Apache-2.0
#include "ptx/bulk/bulk_checks.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

namespace cutegen::ptx {
namespace {

constexpr uint64_t kMapAlign = 64;

bool writes(const BulkCopy& c) {
  return c.kind == BulkKind::store || c.kind == BulkKind::reduce;
}

const char* verb(const BulkCopy& c) {
  return c.kind == BulkKind::load     ? "a copy from"
         : c.kind == BulkKind::store  ? "a copy to"
         : c.kind == BulkKind::reduce ? "a reduction into"
                                      : "a prefetch of";
}

enum class Reduces { yes, illegal, not_simulated };

// The reductions into a tensor that an H200 supports. It treats the others as illegal instructions.
Reduces reduces(AtomicOp op, TensorType type) {
  using T = TensorType;
  const bool is_float = type >= T::f16, narrow = type == T::u8 || type == T::u16;
  const bool half = type == T::f16 || type == T::bf16;
  switch (op) {
    case AtomicOp::add:
      if (narrow || type == T::s64) return Reduces::illegal;
      return atomic_type_of(type) ? Reduces::yes : Reduces::not_simulated;
    case AtomicOp::min:
    case AtomicOp::max:
      if (half) return Reduces::yes;
      return narrow || is_float ? Reduces::illegal : Reduces::yes;
    case AtomicOp::inc:
    case AtomicOp::dec:
      return type == T::u32 ? Reduces::yes : Reduces::illegal;
    default:
      if (type == T::s32) return Reduces::not_simulated;
      return type == T::u32 || type == T::u64 ? Reduces::yes : Reduces::illegal;
  }
}

// Returns what is wrong with a copy of this many dimensions at `place`, or an empty string.
std::string wrong_place(uint32_t dimensions, BulkKind kind, const TensorMap& map,
                        const TensorPlace& place) {
  if (map.rank != dimensions)
    return fmt::format("a copy of {} dimensions with a tensor map of rank {}", dimensions,
                       map.rank);
  const int64_t first = int64_t{place[0]} * map.element();
  if (first % 16 != 0)
    return fmt::format("coordinate 0 is {}, {} bytes: it must be a multiple of 16 bytes", place[0],
                       first);
  for (size_t i = 0; i < map.rank && (kind == BulkKind::store || kind == BulkKind::reduce); ++i)
    if (place[i] < 0)
      return fmt::format("coordinate {} is {}: a copy to a tensor cannot begin before it", i,
                         place[i]);
  return {};
}

// Returns what is wrong with a copy of pixels, besides what wrong_place() finds. PTX encodes each
// offset of a filter tap in 16, 8 or 5 bits for 1, 2 or 3 spatial dimensions.
std::string wrong_pixel(const TensorMap& map, const TensorPlace& place,
                        const TensorOffsets& offsets) {
  static constexpr uint32_t kMostOffset[] = {65535, 255, 31};
  for (size_t i = 1; i + 1 < map.rank; ++i) {
    const PixelRange range = pixels_along(map, i);
    if (place[i] < range.first || place[i] > range.last)
      return fmt::format(
          "coordinate {} is {}: a copy in im2col mode must begin in the bounding box, {} to {}", i,
          place[i], range.first, range.last);
    if (const uint32_t most = kMostOffset[map.rank - 3]; offsets[i - 1] > most)
      return fmt::format("im2col offset {} is {} (0 to {} with {} spatial dimensions)", i - 1,
                         offsets[i - 1], most, map.rank - 2);
  }
  return {};
}

// Returns how the previous launch, which may still run before griddepcontrol.wait, accesses the
// bytes of a copy, if this conflicts with the copy. A warp that stores may know from an mbarrier
// that another warp has waited.
std::optional<Touch> conflict_before_wait(const CtaState& cta, const Warp& w, Touch touch,
                                          const Buffer& b, const BufferShadow& shadow, uint64_t at,
                                          uint32_t n) {
  const Hazards& h = *cta.hazards;
  const bool waited = touch == Touch::read ? h.waited >> w.index & 1 : h.waited != 0;
  if (!cta.job.unsettled || waited || b.base == cta.job.workspace) return std::nullopt;
  return h.launch.conflict(shadow, touch, cta.job.unsettled, at - b.base, n);
}

Finding before_wait(const BulkCopy& c, Touch other, const Buffer& b, uint64_t at, uint32_t n) {
  return {.kind = "pdl_race",
          .message = fmt::format("{} {} bytes at offset {} of {} before griddepcontrol.wait: the "
                                 "previous step, which {} them, may still run",
                                 verb(c), n, at - b.base, b.name,
                                 other == Touch::write ? "writes" : "reads"),
          .address = at,
          .buffer = b.name};
}

}  // namespace

void BulkChecks::fail(const Warp& w, int lane, const std::string& what) {
  cta_.report(w, lane, {.kind = "bad_bulk_copy", .message = what});
}

uint32_t bytes_of(AtomicType type) {
  switch (type) {
    case AtomicType::f16:
    case AtomicType::bf16:
    case AtomicType::b16:
      return 2;
    case AtomicType::u64:
    case AtomicType::s64:
    case AtomicType::b64:
    case AtomicType::f64:
      return 8;
    default:
      return 4;
  }
}

std::optional<TensorMap> BulkChecks::map_at(const Warp& w, int lane, uint64_t address) {
  if (address % kMapAlign != 0) {
    fail(w, lane,
         fmt::format("the tensor map at {:#x} is not aligned to {} bytes", address, kMapAlign));
    return std::nullopt;
  }
  const std::byte* from = nullptr;
  const auto& params = cta_.job.params;
  const uint64_t in_params = address - kParamWindow;
  if (in_params < params.size() && params.size() - in_params >= kTensorMapBytes)
    from = params.data() + in_params;
  const Buffer* b = from ? nullptr : cta_.job.memory.find(address);
  if (b && b->size - (address - b->base) >= kTensorMapBytes) from = b->data + (address - b->base);
  std::optional<TensorMap> map;
  if (from) map = decode_tensor_map(std::span<const std::byte, kTensorMapBytes>(from, 128));
  if (!map)
    fail(w, lane,
         fmt::format("there is no tensor map at {:#x}: pass one of the plan's tensor_maps",
                     address));
  return map;
}

bool BulkChecks::tensor(const Warp& w, const Inst& in, int lane, const TensorMap& map,
                        const TensorPlace& place, const TensorOffsets& offsets) {
  const auto kind = BulkKind(in.sub);
  if (map.im2col != (in.target == 1))
    return fail(w, lane,
                map.im2col ? "a copy in tile mode with a tensor map in im2col mode"
                           : "a copy in im2col mode with a tensor map in tile mode"),
           false;
  if (map.interleave != 0) {
    cta_.status = LaunchStatus::unsupported;
    cta_.reason = "interleaved tensor maps are not simulated";
    return false;
  }
  std::string wrong = wrong_place(in.vec, kind, map, place);
  if (wrong.empty() && map.im2col) wrong = wrong_pixel(map, place, offsets);
  if (!wrong.empty()) return fail(w, lane, wrong), false;
  const Reduces how = kind == BulkKind::reduce ? reduces(AtomicOp(in.b), map.type) : Reduces::yes;
  if (how == Reduces::illegal)
    return fail(w, lane, "the reduction does not exist for the type of the tensor map"), false;
  if (how == Reduces::not_simulated) {
    cta_.status = LaunchStatus::unsupported;
    cta_.reason = "the reduction is not simulated for the type of the tensor map";
    return false;
  }
  if (map.span() <= cta_.shared.size() || kind == BulkKind::prefetch) return true;
  fail(w, lane,
       fmt::format("a box of {} bytes, the CTA has {} bytes of shared memory", map.span(),
                   cta_.shared.size()));
  return false;
}

bool BulkChecks::bytes(const Warp& w, int lane, uint64_t global, uint32_t size) {
  if (size % 16 != 0) {
    fail(w, lane, fmt::format("a copy of {} bytes: it must be a multiple of 16", size));
    return false;
  }
  if (global % 16 == 0) return true;
  cta_.report(w, lane,
              {.kind = "misaligned",
               .message = fmt::format("a copy at the global address {:#x}, which is not a multiple "
                                      "of 16",
                                      global),
               .address = global});
  return false;
}

std::byte* BulkChecks::host(const TensorRow& r) {
  if (r.from == r.to) return nullptr;
  if (!last_ || !last_->holds(r.global)) last_ = cta_.job.memory.find(r.global);
  return last_ ? last_->data + (r.global - last_->base) : nullptr;
}

const Buffer* BulkChecks::buffer(const Warp& w, int lane, const BulkCopy& c, uint64_t at,
                                 uint64_t bytes) {
  const auto& memory = cta_.job.memory;
  if (!last_ || !last_->holds(at)) last_ = memory.find(at);
  const Buffer* b = last_;
  Finding f{.kind = "out_of_bounds", .address = at};
  if (b && bytes <= b->size - (at - b->base)) {
    if (!writes(c) || b->access != Access::read_only) return b;
    f.kind = "read_only", f.buffer = b->name;
    f.message =
        fmt::format("{} offset {} of {}, which is read-only", verb(c), at - b->base, b->name);
  } else if (const Buffer* near = b ? b : memory.nearest(at)) {
    f.buffer = near->name;
    f.message = at < near->base
                    ? fmt::format("{} {} bytes that begin {} bytes before {}", verb(c), bytes,
                                  near->base - at, near->name)
                    : fmt::format("{} {} bytes at offset {} of {}, which has {} bytes", verb(c),
                                  bytes, at - near->base, near->name, near->size);
  } else {
    f.message = "no buffer is bound";
  }
  cta_.report(w, lane, std::move(f));
  return nullptr;
}

bool BulkChecks::global(Warp& w, int lane, const BulkCopy& c) {
  cta_.counting->copy(c.pc);
  for (const TensorRow& r : c.rows)
    if (r.from < r.to && !row(w, lane, c, r)) return false;
  return true;
}

bool BulkChecks::row(Warp& w, int lane, const BulkCopy& c, const TensorRow& r) {
  const uint32_t n = r.to - r.from;
  const Buffer* b = buffer(w, lane, c, r.global, n);
  if (!b) return false;
  const size_t index = size_t(b - cta_.job.memory.buffers.data());
  cta_.counting->copy_row(c.pc, r.global, n, index, writes(c));
  if (c.kind == BulkKind::prefetch) return true;
  return !cta_.hazards || ordered(w, lane, c, *b, r.global, n);
}

// A copy's accesses to global memory count as accesses of the thread that starts it.
bool BulkChecks::ordered(Warp& w, int lane, const BulkCopy& c, const Buffer& b, uint64_t at,
                         uint32_t n) {
  Hazards& h = *cta_.hazards;
  const size_t index = size_t(&b - cta_.job.memory.buffers.data());
  if (b.access == Access::read_only || !h.global || index >= h.launch.shadows.size()) return true;
  BufferShadow& shadow = h.launch.shadows[index];
  if (!shadow.writers.size()) return true;
  uint64_t places[32] = {};
  places[lane] = at;
  AddressSummary sum{.low = at, .high = at, .bits = at, .contiguous = true, .uniform = true};
  const Touch touch = c.kind == BulkKind::load    ? Touch::read
                      : c.kind == BulkKind::store ? Touch::write
                                                  : Touch::atomic;
  if (const auto other = conflict_before_wait(cta_, w, touch, b, shadow, at, n))
    return cta_.report(w, lane, before_wait(c, *other, b, at, n)), false;
  const GlobalAccess access{.touch = touch,
                            .warp = w.index,
                            .pc = c.pc,
                            .mask = 1u << lane,
                            .summary = sum,
                            .at = places,
                            .bytes = n};
  if (h.global->touch(access, shadow, b.base) == 0)
    return c.kind != BulkKind::load || fenced(w, lane, b, shadow, at, n);
  const Epoch& e = h.global->other();
  const auto& g = cta_.job.config.grid;
  const std::array<int64_t, 3> cta{e.cta % g[0], e.cta / g[0] % g[1], e.cta / (g[0] * g[1])};
  cta_.report(
      w, lane,
      {.kind = "global_race",
       .message = fmt::format("{} {} bytes at offset {} of {} and the access by a thread of "
                              "warp {} of CTA ({},{},{}) at {} are not ordered",
                              verb(c), n, at - b.base, b.name, e.warp, cta[0], cta[1], cta[2],
                              cta_.place(e.pc)),
       .address = at,
       .buffer = b.name,
       .other = cta_.party(e.pc, e.warp * 32, cta)});
  return false;
}

bool BulkChecks::fenced(const Warp& w, int lane, const Buffer& b, const BufferShadow& shadow,
                        uint64_t at, uint32_t n) {
  Hazards& h = *cta_.hazards;
  if (!h.clocks.vector()) return true;
  if (!h.global->unfenced(w.index, cta_.job.program, shadow, at - b.base, at - b.base + n))
    return true;
  const Epoch& e = h.global->other();
  cta_.report(w, lane,
              {.kind = "missing_proxy_fence",
               .message = fmt::format("a copy from offset {} of {}, which the ordinary store at {} "
                                      "wrote: put fence.proxy.async between the store and the copy",
                                      at - b.base, b.name, cta_.place(e.pc)),
               .address = at,
               .buffer = b.name,
               .other = cta_.party(e.pc, e.warp * 32, cta_.at)});
  return false;
}

}  // namespace cutegen::ptx
