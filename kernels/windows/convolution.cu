// SPDX-License-Identifier: Apache-2.0
// {{title}}
//
// A direct convolution in float32. A thread computes kPixels pixels of kChannels output channels in
// registers. All threads of a CTA share the channels, so their weights pass through shared memory,
// kChunk positions of the depth (input channel, filter tap) at a time. Neighbouring threads read
// neighbouring pixels. A transposed convolution gathers: a tap counts if the stride divides its position.
#include <cute/tensor_impl.hpp>
#include <cutegen/math.cuh>
#include <cutegen/vec.cuh>

using namespace cute;

constexpr int kThreads = {{threads}};
constexpr int kChannels = {{channels}};
constexpr int kPixels = {{pixels}};
constexpr int kChunk = 64;
constexpr bool kTransposed = {{transposed}};
{{constants}}

// One position of the depth: the offset of its channel in an image, and its shift along each axis.
struct Place {
  int channel, shift0, shift1, shift2;
};

// Returns the input coordinate along an axis; -1 outside.
__device__ __forceinline__ int source(int origin, int shift, int stride, int size) {
  if constexpr (kTransposed) {
    const int at = origin - shift;
    return at >= 0 && at % stride == 0 && at / stride < size ? at / stride : -1;
  } else {
    const int at = origin + shift;
    return at < size ? at : -1;  // negative in the padding before the input
  }
}

__device__ __forceinline__ int origin_of(int out, int stride, int padding) {
  return kTransposed ? out + padding : out * stride - padding;
}

// Does the work after the convolution for one element, in float32.
{{compute}}

extern "C" __global__ void __launch_bounds__(kThreads)
{{name}}({{params}},
{{sizes}}) {
  __shared__ alignas(16) float taps[kChunk][kChannels];  // weights
  __shared__ Place places[kChunk];
  const int tiles_of_group = int((out_of_group + kChannels - 1) / kChannels);
  const int64_t tiles = groups * tiles_of_group;
  const int tile = int(blockIdx.x % tiles);
  const int group = tile / tiles_of_group, first = tile % tiles_of_group * kChannels;

  const int64_t pixels = batches * out0 * out1 * out2;
  int origin0[kPixels], origin1[kPixels], origin2[kPixels];
  const {{input_type}}* images[kPixels];
  bool live[kPixels];
  CUTE_UNROLL
  for (int i = 0; i < kPixels; ++i) {
    const int64_t pixel = (blockIdx.x / tiles * kPixels + i) * kThreads + threadIdx.x;
    live[i] = pixel < pixels;
    const int64_t image = live[i] ? pixel / (out0 * out1 * out2) : 0;
    const int inside = live[i] ? int(pixel - image * (out0 * out1 * out2)) : 0;
    origin0[i] = origin_of(inside / int(out1 * out2), kStride0, kPadding0);
    origin1[i] = origin_of(inside / int(out2) % int(out1), kStride1, kPadding1);
    origin2[i] = origin_of(inside % int(out2), kStride2, kPadding2);
    images[i] = {{input}} + image * in_n + group * in_of_group * in_c;
  }

  float sums[kPixels][kChannels] = {};
  const int positions = int(kernel0 * kernel1 * kernel2);
  const int depth = int(in_of_group) * positions;
  for (int start = 0; start < depth; start += kChunk) {
    __syncthreads();
    for (int e = threadIdx.x; e < kChunk * kChannels; e += kThreads) {
      const int k = start + e / kChannels, c = e % kChannels;
      const int channel = k / positions, position = k % positions;
      const int k0 = position / int(kernel1 * kernel2), k1 = position / int(kernel2) % int(kernel1),
                k2 = position % int(kernel2);
      float tap = 0;
      if (k < depth && first + c < out_of_group) {
        const int64_t row = kTransposed ? group * in_of_group + channel
                                        : group * out_of_group + first + c;
        const int64_t column = kTransposed ? first + c : channel;
        tap = cutegen::convert<float>(
            {{weight}}[row * weight_o + column * weight_i + k0 * weight0 + k1 * weight1 +
                       k2 * weight2]);
      }
      taps[k - start][c] = tap;
      if (c == 0)
        places[k - start] = {channel * int(in_c), k0 * kDilation0, k1 * kDilation1, k2 * kDilation2};
    }
    __syncthreads();
    const int end = depth - start < kChunk ? depth - start : kChunk;
    for (int k = 0; k < end; ++k) {
      const Place place = places[k];
      float tap[kChannels];
      CUTE_UNROLL
      for (int c = 0; c < kChannels; ++c) tap[c] = taps[k][c];
      CUTE_UNROLL
      for (int i = 0; i < kPixels; ++i) {
        const int at0 = source(origin0[i], place.shift0, kStride0, int(in0)),
                  at1 = source(origin1[i], place.shift1, kStride1, int(in1)),
                  at2 = source(origin2[i], place.shift2, kStride2, int(in2));
        if (!live[i] || (at0 | at1 | at2) < 0) continue;
        const float value = cutegen::convert<float>(
            images[i][place.channel + at0 * int(in_s0) + at1 * int(in_s1) + at2 * int(in_s2)]);
        CUTE_UNROLL
        for (int c = 0; c < kChannels; ++c) sums[i][c] += value * tap[c];
      }
    }
  }

  CUTE_UNROLL
  for (int i = 0; i < kPixels; ++i) {
    if (!live[i]) continue;
    const int64_t pixel = (blockIdx.x / tiles * kPixels + i) * kThreads + threadIdx.x;
    const int64_t n = pixel / (out0 * out1 * out2), p0 = pixel / (out1 * out2) % out0,
                  p1 = pixel / out2 % out1, p2 = pixel % out2;
    CUTE_UNROLL
    for (int c = 0; c < kChannels; ++c) {
      if (first + c >= out_of_group) continue;
      const int64_t channel = group * out_of_group + first + c;
      const float window = sums[i][c];
{{finish}}
    }
  }
}
