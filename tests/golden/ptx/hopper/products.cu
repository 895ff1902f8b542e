// SPDX-License-Identifier: Apache-2.0
// wgmma with operands from registers: attention, a mixed product, fp32 by three tf32 products.
#include "hopper.cuh"

// Attention forward for one head of 64: a CTA has 64 queries and streams keys and values. The
// probabilities stay in registers. Faults: 1 the scores are read before their wait; 2 the values
// are K-major; 3 the running maximum does not rescale; 4 no fence before the second product; 5 keys
// beyond the end count; 6 the loads of keys and values share too few bytes; 7 a stage is refilled
// while its values are read; 8 the accumulator is scaled during its product
KERNEL attention(const __grid_constant__ Map q, const __grid_constant__ Map k, const __grid_constant__ Map v, float* out, int queries, int keys, int fault) {
  __shared__ alignas(1024) unsigned char tile_q[8192], tile_k[2][8192], tile_v[2][8192];
  __shared__ u64 ready, full[2], empty[2];
  if (threadIdx.x == 0) {
    init(at(&ready), 1);
    for (int i = 0; i < 2; ++i) init(at(&full[i]), 1), init(at(&empty[i]), 1);
    publish_barriers();
  }
  __syncthreads();
  const int y0 = blockIdx.x * 64, steps = (keys + 63) / 64;
  Ring<2> ring{at(full), at(empty)};
  if (threadIdx.x >= 128) {
    if (threadIdx.x != 128) return;
    expect(at(&ready), 8192);
    load_2d(at(tile_q), q, 0, y0, at(&ready));
    for (int i = 0; i < steps; ++i, ring.next()) {
      if (fault != 7) wait(ring.emptied(), ring.phase ^ 1);
      expect(ring.filled(), fault == 6 ? 8192 : 16384);
      load_2d(at(tile_k[ring.stage]), k, 0, i * 64, ring.filled());
      load_2d(at(tile_v[ring.stage]), v, 0, i * 64, ring.filled());
    }
    return;
  }
  wait(at(&ready), 0);
  float o[32], most[2] = {-kInfinity, -kInfinity}, total[2] = {0, 0};
  for (int i = 0; i < 32; ++i) o[i] = 0;
  for (int i = 0; i < steps; ++i, ring.next()) {
    wait(ring.filled(), ring.phase);
    float s[32];
    wgmma_fence();
    for (int j = 0; j < 4; ++j) multiply_bf16(s, descriptor(at(tile_q) + 32 * j), descriptor(at(tile_k[ring.stage]) + 32 * j), j > 0);
    wgmma_commit();
    if (fault != 1) wgmma_wait<0>();
    float now[2] = {most[0], most[1]};
    for (int e = 0; e < 32; ++e) {
      s[e] = i * 64 + column_of(e) < keys || fault == 5 ? s[e] * 0.125f : -kInfinity;
      now[e / 2 % 2] = fmaxf(now[e / 2 % 2], s[e]);
    }
    for (int h = 0; h < 2; ++h) {
      for (int lane = 1; lane < 4; lane *= 2) now[h] = fmaxf(now[h], __shfl_xor_sync(~0u, now[h], lane));
      const float scale = fault == 3 ? 1 : exp2f((most[h] - now[h]) * 1.44269504f);
      total[h] *= scale, most[h] = now[h];
      for (int e = 0; e < 32; ++e)
        if (e / 2 % 2 == h) o[e] *= scale;
    }
    u32 p[4][4];
    for (int e = 0; e < 32; e += 2) {
      const int h = e / 2 % 2;
      const float low = exp2f((s[e] - most[h]) * 1.44269504f), high = exp2f((s[e + 1] - most[h]) * 1.44269504f);
      total[h] += low + high;
      p[e / 8][e % 8 / 2] = pack(low, high);
    }
    if (fault != 4) wgmma_fence();
    for (int j = 0; j < 4; ++j) {
      const u64 values = descriptor(at(tile_v[ring.stage]) + 2048 * j);
      if (fault == 2)
        multiply_bf16<0>(o, p[j], values, 1);
      else
        multiply_bf16<1>(o, p[j], values, 1);
    }
    wgmma_commit();
    if (fault == 8)
      for (int e = 0; e < 32; ++e) o[e] *= 1.0001f;
    wgmma_wait<0>();
    if (threadIdx.x == 0) arrive(ring.emptied());
  }
  for (int h = 0; h < 2; ++h)
    for (int lane = 1; lane < 4; lane *= 2) total[h] += __shfl_xor_sync(~0u, total[h], lane);
  for (int e = 0; e < 32; ++e) {
    const int y = y0 + row_of(e);
    if (y < queries) out[size_t(y) * 64 + column_of(e)] = o[e] / total[e / 2 % 2];
  }
}

