// SPDX-License-Identifier: Apache-2.0
// Programs over rows: softmax in a cluster, a norm of persistent CTAs, sums by TMA reductions, a
// chain of two steps, sums round a ring of CTAs, a pipeline of cp.async.
#include "hopper.cuh"

DEVICE float sum_of_warp(float x) {
  for (int i = 16; i > 0; i /= 2) x += __shfl_xor_sync(~0u, x, i);
  return x;
}
DEVICE float max_of_warp(float x) {
  for (int i = 16; i > 0; i /= 2) x = fmaxf(x, __shfl_xor_sync(~0u, x, i));
  return x;
}

// One row for each cluster; a CTA keeps its part in shared memory and asks the others for their
// maxima and sums. Faults: 1 no barrier before the maxima are read; 2 no barrier before the sums
// are read; 3 a CTA ends early; 4 no proxy fence before the store; 5 a wrong count of bytes; 6 a
// rank beyond the cluster; 7 the maxima of the CTA's own rank only; 8 read before the mbarrier
constexpr int kPart = 1024;
KERNEL cluster_softmax(const float* x, float* out, int columns, int fault) {
  __shared__ alignas(128) float part[kPart];
  __shared__ float warps[4], most, total;
  __shared__ u64 bar;
  const int rank = rank_in_cluster(), ctas = ctas_in_cluster(), row = blockIdx.x / ctas;
  const int each = (columns / 4 + ctas - 1) / ctas * 4, first = rank * each;
  const int n = max(0, min(each, columns - first));
  if (threadIdx.x == 0) {
    init(at(&bar), 1);
    publish_barriers();
    expect(at(&bar), n * 4 - (fault == 5 && n > 0 ? 4 : 0));
    if (n > 0) load_bytes(at(part), x + size_t(row) * columns + first, n * 4, at(&bar));
  }
  __syncthreads();
  if (fault != 8) wait(at(&bar), 0);
  float m = -kInfinity;
  for (int i = threadIdx.x; i < n; i += blockDim.x) m = fmaxf(m, part[i]);
  m = max_of_warp(m);
  if (threadIdx.x % 32 == 0) warps[threadIdx.x / 32] = m;
  __syncthreads();
  if (threadIdx.x == 0) most = fmaxf(fmaxf(warps[0], warps[1]), fmaxf(warps[2], warps[3]));
  if (fault == 1)
    __syncthreads();
  else
    cluster_sync();
  m = -kInfinity;
  for (int i = 0; i < ctas; ++i) {
    float other;
    const u32 from = in_cta(at(&most), fault == 6 ? i + 1 : fault == 7 ? rank : i);
    asm volatile("ld.shared::cluster.f32 %0, [%1];" : "=f"(other) : "r"(from) : "memory");
    m = fmaxf(m, other);
  }
  float sum = 0;
  for (int i = threadIdx.x; i < n; i += blockDim.x) sum += part[i] = exp2f((part[i] - m) * 1.44269504f);
  sum = sum_of_warp(sum);
  if (threadIdx.x % 32 == 0) warps[threadIdx.x / 32] = sum;
  __syncthreads();
  if (threadIdx.x == 0) total = warps[0] + warps[1] + warps[2] + warps[3];
  if (fault == 2)
    __syncthreads();
  else
    cluster_sync();
  sum = 0;
  for (int i = 0; i < ctas; ++i) {
    float other;
    asm volatile("ld.shared::cluster.f32 %0, [%1];" : "=f"(other) : "r"(in_cta(at(&total), i)) : "memory");
    sum += other;
  }
  for (int i = threadIdx.x; i < n; i += blockDim.x) part[i] /= sum;
  if (fault != 4) fence_shared();
  if (fault == 3)
    __syncthreads();
  else
    cluster_sync();
  if (threadIdx.x == 0 && n > 0) {
    store_bytes(out + size_t(row) * columns + first, at(part), n * 4);
    commit_stores();
    wait_stores();
  }
}

