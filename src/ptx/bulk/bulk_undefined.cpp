// SPDX-License-Identifier: Apache-2.0
#include "ptx/bulk/bulk_undefined.h"

#include <fmt/format.h>

#include <algorithm>

namespace cutegen::ptx {
namespace {

const Buffer* buffer_of(const CtaState& cta, const TensorRow& r) {
  return r.from == r.to ? nullptr : cta.job.memory.find(r.global);
}

// The states of the source's words; nullptr: all words are defined.
const uint8_t* states_of_source(const CtaState& cta, const BulkCopy& c, const TensorRow& r) {
  if (c.from == BulkSource::registers) return nullptr;
  if (c.from == BulkSource::shared) {
    const CtaState* issuer = c.rank < 0 ? &cta : cta.cluster->at(size_t(c.rank));
    return issuer ? issuer->hazards->undefined->memory().shared() + c.source / 4 : nullptr;
  }
  const Buffer* b = buffer_of(cta, r);
  if (!b || b->content == Content::given) return nullptr;
  const size_t index = size_t(b - cta.job.memory.buffers.data());
  auto& shadows = cta.hazards->launch.shadows;
  if (index >= shadows.size() || !shadows[index].defined.size()) return nullptr;
  return shadows[index].defined.data() + (r.global - b->base) / 4;
}

void define(CtaState& cta, const BulkCopy& c, const TensorRow& r) {
  UndefinedMemory& memory = cta.hazards->undefined->memory();
  const uint8_t* source = states_of_source(cta, c, r);
  c.each_piece(r, [&](uint64_t at, uint32_t offset, uint32_t n) {
    for (uint32_t i = 0; i < n; i += 4) {
      const uint32_t place = offset + i;
      const bool inside = place >= r.from && place < r.to;
      const bool known =
          !source || !inside || source[(place - r.from) / 4] == UndefinedMemory::kWritten;
      uint8_t& state = memory.shared()[(at + i) / 4];
      const uint8_t now = known ? UndefinedMemory::kWritten : UndefinedMemory::kCopy;
      *memory.shared_left() +=
          size_t(now != UndefinedMemory::kWritten) - size_t(state != UndefinedMemory::kWritten);
      state = now;
    }
  });
}

}  // namespace

void define_target(CtaState& cta, const BulkCopy& c) {
  const bool defined = std::all_of(c.rows.begin(), c.rows.end(), [&](const TensorRow& r) {
    return !states_of_source(cta, c, r);
  });
  if (defined && c.pitch == c.row && c.row % 4 == 0 && c.shared % 4 == 0) {
    UndefinedMemory& memory = cta.hazards->undefined->memory();
    uint8_t* const state = memory.shared() + c.shared / 4;
    const size_t words = size_t{c.pitch} / 4 * c.rows.size();
    *memory.shared_left() -=
        words - size_t(std::count(state, state + words, UndefinedMemory::kWritten));
    std::fill_n(state, words, UndefinedMemory::kWritten);
    return;
  }
  for (const TensorRow& r : c.rows) define(cta, c, r);
}

bool sources_defined(CtaState& cta, const Warp& w, const BulkCopy& c) {
  Hazards* h = cta.hazards.get();
  if (!h || !h->undefined) return true;
  const uint8_t* state = h->undefined->memory().shared();
  for (const TensorRow& r : c.rows) {
    const Buffer* b = buffer_of(cta, r);
    if (!b) continue;
    const size_t index = size_t(b - cta.job.memory.buffers.data());
    auto& shadows = h->launch.shadows;
    const bool follow = index < shadows.size() && shadows[index].defined.size();
    uint64_t bad = ~uint64_t{0};
    c.each_piece(r, [&](uint64_t at, uint32_t offset, uint32_t n) {
      for (uint32_t i = 0; i < n; i += 4) {
        const uint32_t place = offset + i;
        if (place < r.from || place >= r.to) continue;
        const uint8_t now = state[(at + i) / 4];
        if (now != UndefinedMemory::kWritten) bad = std::min(bad, at + i);
        if (follow && c.kind == BulkKind::store)
          shadows[index].defined[(r.global - b->base + place - r.from) / 4] =
              now == UndefinedMemory::kWritten ? now : UndefinedMemory::kCopy;
      }
    });
    if (bad == ~uint64_t{0} || b->content == Content::scratch) continue;
    cta.report(w, c.lane,
               {.kind = "uninitialised",
                .message = fmt::format(
                    "a {} {} reads shared memory at offset {}, which nobody wrote",
                    c.kind == BulkKind::store ? "copy to" : "reduction into", b->name, bad),
                .address = r.global,
                .buffer = b->name});
    return false;
  }
  return true;
}

}  // namespace cutegen::ptx