// out = a b with a of 8-bit integers: they become bf16 in registers. b: n x k. Faults: 1 the next
// k; 2 registers change before the wait; 3 no fence; 4 the halves of a pair are exchanged
KERNEL gemm_mixed(const signed char* a, const __grid_constant__ Map b, float* out, int m, int n, int k, int fault) {
  __shared__ alignas(1024) unsigned char tile_b[2][8192];
  __shared__ u64 full[2], empty[2];
  if (threadIdx.x == 0) {
    for (int i = 0; i < 2; ++i) init(at(&full[i]), 1), init(at(&empty[i]), 128);
    publish_barriers();
  }
  __syncthreads();
  const int x0 = blockIdx.x * 64, y0 = blockIdx.y * 64, steps = (k + 63) / 64;
  Ring<2> ring{at(full), at(empty)};
  if (threadIdx.x >= 128) {
    if (threadIdx.x != 128) return;
    for (int i = 0; i < steps; ++i, ring.next()) {
      wait(ring.emptied(), ring.phase ^ 1);
      expect(ring.filled(), 8192);
      load_2d(at(tile_b[ring.stage]), b, i * 64, x0, ring.filled());
    }
    return;
  }
  auto value = [&](int y, int x) { return y < m && x < k ? float(a[size_t(y) * k + x]) : 0.f; };
  float d[32];
  for (int i = 0; i < steps; ++i, ring.next()) {
    wait(ring.filled(), ring.phase);
    u32 f[4][4];
    for (int j = 0; j < 4; ++j) {
      for (int r = 0; r < 4; ++r) {
        const int y = y0 + threadIdx.x / 32 * 16 + threadIdx.x % 32 / 4 + r % 2 * 8;
        const int x = i * 64 + (fault == 1 ? (j + 1) % 4 : j) * 16 + threadIdx.x % 4 * 2 + r / 2 * 8;
        f[j][r] = fault == 4 ? pack(value(y, x + 1), value(y, x)) : pack(value(y, x), value(y, x + 1));
      }
    }
    if (fault != 3) wgmma_fence();
    for (int j = 0; j < 4; ++j) multiply_bf16<0>(d, f[j], descriptor(at(tile_b[ring.stage]) + 32 * j), i + j > 0);
    wgmma_commit();
    if (fault == 2) asm volatile("add.f32 %0, %0, 0f3F800000;" : "+f"(d[0]));
    wgmma_wait<0>();
    arrive(ring.emptied());
  }
  for (int e = 0; e < 32; ++e) {
    const int y = y0 + row_of(e), x = x0 + column_of(e);
    if (y < m && x < n) out[size_t(y) * n + x] = d[e];
  }
}

// fp32 by three tf32 products. The CTA splits B in shared memory into high and low parts; A is
// split in registers. b: n x k. Faults: 1 without the small terms; 2 no proxy fence after the
// split; 3 no barrier after it; 4 no wait before B is overwritten; 5 the low part is not scaled
DEVICE u32 tf32(float x) {
  u32 out;
  asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(out) : "f"(x));
  return out;
}
KERNEL gemm_tf32x3(const float* a, const __grid_constant__ Map b, float* out, int m, int n, int k, int fault) {
  __shared__ alignas(1024) unsigned char loaded[8192], high[8192], low[8192];
  __shared__ u64 full;
  if (threadIdx.x == 0) {
    init(at(&full), 1);
    publish_barriers();
  }
  __syncthreads();
  const int x0 = blockIdx.x * 64, y0 = blockIdx.y * 64, steps = (k + 31) / 32;
  auto value = [&](int y, int x) { return y < m && x < k ? a[size_t(y) * k + x] : 0.f; };
  float d[32];
  for (int i = 0; i < steps; ++i) {
    if (threadIdx.x == 0) {
      expect(at(&full), 8192);
      load_2d(at(loaded), b, i * 32, x0, at(&full));
    }
    wait(at(&full), i & 1);
    for (int e = threadIdx.x; e < 2048; e += 128) {
      const float x = reinterpret_cast<const float*>(loaded)[e];
      const u32 h = tf32(x);
      reinterpret_cast<u32*>(high)[e] = h;
      reinterpret_cast<u32*>(low)[e] = fault == 5 ? h : tf32(x - __uint_as_float(h));
    }
    if (fault != 2) fence_shared();
    if (fault != 3) __syncthreads();
    u32 big[4][4], small[4][4];
    for (int j = 0; j < 4; ++j) {
      for (int r = 0; r < 4; ++r) {
        const int y = y0 + threadIdx.x / 32 * 16 + threadIdx.x % 32 / 4 + r % 2 * 8;
        const float x = value(y, i * 32 + j * 8 + threadIdx.x % 4 + r / 2 * 4);
        big[j][r] = tf32(x), small[j][r] = tf32(x - __uint_as_float(big[j][r]));
      }
    }
    wgmma_fence();
    for (int j = 0; j < 4; ++j) {
      const u64 h = descriptor(at(high) + 32 * j), l = descriptor(at(low) + 32 * j);
      if (fault != 1) {
        multiply_tf32(d, small[j], h, i + j > 0);
        multiply_tf32(d, big[j], l, 1);
      }
      multiply_tf32(d, big[j], h, fault == 1 ? i + j > 0 : 1);
    }
    wgmma_commit();
    if (fault != 4) wgmma_wait<0>();
    __syncthreads();
  }
  wgmma_wait<0>();
  for (int e = 0; e < 32; ++e) {
    const int y = y0 + row_of(e), x = x0 + column_of(e);
    if (y < m && x < n) out[size_t(y) * n + x] = d[e];
  }
}
