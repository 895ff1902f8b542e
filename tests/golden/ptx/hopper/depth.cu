// SPDX-License-Identifier: Apache-2.0
// Products whose depth is divided: among CTAs that hand on parts of a tile (stream-K), by reductions
// of TMA into the result, and between two CTAs of a cluster. Also a product of bytes.
#include "hopper.cuh"

constexpr int kTile = 64, kStages = 3, kTileBytes = kTile * 128;

struct alignas(1024) Shared {
  unsigned char a[kStages][kTileBytes], b[kStages][kTileBytes];
  float sums[2][kTile * 32];  // a tile of the result, in two boxes of 32 columns
  u64 full[kStages], empty[kStages];
};

DEVICE void begin(Shared& s) {
  if (threadIdx.x == 0) {
    for (int i = 0; i < kStages; ++i) init(at(&s.full[i]), 1), init(at(&s.empty[i]), 1);
    publish_barriers();
  }
  __syncthreads();
}

DEVICE void load_steps(Shared& s, Ring<kStages>& ring, const Map& a, const Map& b, int x0, int y0, int first, int last) {
  for (int i = first; i < last; ++i, ring.next()) {
    wait(ring.emptied(), ring.phase ^ 1);
    expect(ring.filled(), 2 * kTileBytes);
    load_2d(at(s.a[ring.stage]), a, i * kTile, y0, ring.filled());
    load_2d(at(s.b[ring.stage]), b, i * kTile, x0, ring.filled());
  }
}

DEVICE void multiply_steps(Shared& s, Ring<kStages>& ring, float (&d)[32], int first, int last) {
  for (int i = first; i < last; ++i, ring.next()) {
    wait(ring.filled(), ring.phase);
    wgmma_fence();
    for (int j = 0; j < 4; ++j)
      multiply_bf16(d, descriptor(at(s.a[ring.stage]) + 32 * j), descriptor(at(s.b[ring.stage]) + 32 * j), i > first || j > 0);
    wgmma_commit();
    wgmma_wait<0>();
    if (threadIdx.x % 128 == 0) arrive(ring.emptied());
  }
}

DEVICE void store(float* out, const float (&d)[32], int x0, int y0, int m, int n) {
  for (int i = 0; i < 32; ++i) {
    const int y = y0 + row_of(i), x = x0 + column_of(i);
    if (y < m && x < n) out[size_t(y) * n + x] = d[i];
  }
}

// Every CTA takes an equal share of the steps of all tiles. The CTA that begins a tile adds the parts
// of those that go on with it. `parts` has room for one tile for each CTA, `ready` counts from zero.
// Faults: 1 a part is read without waiting; 2 the flag is set before the part is written; 3 only one
// more part is added; 4 a share begins one step early; 5 no barrier between the part and its flag;
// 6 the accumulator of the previous tile goes on
KERNEL gemm_stream_k(const __grid_constant__ Map a, const __grid_constant__ Map b, float* out, float* parts, u32* ready, int m, int n, int k, int fault) {
  __shared__ Shared s;
  begin(s);
  const int across = (n + kTile - 1) / kTile, steps = (k + kTile - 1) / kTile;
  const int all = across * ((m + kTile - 1) / kTile) * steps, each = (all + gridDim.x - 1) / gridDim.x;
  const int first = max(0, int(blockIdx.x) * each - (fault == 4 && blockIdx.x > 0)), last = min(all, (int(blockIdx.x) + 1) * each);
  Ring<kStages> ring{at(s.full), at(s.empty)};
  const bool loads = threadIdx.x == 128;
  if (threadIdx.x > 128) return;
  float d[32];
  for (int i = 0; i < 32; ++i) d[i] = 0;
  for (int at_step = first; at_step < last;) {
    const int tile = at_step / steps, from = at_step % steps, to = min(steps, from + last - at_step);
    const int x0 = tile % across * kTile, y0 = tile / across * kTile;
    at_step += to - from;
    if (loads) {
      load_steps(s, ring, a, b, x0, y0, from, to);
      continue;
    }
    float kept[32];
    for (int i = 0; i < 32; ++i) kept[i] = fault == 6 ? d[i] : 0;
    multiply_steps(s, ring, d, from, to);
    for (int i = 0; i < 32; ++i) d[i] += kept[i];
    if (from > 0) {  // the tile began in an earlier CTA
      if (fault == 2 && threadIdx.x == 0) atomicExch(&ready[blockIdx.x], 1u);
      for (int i = 0; i < 32; ++i) parts[(size_t(blockIdx.x) * 32 + i) * 128 + threadIdx.x] = d[i];
      __threadfence();
      if (fault != 5) named_barrier(1, 128);
      if (fault != 2 && threadIdx.x == 0) atomicExch(&ready[blockIdx.x], 1u);
      continue;
    }
    int covered = to, cta = blockIdx.x + 1;
    for (; covered < steps; covered += each, ++cta) {
      if (fault != 1) {
        if (threadIdx.x == 0)
          while (atomicAdd(&ready[cta], 0u) == 0) __nanosleep(20);
        __threadfence();
        named_barrier(1, 128);
      }
      for (int i = 0; i < 32; ++i) d[i] += parts[(size_t(cta) * 32 + i) * 128 + threadIdx.x];
      if (fault == 3) break;
    }
    store(out, d, x0, y0, m, n);
  }
}

