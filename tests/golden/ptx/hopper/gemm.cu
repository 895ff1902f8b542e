// SPDX-License-Identifier: Apache-2.0
// Products of matrices by wgmma: out = a b with a warp that loads and warpgroups that multiply.
#include "hopper.cuh"

constexpr int kTile = 64, kStages = 3, kTileBytes = kTile * 128;

struct alignas(1024) Shared {
  unsigned char a[kStages][kTileBytes], b[kStages][kTileBytes], c[kTileBytes];
  u64 full[kStages], empty[kStages];
};

template <int Consumers>
DEVICE void begin(Shared& s) {
  if (threadIdx.x == 0) {
    for (int i = 0; i < kStages; ++i) init(at(&s.full[i]), 1), init(at(&s.empty[i]), Consumers);
    publish_barriers();
  }
  __syncthreads();
}

DEVICE void store(float* out, const float (&d)[32], int x0, int y0, int m, int n) {
  for (int i = 0; i < 32; ++i) {
    const int y = y0 + row_of(i), x = x0 + column_of(i);
    if (y < m && x < n) out[size_t(y) * n + x] = d[i];
  }
}

// Faults: 1 no wait for `empty`; 2 wrong parity of `full`; 3 too few bytes; 4 no wgmma.fence; 5 no
// wait for products; 6 wrong stride of the descriptor; 7 the next k of A; 8 a stage is released
// before its products; 9 too many arrivals; 10 no swizzle in A's descriptor; 11 stage beyond the last
template <bool Fp8>
DEVICE void pipeline(const Map& a, const Map& b, float* out, int m, int n, int k, int fault) {
  constexpr int per_row = Fp8 ? 128 : 64;
  __shared__ Shared s;
  begin<1>(s);
  const int x0 = blockIdx.x * kTile, y0 = blockIdx.y * kTile, steps = (k + per_row - 1) / per_row;
  Ring<kStages> ring{at(s.full), at(s.empty)};
  if (threadIdx.x >= 128) {
    if (threadIdx.x != 128) return;
    for (int i = 0; i < steps; ++i, ring.next()) {
      if (fault != 1) wait(ring.emptied(), ring.phase ^ 1);
      expect(ring.filled(), 2 * kTileBytes - (fault == 3 ? 16 : 0));
      load_2d(at(s.a[fault == 11 ? ring.stage + 1 : ring.stage]), a, i * per_row, y0, ring.filled());
      load_2d(at(s.b[ring.stage]), b, i * per_row, x0, ring.filled());
    }
    return;
  }
  float d[32];
  for (int i = 0; i < steps; ++i, ring.next()) {
    wait(ring.filled(), fault == 2 ? ring.phase ^ 1 : ring.phase);
    if (fault != 4) wgmma_fence();
    if (fault == 8 && threadIdx.x % 128 == 0) arrive(ring.emptied());
    const u32 from_a = at(s.a[ring.stage]), from_b = at(s.b[ring.stage]);
    for (int j = 0; j < 4; ++j) {
      u64 da = descriptor(from_a + 32 * j, 16, fault == 6 ? 4096 : 1024);
      if (fault == 7) da = descriptor(from_a + 32 * ((j + 1) % 4));
      if (fault == 10) da &= ~(u64(3) << 62);
      if constexpr (Fp8)
        multiply_fp8(d, da, descriptor(from_b + 32 * j), i + j > 0);
      else
        multiply_bf16(d, da, descriptor(from_b + 32 * j), i + j > 0);
    }
    wgmma_commit();
    if (fault != 5) wgmma_wait<0>();
    if (fault != 8 && threadIdx.x % 128 == 0) arrive(ring.emptied());
    if (fault == 9 && threadIdx.x % 128 == 1) arrive(ring.emptied());
  }
  store(out, d, x0, y0, m, n);
}

// a: m x k, b: n x k
KERNEL gemm_k_major(const __grid_constant__ Map a, const __grid_constant__ Map b, float* out, int m, int n, int k, int fault) {
  pipeline<false>(a, b, out, m, n, k, fault);
}
KERNEL gemm_fp8(const __grid_constant__ Map a, const __grid_constant__ Map b, float* out, int m, int n, int k, int fault) {
  pipeline<true>(a, b, out, m, n, k, fault);
}

