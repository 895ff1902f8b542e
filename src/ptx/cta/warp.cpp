// SPDX-License-Identifier: Apache-2.0
#include "ptx/cta/warp.h"

#include <utility>

namespace cutegen::ptx {
namespace {

constexpr uint32_t kPatience = 1024;  // turns after which a split with a higher pc runs

}  // namespace

void Warp::begin(uint32_t lanes) {
  alive = lanes;
  state = State::running;
  current = {.pc = 0, .mask = lanes, .blocked = false};
  count = 0, turns = 0, barrier = -1, executed = 0, spins = 0;
  slept_ns = 0, polled = 0;
}

bool Warp::reschedule() {
  if (current.mask) add(current);
  int best = -1;
  for (int i = 0; i < count; ++i) {
    if (others[i].blocked) continue;
    if (best < 0 || others[i].pc < others[best].pc) best = i;
  }
  if (best < 0) return false;
  if (++turns % kPatience == 0) {  // the lanes that run may poll a value from lanes of this warp
    const int start = int(turns / kPatience) % count;
    for (int k = 0; k < count; ++k) {
      const int i = (start + k) % count;
      if (others[i].blocked) continue;
      best = i;
      break;
    }
  }
  current = others[best];
  others[best] = others[--count];
  return true;
}

void Warp::split_off(uint32_t mask) {
  const uint32_t rest = current.mask & ~mask;
  if (!rest) return;
  add({.pc = current.pc + 1, .mask = rest, .blocked = false});
  current.mask = mask;
}

void Warp::pass_turn() {
  int best = -1;
  for (int i = 0; i < count; ++i) {
    if (others[i].blocked) continue;
    if (best < 0 || others[i].pc < others[best].pc) best = i;
  }
  if (best >= 0) std::swap(current, others[best]);
}

void Warp::leave(uint32_t mask) {
  alive &= ~mask;
  current.mask &= ~mask;
  ++current.pc;
  for (int i = 0; i < count; ++i) others[i].blocked = false;  // they may wait for fewer lanes now
  if (alive) reschedule();
}

}  // namespace cutegen::ptx
