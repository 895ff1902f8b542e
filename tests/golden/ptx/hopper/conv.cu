// SPDX-License-Identifier: Apache-2.0
// Convolutions by TMA's im2col mode and wgmma: out(pixel, n) = sum over taps and channels of
// x(pixel * stride + tap * dilation - padding, channel) * w(tap, n, channel).
#include "hopper.cuh"

constexpr int kTile = 64, kStages = 3, kTileBytes = kTile * 128;

struct Conv {  // W first; a missing dimension has the size 1
  int out[3], images, n, channels, kernel[3], stride[3], dilation[3], padding[3];
};

template <int Spatial>
DEVICE void load_pixels(u32 to, const Map& map, int c, const int (&at)[3], int image, const unsigned short (&tap)[3], u32 bar) {
  if constexpr (Spatial == 1)
    asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3, %4}], [%5], {%6};"
                 ::"r"(to), "l"(&map), "r"(c), "r"(at[0]), "r"(image), "r"(bar), "h"(tap[0]) : "memory");
  else if constexpr (Spatial == 2)
    asm volatile("cp.async.bulk.tensor.4d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3, %4, %5}], [%6], {%7, %8};"
                 ::"r"(to), "l"(&map), "r"(c), "r"(at[0]), "r"(at[1]), "r"(image), "r"(bar), "h"(tap[0]), "h"(tap[1]) : "memory");
  else
    asm volatile("cp.async.bulk.tensor.5d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3, %4, %5, %6}], [%7], {%8, %9, %10};"
                 ::"r"(to), "l"(&map), "r"(c), "r"(at[0]), "r"(at[1]), "r"(at[2]), "r"(image), "r"(bar), "h"(tap[0]), "h"(tap[1]), "h"(tap[2]) : "memory");
}

// Faults: 1 the taps of two dimensions are exchanged; 2 taps without dilation; 3 no wait for
// `empty`; 4 half the bytes are expected; 5 a copy begins before the bounding box; 6 an offset
// beyond what the instruction has; 7 no wgmma.fence; 8 the tile begins one pixel late; 9 no wait for
// products; 10 no swizzle in the descriptor of the pixels; 11 the padding is added twice
template <int Spatial>
DEVICE void convolve(const Map& x, const Map& w, float* out, const Conv& g, int fault) {
  __shared__ alignas(1024) unsigned char tile_x[kStages][kTileBytes], tile_w[kStages][kTileBytes];
  __shared__ u64 full[kStages], empty[kStages];
  if (threadIdx.x == 0) {
    for (int i = 0; i < kStages; ++i) init(at(&full[i]), 1), init(at(&empty[i]), 1);
    publish_barriers();
  }
  __syncthreads();
  const int x0 = blockIdx.x * kTile, y0 = blockIdx.y * kTile, blocks = (g.channels + kTile - 1) / kTile;
  const int taps = g.kernel[0] * g.kernel[1] * g.kernel[2], steps = taps * blocks;
  Ring<kStages> ring{at(full), at(empty)};
  if (threadIdx.x >= 128) {
    if (threadIdx.x != 128) return;
    int pixel = y0 + (fault == 8), from[3];
    for (int i = 0; i < 3; ++i) {
      from[i] = pixel % g.out[i] * g.stride[i] - g.padding[i];
      pixel /= g.out[i];
    }
    if (fault == 5) --from[0];
    if (fault == 11) from[0] = max(from[0] - g.padding[0], -g.padding[0]);
    for (int i = 0; i < steps; ++i, ring.next()) {
      const int t = i / blocks, c = i % blocks * kTile;
      const int place[3] = {t % g.kernel[0], t / g.kernel[0] % g.kernel[1], t / (g.kernel[0] * g.kernel[1])};
      unsigned short tap[3];
      for (int j = 0; j < 3; ++j) tap[j] = place[j] * (fault == 2 ? 1 : g.dilation[j]);
      if (fault == 1) tap[0] = place[1] * g.dilation[1], tap[1] = place[0] * g.dilation[0];
      if (fault == 6) tap[0] += 256;
      if (fault != 3) wait(ring.emptied(), ring.phase ^ 1);
      expect(ring.filled(), fault == 4 ? kTileBytes : 2 * kTileBytes);
      load_pixels<Spatial>(at(tile_x[ring.stage]), x, c, from, pixel, tap, ring.filled());
      load_2d(at(tile_w[ring.stage]), w, c, t * g.n + x0, ring.filled());
    }
    return;
  }
  float d[32];
  for (int i = 0; i < steps; ++i, ring.next()) {
    wait(ring.filled(), ring.phase);
    if (fault != 7) wgmma_fence();
    for (int j = 0; j < 4; ++j) {
      u64 dx = descriptor(at(tile_x[ring.stage]) + 32 * j);
      if (fault == 10) dx &= ~(u64(3) << 62);
      multiply_bf16(d, dx, descriptor(at(tile_w[ring.stage]) + 32 * j), i + j > 0);
    }
    wgmma_commit();
    if (fault != 9) wgmma_wait<0>();
    if (threadIdx.x % 128 == 0) arrive(ring.emptied());
  }
  const int pixels = g.out[0] * g.out[1] * g.out[2] * g.images;
  for (int i = 0; i < 32; ++i) {
    const int y = y0 + row_of(i), n = x0 + column_of(i);
    if (y < pixels && n < g.n) out[size_t(y) * g.n + n] = d[i];
  }
}

KERNEL conv_1d(const __grid_constant__ Map x, const __grid_constant__ Map w, float* out, Conv g, int fault) { convolve<1>(x, w, out, g, fault); }
KERNEL conv_2d(const __grid_constant__ Map x, const __grid_constant__ Map w, float* out, Conv g, int fault) { convolve<2>(x, w, out, g, fault); }
KERNEL conv_3d(const __grid_constant__ Map x, const __grid_constant__ Map w, float* out, Conv g, int fault) { convolve<3>(x, w, out, g, fault); }
