// SPDX-License-Identifier: Apache-2.0
#include "ptx/units/cta_checks.h"

#include <fmt/format.h>

#include <bit>

#include "ptx/checks/lanes.h"

namespace cutegen::ptx {

bool CtaChecks::follow(const Warp& w, const Inst& in, uint32_t mask) {
  if (wgmma_on() && in.watched && !wgmma_.follow(w, in, mask)) return false;
  return !cta_.hazards->undefined || undefined_.follow(w, in, mask);
}

bool CtaChecks::shared(const WarpAccess& a) {
  Hazards& h = *cta_.hazards;
  Hazards::Seen& seen = h.seen(a.warp.index, a.warp.current.pc);
  const Hazards::Seen key{.low = uint32_t(a.sum.low),
                          .high = uint32_t(a.sum.high),
                          .bits = uint32_t(a.sum.bits),
                          .second = uint32_t(a.at[1])};
  const bool again = a.mask == ~0u && seen.lanes && seen.low == key.low && seen.high == key.high &&
                     seen.bits == key.bits && seen.second == key.second;
  const uint32_t lanes = again ? seen.lanes : distinct_lanes(a.mask, a.sum, a.at);
  if (!again) seen = key, seen.lanes = a.mask == ~0u ? lanes : 0;
  const bool written = again && seen.written;
  if (h.undefined && !(written && !h.undefined->following())) {
    undefined_.note(a, lanes, h.undefined->memory().shared(), h.undefined->memory().shared_left(),
                    {.space = Space::shared});
    seen.written = !h.undefined->following();
  }
  return !h.shared || races_.shared(a, lanes, cta_);
}

bool CtaChecks::visible(const WarpAccess& a) {
  Hazards& h = *cta_.hazards;
  if (!h.shared || !h.clocks.vector()) return true;
  const uint32_t hidden = h.shared->hidden(a.warp.index, a.at);
  if (!hidden) return true;
  const int lane = std::countr_zero(hidden);
  const uint64_t from = a.at[lane];
  cta_.report(
      a.warp, lane,
      {.kind = "missing_proxy_fence",
       .message = fmt::format("wgmma reads bytes [{}, {}) of shared memory, which ordinary stores "
                              "wrote: put fence.proxy.async between them and wgmma",
                              from, from + a.bytes()),
       .address = from,
       .buffer = "shared memory"});
  return false;
}

bool CtaChecks::remote(const WarpAccess& a, CtaState& owner) {
  Hazards& h = *owner.hazards;
  if (!h.shared || !h.clocks.vector()) return true;
  return races_.shared(a, distinct_lanes(a.mask, a.sum, a.at), owner);
}

bool CtaChecks::global(const WarpAccess& a, const Buffer& b) {
  Hazards& h = *cta_.hazards;
  if (b.access == Access::read_only) return true;
  const size_t index = size_t(&b - cta_.job.memory.buffers.data());
  if (index >= h.launch.shadows.size()) return true;
  BufferShadow& shadow = h.launch.shadows[index];
  if (h.undefined && !undefined_.stored(a, b)) return false;
  if (h.undefined && b.content != Content::given && shadow.defined.size()) {
    const Origin origin{.space = Space::global, .at = b.base, .buffer = int32_t(index)};
    undefined_.note(a, a.mask, shadow.defined.data() - b.base / 4, nullptr, origin);
  }
  return !h.global || races_.global(a, b, shadow);
}

void CtaChecks::local(const WarpAccess& a) {
  if (auto& undefined = cta_.hazards->undefined)
    undefined_.note(a, a.mask, undefined->memory().local(a.warp.index), nullptr,
                    {.space = Space::local});
}

}  // namespace cutegen::ptx
