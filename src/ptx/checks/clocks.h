// SPDX-License-Identifier: Apache-2.0
// Clocks: what of the other warps of its CTA each warp has seen.
//
// Contract: every stretch of a warp between two synchronisations has a label. Where all barriers
// are of the whole CTA one number serves for all; otherwise each warp has a vector of the labels it
// has seen the end of. ordered(w, u, label): what warp u did under `label` lies before what w does.
//
// Example: clocks.arrive(w, id); ... all are here: clocks.leave(w, id); clocks.clear(id);
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
  // All warps have met.
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