// a: k x m, b: k x n. A row of a tile is one k; the operands are turned by their descriptors. The
// result goes through shared memory. Faults: 1 K-major A; 2 no proxy fence before the copy; 3 no
// barrier before it; 4 the wrong step from k to k; 5 the stage is refilled early; 6 a tile of the result is misplaced
KERNEL gemm_mn_major(const __grid_constant__ Map a, const __grid_constant__ Map b, const __grid_constant__ Map c, int k, int fault) {
  __shared__ Shared s;
  begin<128>(s);
  const int x0 = blockIdx.x * kTile, y0 = blockIdx.y * kTile, steps = (k + kTile - 1) / kTile;
  Ring<kStages> ring{at(s.full), at(s.empty)};
  if (threadIdx.x >= 128) {
    if (threadIdx.x != 128) return;
    for (int i = 0; i < steps; ++i, ring.next()) {
      wait(ring.emptied(), ring.phase ^ 1);
      expect(ring.filled(), 2 * kTileBytes);
      load_2d(at(s.a[ring.stage]), a, y0, i * kTile, ring.filled());
      load_2d(at(s.b[ring.stage]), b, x0, i * kTile, ring.filled());
    }
    return;
  }
  float d[32];
  for (int i = 0; i < steps; ++i, ring.next()) {
    wait(ring.filled(), ring.phase);
    if (fault == 5) arrive(ring.emptied());
    wgmma_fence();
    for (int j = 0; j < 4; ++j) {
      const int step = fault == 4 ? 1024 : 2048;
      const u64 da = descriptor(at(s.a[ring.stage]) + step * j), db = descriptor(at(s.b[ring.stage]) + 2048 * j);
      if (fault == 1)
        multiply_bf16<0, 1>(d, da, db, i + j > 0);
      else
        multiply_bf16<1, 1>(d, da, db, i + j > 0);
    }
    wgmma_commit();
    wgmma_wait<0>();
    if (fault != 5) arrive(ring.emptied());
  }
  for (int i = 0; i < 32; i += 2)
    *reinterpret_cast<u32*>(s.c + swizzled(row_of(i), 2 * column_of(i))) = pack(d[i], d[i + 1]);
  if (fault != 2) fence_shared();
  if (fault != 3) named_barrier(1, 128);
  if (threadIdx.x == 0) {
    store_2d(c, fault == 6 ? x0 + 8 : x0, y0, at(s.c));
    commit_stores();
    wait_stores();
  }
}

// Two warpgroups share a tile of 128 x 64. Faults: 1 the second half reads the first one's A; 2
// only one warpgroup releases a stage; 3 one warpgroup releases before its products end; 4 the
// consumers' registers exceed the file
KERNEL gemm_cooperative(const __grid_constant__ Map a, const __grid_constant__ Map b, float* out, int m, int n, int k, int fault) {
  extern __shared__ __align__(1024) unsigned char memory[];
  __shared__ u64 full[kStages], empty[kStages];
  unsigned char(*tile_a)[2 * kTileBytes] = reinterpret_cast<unsigned char(*)[2 * kTileBytes]>(memory);
  unsigned char(*tile_b)[kTileBytes] = reinterpret_cast<unsigned char(*)[kTileBytes]>(memory + 2 * kStages * kTileBytes);
  if (threadIdx.x == 0) {
    for (int i = 0; i < kStages; ++i) init(at(&full[i]), 1), init(at(&empty[i]), fault == 2 ? 1 : 2);
    publish_barriers();
  }
  __syncthreads();
  const int group = threadIdx.x / 128, x0 = blockIdx.x * kTile, y0 = blockIdx.y * 2 * kTile, steps = (k + kTile - 1) / kTile;
  Ring<kStages> ring{at(full), at(empty)};
  if (group == 2) {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
    if (threadIdx.x != 256) return;
    for (int i = 0; i < steps; ++i, ring.next()) {
      wait(ring.emptied(), ring.phase ^ 1);
      expect(ring.filled(), 3 * kTileBytes);
      load_2d(at(tile_a[ring.stage]), a, i * kTile, y0, ring.filled());
      load_2d(at(tile_b[ring.stage]), b, i * kTile, x0, ring.filled());
    }
    return;
  }
  if (fault == 4)
    asm volatile("setmaxnreg.inc.sync.aligned.u32 256;");
  else
    asm volatile("setmaxnreg.inc.sync.aligned.u32 232;");
  float d[32];
  for (int i = 0; i < steps; ++i, ring.next()) {
    wait(ring.filled(), ring.phase);
    if (fault == 3 && group == 1 && threadIdx.x % 128 == 0) arrive(ring.emptied());
    wgmma_fence();
    const u32 from = at(tile_a[ring.stage]) + (fault == 1 ? 0 : group * kTileBytes);
    for (int j = 0; j < 4; ++j) multiply_bf16(d, descriptor(from + 32 * j), descriptor(at(tile_b[ring.stage]) + 32 * j), i + j > 0);
    wgmma_commit();
    wgmma_wait<0>();
    const bool releases = fault == 2 ? group == 0 : fault != 3 || group == 0;
    if (releases && threadIdx.x % 128 == 0) arrive(ring.emptied());
  }
  store(out, d, x0, y0 + group * kTile, m, n);
}