// blockIdx.z has an equal share of the depth; TMA adds its tile to the result, which begins as zero.
// Faults: 1 no proxy fence; 2 no barrier before the copy; 3 copies instead of reductions; 4 shares
// overlap; 5 the second box lies where the first one does; 6 no wait before shared memory is reused
KERNEL gemm_reduce(const __grid_constant__ Map a, const __grid_constant__ Map b, const __grid_constant__ Map c, int k, int fault) {
  __shared__ Shared s;
  begin(s);
  const int steps = (k + kTile - 1) / kTile, share = (steps + gridDim.z - 1) / gridDim.z;
  const int first = blockIdx.z * share, last = min(steps, first + share + (fault == 4));
  const int x0 = blockIdx.x * kTile, y0 = blockIdx.y * kTile;
  Ring<kStages> ring{at(s.full), at(s.empty)};
  if (threadIdx.x >= 128) {
    if (threadIdx.x == 128) load_steps(s, ring, a, b, x0, y0, first, last);
    return;
  }
  float d[32];
  for (int i = 0; i < 32; ++i) d[i] = 0;
  multiply_steps(s, ring, d, first, last);
  if (first >= last) return;
  for (int i = 0; i < 32; ++i) s.sums[column_of(i) / 32][row_of(i) * 32 + column_of(i) % 32] = d[i];
  if (fault != 1) fence_shared();
  if (fault != 2) named_barrier(1, 128);
  if (threadIdx.x == 0) {
    for (int i = 0; i < 2; ++i) {
      const int x = fault == 5 ? x0 : x0 + 32 * i;
      if (fault == 3)
        store_2d(c, x, y0, at(s.sums[i]));
      else
        add_2d(c, x, y0, at(s.sums[i]));
    }
    commit_stores();
    if (fault == 6) s.sums[0][5] = 1;
    wait_stores();
  }
}

// A cluster of two CTAs along z: each has half of the depth; the second one writes its sums to the
// first one's shared memory. Faults: 1 no barrier before they are read; 2 the first CTA ends before
// they arrive; 3 the second one writes to its own memory; 4 both have the first half; 5 a rank beyond
// the cluster; 6 the first one writes there, too
KERNEL gemm_pairs(const __grid_constant__ Map a, const __grid_constant__ Map b, float* out, int m, int n, int k, int fault) {
  __shared__ Shared s;
  begin(s);
  cluster_sync();  // both CTAs have begun
  const int rank = rank_in_cluster(), steps = (k + kTile - 1) / kTile, half = (steps + 1) / 2;
  const int first = rank == 0 || fault == 4 ? 0 : half, last = rank == 0 || fault == 4 ? half : steps;
  const int x0 = blockIdx.x * kTile, y0 = blockIdx.y * kTile;
  Ring<kStages> ring{at(s.full), at(s.empty)};
  float d[32];
  for (int i = 0; i < 32; ++i) d[i] = 0;
  if (threadIdx.x == 128) load_steps(s, ring, a, b, x0, y0, first, last);
  if (threadIdx.x < 128) {
    if (fault == 6 && rank == 0)
      for (int i = 0; i < 32; ++i) s.sums[i / 16][i % 16 * 128 + threadIdx.x] = 1;
    multiply_steps(s, ring, d, first, last);
    if (rank == 1) {
      for (int i = 0; i < 32; ++i) {
        const u32 to = in_cta(at(&s.sums[i / 16][i % 16 * 128 + threadIdx.x]), fault == 3 ? 1 : fault == 5 ? 2 : 0);
        asm volatile("st.shared::cluster.f32 [%0], %1;" ::"r"(to), "f"(d[i]) : "memory");
      }
    }
  }
  if (fault == 2 && rank == 0) return;
  __syncwarp();
  if (fault != 1) cluster_sync();
  if (rank == 0 && threadIdx.x < 128) {
    for (int i = 0; i < 32; ++i) d[i] += s.sums[i / 16][i % 16 * 128 + threadIdx.x];
    store(out, d, x0, y0, m, n);
  }
  if (fault == 1) cluster_sync();
}

// Signed bytes; the sums are 32-bit integers. Faults: 1 unsigned bytes of a; 2 no wait for products;
// 3 the sums start from whatever is there; 4 the next k of b
KERNEL gemm_bytes(const __grid_constant__ Map a, const __grid_constant__ Map b, float* out, int m, int n, int k, int fault) {
  __shared__ Shared s;
  begin(s);
  constexpr int kDepth = 128;
  const int x0 = blockIdx.x * kTile, y0 = blockIdx.y * kTile, steps = (k + kDepth - 1) / kDepth;
  Ring<kStages> ring{at(s.full), at(s.empty)};
  if (threadIdx.x >= 128) {
    if (threadIdx.x != 128) return;
    for (int i = 0; i < steps; ++i, ring.next()) {
      wait(ring.emptied(), ring.phase ^ 1);
      expect(ring.filled(), 2 * kTileBytes);
      load_2d(at(s.a[ring.stage]), a, i * kDepth, y0, ring.filled());
      load_2d(at(s.b[ring.stage]), b, i * kDepth, x0, ring.filled());
    }
    return;
  }
  int d[32];
  for (int i = 0; i < 32; ++i) d[i] = 7;
  for (int i = 0; i < steps; ++i, ring.next()) {
    wait(ring.filled(), ring.phase);
    wgmma_fence();
    for (int j = 0; j < 4; ++j) {
      const u64 da = descriptor(at(s.a[ring.stage]) + 32 * j), db = descriptor(at(s.b[ring.stage]) + 32 * (fault == 4 ? (j + 1) % 4 : j));
      multiply_bytes(d, da, db, i + j > 0 || fault == 3, fault == 1);
    }
    wgmma_commit();
    if (fault != 2) wgmma_wait<0>();
    if (threadIdx.x % 128 == 0) arrive(ring.emptied());
  }
  float sums[32];
  for (int i = 0; i < 32; ++i) sums[i] = float(d[i]);
  store(out, sums, x0, y0, m, n);
}
