// SPDX-License-Identifier: Apache-2.0
// Loads operands that have one value for many neighbouring elements (a run), such as one weight for
// all pixels of a channel.
//
// Contract: Runs(n) divides element indices below 2^31 into runs of n elements (n is at least 1).
// The function of(i) returns the run that holds element i, and start_of(run) returns the first
// element of a run. The function load_run fills `r` with the values for V neighbouring elements;
// the tensor `g` has one value for each run. The V elements must lie in one run if Whole is true,
// otherwise in at most two runs.
//
// Example: const Runs runs(height * width); load_run<false>(gWeight, runs, j * 4, w);
#pragma once

#include <cutegen/vec.cuh>

namespace cutegen {

class Runs {
 public:
  CUTE_DEVICE explicit Runs(int length)
      : length_(length > 0 ? length : 1), inverse_(0xffffffffu / length_) {}
  // The multiplication by the inverse may give a quotient that is too small by 1.
  CUTE_DEVICE int of(int i) const {
    const unsigned run = __umulhi(unsigned(i), inverse_);
    return int(run + (unsigned(i) - run * length_ >= length_ ? 1u : 0u));
  }
  CUTE_DEVICE int start_of(int run) const { return run * int(length_); }
  CUTE_DEVICE int length() const { return int(length_); }

 private:
  unsigned length_, inverse_;
};

template <bool Whole, class R, int V, class Engine, class Layout>
CUTE_DEVICE void load_run(cute::Tensor<Engine, Layout> const& g, Runs const& runs, int first,
                          R (&r)[V]) {
  using T = cute::remove_cv_t<typename Engine::value_type>;
  const int run = runs.of(first);
  const R value = convert<R>(T(g(run)));
  if constexpr (Whole || V == 1) {
    CUTE_UNROLL
    for (int v = 0; v < V; ++v) r[v] = value;
  } else {
    const int left = runs.start_of(run) + runs.length() - first;  // elements until the run ends
    const R next = convert<R>(T(g(left < V ? run + 1 : run)));
    CUTE_UNROLL
    for (int v = 0; v < V; ++v) r[v] = v < left ? value : next;
  }
}

}  // namespace cutegen