// Two warpgroups take tiles in turn: while one multiplies, the other one stores. The loader runs
// over the tiles of the CTA without a pause. Faults: 1 the turns are not kept; 2 a warpgroup begins
// at the other one's stage; 3 a warpgroup keeps its phase; 4 the second warpgroup skips its turn
KERNEL gemm_ping_pong(const __grid_constant__ Map a, const __grid_constant__ Map b, float* out, int m, int n, int k, int fault) {
  __shared__ Shared s;
  begin<1>(s);
  const int across = (n + kTile - 1) / kTile, tiles = across * ((m + kTile - 1) / kTile), steps = (k + kTile - 1) / kTile;
  const int group = threadIdx.x / 128;
  Ring<kStages> ring{at(s.full), at(s.empty)};
  if (group == 2) {
    if (threadIdx.x != 256) return;
    for (int t = blockIdx.x; t < tiles; t += gridDim.x) {
      for (int i = 0; i < steps; ++i, ring.next()) {
        wait(ring.emptied(), ring.phase ^ 1);
        expect(ring.filled(), 2 * kTileBytes);
        load_2d(at(s.a[ring.stage]), a, i * kTile, t / across * kTile, ring.filled());
        load_2d(at(s.b[ring.stage]), b, i * kTile, t % across * kTile, ring.filled());
      }
    }
    return;
  }
  int turn = 0;
  for (int t = blockIdx.x; t < tiles; t += gridDim.x, ++turn) {
    if (turn % 2 != group) {
      for (int i = 0; i < steps; ++i) {
        if (fault != 2) ring.next();
        if (fault == 3) ring.phase = 0;
      }
      continue;
    }
    if (turn > 0 && fault != 1) named_barrier(1 + group, 256);
    float d[32];
    for (int i = 0; i < steps; ++i, ring.next()) {
      wait(ring.filled(), ring.phase);
      wgmma_fence();
      for (int j = 0; j < 4; ++j)
        multiply_bf16(d, descriptor(at(s.a[ring.stage]) + 32 * j), descriptor(at(s.b[ring.stage]) + 32 * j), i + j > 0);
      wgmma_commit();
      wgmma_wait<0>();
      if (threadIdx.x % 128 == 0) arrive(ring.emptied());
    }
    const bool last = t + gridDim.x >= tiles;
    if (!last && fault != 1 && !(fault == 4 && group == 1)) named_arrive(1 + (group ^ 1), 256);
    store(out, d, t % across * kTile, t / across * kTile, m, n);
  }
}

// A cluster of two CTAs side by side in y: each loads half of B's tile for both. Faults: 1 a mask
// of one CTA; 2 a mask of the wrong CTA; 3 the other CTA is not told that a stage is empty; 4 half
// the bytes are expected; 5 `empty` counts one CTA; 6 the CTAs end without waiting for each other;
// 7 no barrier after the initialisation; 8 a mask beyond the cluster; 9 arrives at its own twice
KERNEL gemm_multicast(const __grid_constant__ Map a, const __grid_constant__ Map b, float* out, int m, int n, int k, int fault) {
  __shared__ Shared s;
  const u32 rank = rank_in_cluster();
  if (threadIdx.x == 0) {
    for (int i = 0; i < kStages; ++i) init(at(&s.full[i]), 1), init(at(&s.empty[i]), fault == 5 ? 1 : 2);
    publish_barriers();
  }
  if (fault == 7)
    __syncthreads();
  else
    cluster_sync();
  const int x0 = blockIdx.x * kTile, y0 = blockIdx.y * kTile, steps = (k + kTile - 1) / kTile;
  Ring<kStages> ring{at(s.full), at(s.empty)};
  if (threadIdx.x >= 128) {
    if (threadIdx.x == 128) {
      unsigned short ctas = 3;
      if (fault == 1) ctas = 1 << rank;
      if (fault == 2) ctas = 2 >> rank;
      if (fault == 8) ctas = 5;
      for (int i = 0; i < steps; ++i, ring.next()) {
        wait(ring.emptied(), ring.phase ^ 1);
        expect(ring.filled(), fault == 4 ? kTileBytes + kTileBytes / 2 : 2 * kTileBytes);
        load_2d(at(s.a[ring.stage]), a, i * kTile, y0, ring.filled());
        load_2d_to(at(s.b[ring.stage]) + rank * kTileBytes / 2, b, i * kTile, x0 + int(rank) * 32, ring.filled(), ctas);
      }
    }
  } else {
    float d[32];
    for (int i = 0; i < steps; ++i, ring.next()) {
      wait(ring.filled(), ring.phase);
      wgmma_fence();
      for (int j = 0; j < 4; ++j)
        multiply_bf16(d, descriptor(at(s.a[ring.stage]) + 32 * j), descriptor(at(s.b[ring.stage]) + 32 * j), i + j > 0);
      wgmma_commit();
      wgmma_wait<0>();
      if (threadIdx.x < 2 && (fault != 3 || threadIdx.x == rank)) arrive_at(ring.emptied(), fault == 9 ? rank : threadIdx.x);
      if (fault == 3 && threadIdx.x == rank) arrive(ring.emptied());
    }
    store(out, d, x0, y0, m, n);
  }
  __syncthreads();
  if (fault != 6) cluster_sync();
}