// Root mean square norm. Two rows are in flight; CTAs take rows until none is left. Faults: 1 a row
// is refilled before it is read; 2 the parity never changes; 3 the store's source is overwritten; 4
// no proxy fence; 5 the next row is never loaded
constexpr int kColumns = 512;
KERNEL persistent_norm(const float* x, float* out, int rows, int columns, int fault) {
  __shared__ alignas(128) float in[2][kColumns], result[kColumns];
  __shared__ float warps[4];
  __shared__ u64 bars[2];
  auto load = [&](int row, int slot) {
    expect(at(&bars[slot]), columns * 4);
    load_bytes(at(in[slot]), x + size_t(row) * columns, columns * 4, at(&bars[slot]));
  };
  if (threadIdx.x == 0) {
    init(at(&bars[0]), 1), init(at(&bars[1]), 1);
    publish_barriers();
    if (blockIdx.x < rows) load(blockIdx.x, 0);
  }
  __syncthreads();
  int turn = 0;
  for (int row = blockIdx.x; row < rows; row += gridDim.x, ++turn) {
    const int slot = turn & 1, next = row + gridDim.x;
    if (threadIdx.x == 0 && next < rows && !(fault == 5 && turn == 1)) load(next, fault == 1 ? slot : slot ^ 1);
    wait(at(&bars[slot]), fault == 2 ? 0 : turn / 2 & 1);
    float sum = 0;
    for (int i = threadIdx.x; i < columns; i += blockDim.x) sum += in[slot][i] * in[slot][i];
    sum = sum_of_warp(sum);
    if (threadIdx.x % 32 == 0) warps[threadIdx.x / 32] = sum;
    if (threadIdx.x == 0 && fault != 3) wait_reads();
    __syncthreads();
    const float scale = rsqrtf((warps[0] + warps[1] + warps[2] + warps[3]) / columns + 1e-5f);
    for (int i = threadIdx.x; i < columns; i += blockDim.x) result[i] = in[slot][i] * scale;
    if (fault != 4) fence_shared();
    __syncthreads();
    if (threadIdx.x == 0) {
      store_bytes(out + size_t(row) * columns, at(result), columns * 4);
      commit_stores();
    }
  }
  if (threadIdx.x == 0) wait_stores();
}

// Sums over rows: each CTA adds its 32 rows to one row of `out` by a tensor reduction. Faults: 1 no
// proxy fence; 2 no barrier; 3 a store instead of the reduction; 4 another column; 5 the copy is
// misaligned
KERNEL tma_sums(const float* x, const __grid_constant__ Map sums, int rows, int columns, int fault) {
  __shared__ alignas(128) float part[64];
  const int column = blockIdx.x * 64 + threadIdx.x, first = blockIdx.y * 32;
  float sum = 0;
  for (int row = first; row < min(first + 32, rows); ++row)
    if (column < columns) sum += x[size_t(row) * columns + column];
  part[threadIdx.x] = sum;
  if (fault != 1) fence_shared();
  if (fault != 2) __syncthreads();
  if (threadIdx.x == 0) {
    const int to = blockIdx.x * 64 + (fault == 4 ? 4 : 0);
    if (fault == 3)
      store_2d(sums, to, 0, at(part));
    else
      add_2d(sums, to, 0, at(part) + (fault == 5 ? 16 : 0));
    commit_stores();
    wait_stores();
  }
}

// Two steps of a chain: the second one may begin before the first one has ended. Faults: 1 no wait;
// 2 the wait comes after the first read; 3 another slice
KERNEL chain_square(const float* x, float* between, int n, int fault) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  asm volatile("griddepcontrol.launch_dependents;");
  if (i < n) between[i] = x[i] * x[i];
}
KERNEL chain_sum(const float* between, float* out, int n, int fault) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  const float early = fault == 2 && i < n ? between[i] : 0;
  if (fault != 1) asm volatile("griddepcontrol.wait;" ::: "memory");
  if (i >= n) return;
  const float here = fault == 2 ? early : between[i];
  out[i] = here + between[(i + (fault == 3 ? 2 : 1)) % n];
}

