// SPDX-License-Identifier: Apache-2.0
// Says which input elements one element of the result needs along one axis, for padding, flips,
// rolls, interpolation and adaptive pooling.
//
// Contract: construct an object (such as ReflectedAxis) from the position `p` in the result, the
// size of the axis in the input, and the size of the axis in the result. The object's count() is
// the number of input elements to read, at(i) is the position of element i in the input (-1 if it
// is outside the input), and weight(i) is the weight of element i. The constant kInside is true if
// no position is outside the input. Positions and weights equal PyTorch's. Scale is a type with the
// constant `value`, the number of input elements per element of the result. If the `value` of Scale
// is 0, the two sizes of the axis determine the scale.
//
// Example: const cutegen::ReflectedAxis<1> x(p, in, out); float value = row[x.at(0)];
#pragma once

#include <cute/config.hpp>

#include <cuda/std/cstdint>
#include <cuda/std/type_traits>

namespace cutegen {

struct OnePlace {
  static constexpr bool kInside = true;
  int place;
  CUTE_DEVICE static constexpr int count() { return 1; }
  CUTE_DEVICE int at(int) const { return place; }
  CUTE_DEVICE static constexpr float weight(int) { return 1.0f; }
};

struct KeptAxis : OnePlace {
  CUTE_DEVICE KeptAxis(int p, int, int) : OnePlace{p} {}
};
template <int Before>
struct PaddedAxis : OnePlace {
  static constexpr bool kInside = false;
  CUTE_DEVICE PaddedAxis(int p, int in, int)
      : OnePlace{unsigned(p - Before) < unsigned(in) ? p - Before : -1} {}
};
template <int Before>
struct ReflectedAxis : OnePlace {
  CUTE_DEVICE ReflectedAxis(int p, int in, int) : OnePlace{abs(p - Before)} {
    if (place >= in) place = 2 * (in - 1) - place;
  }
};
template <int Before>
struct EdgeAxis : OnePlace {
  CUTE_DEVICE EdgeAxis(int p, int in, int) : OnePlace{min(max(p - Before, 0), in - 1)} {}
};
template <int Before>
struct WrappedAxis : OnePlace {
  CUTE_DEVICE WrappedAxis(int p, int in, int) : OnePlace{(p - Before) % in} {
    if (place < 0) place += in;
  }
};
struct FlippedAxis : OnePlace {
  CUTE_DEVICE FlippedAxis(int p, int in, int) : OnePlace{in - 1 - p} {}
};

// NearestAxis interpolates with the nearest neighbour; Exact selects PyTorch's mode nearest-exact,
// which starts from the middle of the result's element. NearestAxis computes in float, as PyTorch
// does.
template <class Scale, bool Exact>
struct NearestAxis : OnePlace {
  CUTE_DEVICE NearestAxis(int p, int in, int out) : OnePlace{0} {
    const float scale = Scale::value > 0 ? float(Scale::value) : float(in) / float(out);
    const float from = Exact ? float((p + 0.5) * double(scale)) : float(p) * scale;
    place = min(int(floorf(from)), in - 1);
  }
};

// Returns the fractional position in the input from which result element `p` is interpolated.
// place_between() computes in double, because floats lose digits of large positions.
// place_between() rounds the product before the addition, as PyTorch does, so that integer
// positions stay integers.
template <class Scale, bool Aligned>
CUTE_DEVICE double place_between(int p, int in, int out) {
  if (Aligned) return out > 1 ? double(in - 1) / double(out - 1) * p : 0.0;
  const double scale = Scale::value > 0 ? Scale::value : double(in) / double(out);
  return __dadd_rn(__dmul_rn(scale, p + 0.5), -0.5);
}

template <class Scale, bool Aligned>
struct LinearAxis {
  static constexpr bool kInside = true;
  int first, second;
  float weights[2];

  CUTE_DEVICE LinearAxis(int p, int in, int out) : first(p), second(p), weights{1.0f, 0.0f} {
    if (in == out) return;
    const double place = fmax(place_between<Scale, Aligned>(p, in, out), 0.0);
    first = min(int(place), in - 1);
    second = min(first + 1, in - 1);
    const double share = fmin(fmax(place - first, 0.0), 1.0);
    weights[0] = float(1.0 - share), weights[1] = float(share);
  }
  CUTE_DEVICE static constexpr int count() { return 2; }
  CUTE_DEVICE int at(int i) const { return i == 0 ? first : second; }
  CUTE_DEVICE float weight(int i) const { return weights[i]; }
};

template <class Scale, bool Aligned>
struct CubicAxis {
  static constexpr bool kInside = true;
  int first, in;
  float weights[4];

