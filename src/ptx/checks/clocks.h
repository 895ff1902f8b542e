// SPDX-License-Identifier: Apache-2.0
// Clocks: which work of a CTA's other warps happened before what a warp does now.
//
// Contract: the work of a warp between two synchronisations has a label. If all barriers are for
// the whole CTA, one label serves all warps. Otherwise each warp has a vector clock of labels.
// ordered(w, u, label): the work of warp u under `label` happened before what w does now.
//
// An agent makes the copies that complete on an mbarrier; agents are numbered after the warps.
// visible(w, u, label): a proxy fence lies between u's work at `label` and what w does now, so that
// the asynchronous proxy sees that work.
//
// Example: clocks.arrive(w, id); ... all have arrived: clocks.leave(w, id); clocks.clear(id);
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

namespace cutegen::ptx {

class Clocks {
 public:
  static constexpr int kMostAgents = 64;  // warps, then those of mbarriers
  Clocks(int warps, bool vector) : warps_(warps), agents_(warps), vector_(vector) {}
  void begin();
  bool vector() const { return vector_; }
  uint32_t label(int agent) const { return vector_ ? own_[size_t(agent)] : label_; }
  bool ordered(int warp, int other, uint32_t label) const {
    return warp == other ||
           (vector_ ? label <= known_[size_t(warp)].seen[size_t(other)] : label != label_);
  }
  bool visible(int warp, int other, uint32_t label) const {
    return label <= known_[size_t(warp)].fenced[size_t(other)];
  }
  // A barrier of all warps.
  void join() { ++label_; }
  void arrive(int warp, int barrier) { give(warp, barriers_[size_t(barrier)]); }
  void leave(int warp, int barrier) { take(warp, barriers_[size_t(barrier)]); }
  void clear(int barrier) { barriers_[size_t(barrier)] = {}; }
  // A warp synchronises through a place in shared memory.
  void release(int warp, uint64_t place) { give(warp, places_[place]); }
  void acquire(int warp, uint64_t place) { take(warp, places_[place]); }

  // fence.proxy.async by a warp.
  void fence_proxy(int warp);
  // An mbarrier at a place in shared memory. Its agent does the work of the copies that it counts.
  void init_mbarrier(uint64_t place);
  int agent_of(uint64_t place) { return mbarriers_[place].agent; }
  bool is_agent(int other) const { return other >= warps_; }
  void arrive_mbarrier(int warp, uint64_t place) { give(warp, mbarriers_[place].now); }
  void complete_mbarrier(uint64_t place);
  void wait_mbarrier(int warp, uint64_t place) { take(warp, mbarriers_[place].done); }

 private:
  using Labels = std::array<uint32_t, kMostAgents>;
  struct Known {
    Labels seen{}, fenced{};
  };
  struct PhaseClock {
    Known now, done;  // of the arrivals in this phase; of all completed phases
    int agent = 0;
  };
  void give(int warp, Known& to);
  void take(int warp, const Known& from);
  void join(Labels& to, const Labels& from) const;

  int warps_, agents_;  // agents_: with those of mbarriers
  bool vector_;
  uint32_t label_ = 1, last_ = 1;
  Labels own_{};
  std::array<Known, 32> known_{};
  std::array<Known, 16> barriers_{};
  std::unordered_map<uint64_t, Known> places_;
  std::unordered_map<uint64_t, PhaseClock> mbarriers_;
};

}  // namespace cutegen::ptx
