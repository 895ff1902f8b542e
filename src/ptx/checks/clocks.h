// SPDX-License-Identifier: Apache-2.0
// Clocks: which work of a CTA's other warps happened before what a warp does now.
//
// Contract: the work of a warp between two synchronisations has a label. If all barriers are for
// the whole CTA, one label serves all warps. Otherwise each warp has a vector clock of labels.
// ordered(w, u, label): the work of warp u under `label` happened before what w does now.
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
  Clocks(int warps, bool vector) : warps_(warps), vector_(vector) {}
  void begin();
  bool vector() const { return vector_; }
  uint32_t label(int warp) const { return vector_ ? own_[size_t(warp)] : label_; }
  bool ordered(int warp, int other, uint32_t label) const {
    return warp == other ||
           (vector_ ? label <= seen_[size_t(warp)][size_t(other)] : label != label_);
  }
  // A barrier of all warps.
  void join() { ++label_; }
  void arrive(int warp, int barrier) { give(warp, barriers_[size_t(barrier)]); }
  void leave(int warp, int barrier) { take(warp, barriers_[size_t(barrier)]); }
  void clear(int barrier) { barriers_[size_t(barrier)] = {}; }
  // A warp synchronises through a place in shared memory.
  void release(int warp, uint64_t place) { give(warp, places_[place]); }
  void acquire(int warp, uint64_t place) { take(warp, places_[place]); }

 private:
  using Labels = std::array<uint32_t, 32>;
  void give(int warp, Labels& to);
  void take(int warp, const Labels& from);

  int warps_;
  bool vector_;
  uint32_t label_ = 1, last_ = 1;
  std::array<uint32_t, 32> own_{};
  std::array<Labels, 32> seen_{};
  std::array<Labels, 16> barriers_{};
  std::unordered_map<uint64_t, Labels> places_;
};

}  // namespace cutegen::ptx