// Every CTA of a cluster gives its vector to its neighbour by st.async; after a round all have the
// sum. Faults: 1 the wrong mbarrier; 2 too few bytes; 3 no wait for the neighbour; 4 the slot is
// written twice; 5 read before the arrival
KERNEL ring_sum(const float* x, float* out, int fault) {
  __shared__ float slots[8][64];
  __shared__ u64 bars[8];
  const u32 rank = rank_in_cluster(), ctas = ctas_in_cluster(), next = (rank + 1) % ctas;
  const int i = threadIdx.x;
  if (i == 0) {
    for (u32 k = 0; k < ctas; ++k) init(at(&bars[k]), 1);
    publish_barriers();
    for (u32 k = 1; k < ctas; ++k) expect(at(&bars[k]), 256 - (fault == 2 ? 4 : 0));
  }
  if (fault == 3)
    __syncthreads();
  else
    cluster_sync();
  float mine = x[blockIdx.x * 64 + i], sum = mine;
  for (u32 k = 1; k < ctas; ++k) {
    const u32 slot = fault == 4 ? 1 : k;
    const u32 to = in_cta(at(&slots[slot][i]), next), bar = in_cta(at(&bars[fault == 4 ? 1 : k]), fault == 1 ? rank : next);
    asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.f32 [%0], %1, [%2];" ::"r"(to), "f"(mine), "r"(bar) : "memory");
    if (fault != 5) wait(at(&bars[k]), 0);
    mine = slots[slot][i];
    sum += mine;
  }
  out[blockIdx.x * 64 + i] = sum;
  cluster_sync();
}

// Each CTA adds its counts to those of rank 0 by red.async. Faults: 1 too few bytes; 2 no wait; 3 a
// plain store of rank 0 meets the sums
KERNEL cluster_histogram(const int* x, float* out, int n, int fault) {
  __shared__ unsigned counts[64], all[64];
  __shared__ u64 bar;
  const u32 rank = rank_in_cluster(), ctas = ctas_in_cluster();
  counts[threadIdx.x] = 0, all[threadIdx.x] = 0;
  if (threadIdx.x == 0) {
    init(at(&bar), 1);
    publish_barriers();
    if (rank == 0) expect(at(&bar), ctas * 256 - (fault == 1 ? 4 : 0));
  }
  cluster_sync();
  for (int i = rank * 64 + threadIdx.x; i < n; i += ctas * 64) atomicAdd(&counts[x[i] & 63], 1u);
  __syncthreads();
  if (fault == 3 && rank == 0) all[threadIdx.x] = 0;
  asm volatile("red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.add.u32 [%0], %1, [%2];" ::"r"(in_cta(at(&all[threadIdx.x]), 0)),
               "r"(counts[threadIdx.x]), "r"(in_cta(at(&bar), 0)) : "memory");
  if (rank == 0) {
    if (fault != 2) wait(at(&bar), 0);
    out[threadIdx.x] = all[threadIdx.x];
  }
  cluster_sync();
}

// A product of a matrix and a vector; two stages are filled by cp.async, and mbarriers count the
// copies. Faults: 1 the arrival comes before the copies; 2 the parity; 3 a stage is refilled early;
// 4 the phase does not count the arrivals
KERNEL async_gemv(const float* a, const float* v, float* out, int rows, int columns, int fault) {
  __shared__ alignas(16) float stage[2][4][128];
  __shared__ u64 full[2], empty[2];
  if (threadIdx.x == 0) {
    for (int i = 0; i < 2; ++i) init(at(&full[i]), 32), init(at(&empty[i]), 128);
    publish_barriers();
  }
  __syncthreads();
  const int first = blockIdx.x * 4, steps = columns / 128;
  Ring<2> ring{at(full), at(empty)};
  if (threadIdx.x >= 128) {
    const int lane = threadIdx.x - 128;
    for (int i = 0; i < steps; ++i, ring.next()) {
      if (fault != 3) wait(ring.emptied(), ring.phase ^ 1);
      auto signal = [&] {
        if (fault == 4)
          asm volatile("cp.async.mbarrier.arrive.shared::cta.b64 [%0];" ::"r"(ring.filled()) : "memory");
        else
          asm volatile("cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%0];" ::"r"(ring.filled()) : "memory");
      };
      if (fault == 1) signal();
      for (int row = 0; row < 4; ++row) {
        const float* from = a + size_t(min(first + row, rows - 1)) * columns + i * 128 + lane * 4;
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(at(&stage[ring.stage][row][lane * 4])), "l"(from) : "memory");
      }
      if (fault != 1) signal();
    }
    return;
  }
  const int row = threadIdx.x / 32, lane = threadIdx.x % 32;
  float sum = 0;
  for (int i = 0; i < steps; ++i, ring.next()) {
    wait(ring.filled(), fault == 2 ? ring.phase ^ 1 : ring.phase);
    for (int k = lane; k < 128; k += 32) sum += stage[ring.stage][row][k] * v[i * 128 + k];
    arrive(ring.emptied());
  }
  sum = sum_of_warp(sum);
  if (lane == 0 && first + row < rows) out[first + row] = sum;
}
