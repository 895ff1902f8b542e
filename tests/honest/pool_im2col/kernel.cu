// SPDX-License-Identifier: Apache-2.0
// A CTA has 64 results of 32 channels. TMA's im2col mode loads the pixels of one place of the window
// after the other; pixels outside the image are zero.
struct alignas(64) Map {
  unsigned long long words[16];
};
// version, rank, 32 channels of 64 pixels, modes, bits of an element, no swizzle
extern "C" __device__ const unsigned cg_pixels[15] = {1, 4, 32, 64, 1, 1, 0, 0, 1, 2, 3, 0, 32, 0, 0};

extern "C" __global__ void pool(const __grid_constant__ Map map, float* out, int pixels, int p, int q, int channels,
                                long long image_stride, long long row_stride, long long column_stride,
                                long long channel_stride) {
  __shared__ alignas(128) float tile[64][32];
  __shared__ alignas(8) unsigned long long barrier;
  const unsigned bar = unsigned(__cvta_generic_to_shared(&barrier));
  const unsigned to = unsigned(__cvta_generic_to_shared(&tile[0][0]));
  const int c0 = blockIdx.x * 32, first = blockIdx.y * 64;
  const int x0 = first % q * 2 - 1, y0 = first / q % p * 2 - 1, image = first / q / p;
  if (threadIdx.x == 0) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(bar) : "memory");
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  }
  __syncthreads();
  float sums[8] = {};
  for (int place = 0; place < 9; ++place) {
    if (threadIdx.x == 0) {
      const unsigned short across = place % 3, down = place / 3;
      asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(bar), "r"(64 * 32 * 4) : "memory");
      asm volatile(
          "cp.async.bulk.tensor.4d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes "
          "[%0], [%1, {%2, %3, %4, %5}], [%6], {%7, %8};" ::"r"(to),
          "l"(&map), "r"(c0), "r"(x0), "r"(y0), "r"(image), "r"(bar), "h"(across), "h"(down)
          : "memory");
    }
    unsigned done = 0;
    while (!done)
      asm volatile(
          "{ .reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2; selp.u32 %0, 1, 0, p; }"
          : "=r"(done)
          : "r"(bar), "r"(place % 2)
          : "memory");
    for (int i = 0; i < 8; ++i) sums[i] += tile[threadIdx.x / 32 + 8 * i][threadIdx.x % 32];
    __syncthreads();
  }
  const int channel = c0 + threadIdx.x % 32;
  for (int i = 0; i < 8; ++i) {
    const int at = first + threadIdx.x / 32 + 8 * i;
    if (at < pixels && channel < channels)
      out[at / q / p * image_stride + at / q % p * row_stride + at % q * column_stride + channel * channel_stride] =
          sums[i] / 9;
  }
}