  CUTE_DEVICE CubicAxis(int p, int in, int out) : first(0), in(in) {
    const double place = place_between<Scale, Aligned>(p, in, out), below = floor(place);
    first = int(below) - 1;
    CUTE_UNROLL
    for (int i = 0; i < 4; ++i) weights[i] = float(of_distance(fabs(place - below - (i - 1))));
  }
  CUTE_DEVICE static constexpr int count() { return 4; }
  CUTE_DEVICE int at(int i) const { return min(max(first + i, 0), in - 1); }
  CUTE_DEVICE float weight(int i) const { return weights[i]; }

 private:
  static CUTE_DEVICE double of_distance(double x) {
    constexpr double a = -0.75;
    return x <= 1 ? ((a + 2) * x - (a + 3)) * x * x + 1 : ((a * x - 5 * a) * x + 8 * a) * x - 4 * a;
  }
};

// Neighbours (below) has the places and weights of the elements that N neighbouring results need.
// The first result's position `p` must be a multiple of N. Element k of result i has the place
// at(slot(i, k)) in the input, and the weight weight(i, k). Results that share elements may share
// slots.
template <class Axis, int N>
struct EachAlone {
  static constexpr int kSlots = N * Axis::count();
  int places[kSlots];
  float weights[N][Axis::count()];

  CUTE_DEVICE EachAlone(int p, int in, int out) {
    CUTE_UNROLL
    for (int i = 0; i < N; ++i) {
      const Axis axis(min(p + i, out - 1), in, out);
      CUTE_UNROLL
      for (int k = 0; k < Axis::count(); ++k)
        places[slot(i, k)] = axis.at(k), weights[i][k] = axis.weight(k);
    }
  }
  CUTE_DEVICE static constexpr int count() { return Axis::count(); }
  CUTE_DEVICE static constexpr int slot(int i, int k) { return i * Axis::count() + k; }
  CUTE_DEVICE int at(int j) const { return places[j]; }
  CUTE_DEVICE float weight(int i, int k) const { return weights[i][k]; }
};

// SharedLines has the places and weights for N neighbouring results of a linear interpolation. N
// results must advance by a whole number of input elements. The weights, and the distances between
// the elements, are then the same for every p. Before the first element and behind the last one,
// both elements of a result are the same, so that their weights do not matter.
template <class Scale, int N>
struct SharedLines {
  // units(i) is the distance from element `start` to the place of result i, in units of 1/512 of an
  // element. It is an integer, so that the compiler can compute all slots and weights.
  static constexpr int kStep = int(Scale::value * N), kUnits = int(Scale::value * 256);
  CUTE_DEVICE static constexpr int units(int i) { return kUnits * (2 * i + 1) + 256; }
  static constexpr int kSlots = (kUnits * (2 * N - 1) + 256) / 512 + 2;
  int start, in;

  CUTE_DEVICE SharedLines(int p, int in, int) : start(p / N * kStep - 1), in(in) {}
  CUTE_DEVICE static constexpr int count() { return 2; }
  CUTE_DEVICE static constexpr int slot(int i, int k) { return units(i) / 512 + k; }
  CUTE_DEVICE int at(int j) const { return min(max(start + j, 0), in - 1); }
  CUTE_DEVICE static constexpr float weight(int i, int k) {
    const int share = units(i) % 512;
    return float(k == 0 ? 512 - share : share) / 512.0f;
  }
};

template <class Axis, int N>
struct NeighboursOf {
  using type = EachAlone<Axis, N>;
};
// If the result has the input's size, LinearAxis copies the elements, but SharedLines cannot do so.
// kFine is true only for scales up to 1/2, at which the sizes always differ.
template <class Scale>
inline constexpr bool kFine = Scale::value > 0 && Scale::value <= 0.5 &&
                              Scale::value * 256 == int(Scale::value * 256);
template <class Scale, int N>
struct NeighboursOf<LinearAxis<Scale, false>, N> {
  static constexpr bool kWhole = Scale::value * N == int(Scale::value * N);
  using type = cuda::std::conditional_t<kFine<Scale> && kWhole, SharedLines<Scale, N>,
                                        EachAlone<LinearAxis<Scale, false>, N>>;
};
template <class Axis, int N>
using Neighbours = typename NeighboursOf<Axis, N>::type;

// AdaptiveAxis takes all elements of window p. The `out` windows of adaptive pooling together cover
// the axis; two neighbouring windows may share one element.
struct AdaptiveAxis {
  static constexpr bool kInside = true;
  int first, size;
  CUTE_DEVICE AdaptiveAxis(int p, int in, int out) {
    first = int(int64_t(p) * in / out);
    size = int((int64_t(p + 1) * in + out - 1) / out) - first;
  }
  CUTE_DEVICE int count() const { return size; }
  CUTE_DEVICE int at(int i) const { return first + i; }
  CUTE_DEVICE static constexpr float weight(int) { return 1.0f; }
};

}  // namespace cutegen
