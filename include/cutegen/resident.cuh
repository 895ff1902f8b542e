// SPDX-License-Identifier: Apache-2.0
// Keeps a row in shared memory while a kernel reads it several times. The CTAs of a cluster may
// share a long row.
//
// Contract: a slot is the place of one vector in shared memory. Each thread copies its own vectors
// and reads only the slots that it copied, so the copies need no barrier.
// - copy_async starts a copy (sm_80 and later), and end_group closes a group of copies.
// - wait_groups waits until at most `pending` groups (0 to 15) of this thread are in flight.
// - combine_cluster merges the accumulators of Ctas CTAs (1 to 16, a power of 2). All threads of a
//   CTA must pass the same accumulator to combine_cluster. No other call may use the shared memory
//   `slot` of combine_cluster.
// - combine_columns_of_cluster merges V accumulators for each column; call it after
//   combine_columns. The `slot` of combine_columns_of_cluster must have room for 2 * Columns * V
//   accumulators.
// - leave_cluster must follow the last merge. leave_cluster keeps a CTA alive while other CTAs read
//   its shared memory (sm_90 and later).
//
// Example: copy_async(&kept[i], &x[i]); end_group(); wait_groups(0); sum.add(kept[i].element[0]);
//          combine_row<kWidth>(sum, shared); combine_cluster<8>(sum, slot); ... leave_cluster<8>();
#pragma once

#include <cutegen/reduce.cuh>
#include <cutegen/vec.cuh>

namespace cutegen {

template <class T, int V>
CUTE_DEVICE void copy_async(Pack<T, V>* to, T const* from) {
  constexpr int kBytes = sizeof(Pack<T, V>);
  const unsigned at = unsigned(__cvta_generic_to_shared(to));
  if constexpr (kBytes % 16 == 0) {
    CUTE_UNROLL
    for (int b = 0; b < kBytes; b += 16)
      asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(at + b),
                   "l"(reinterpret_cast<char const*>(from) + b)
                   : "memory");
  } else if constexpr (kBytes == 4 || kBytes == 8) {
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2;" ::"r"(at), "l"(from), "n"(kBytes)
                 : "memory");
  } else {  // cp.async copies 4, 8 or 16 bytes only
    *to = *reinterpret_cast<Pack<T, V> const*>(from);
  }
}
CUTE_DEVICE void end_group() { asm volatile("cp.async.commit_group;" ::: "memory"); }
template <int Pending = 0>
CUTE_DEVICE void wait_groups(int pending) {
  if constexpr (Pending < 15) {
    if (pending > Pending) return wait_groups<Pending + 1>(pending);
  }
  asm volatile("cp.async.wait_group %0;" ::"n"(Pending) : "memory");
}

// Converts the elements of a slot and writes them to `r`.
template <class T, int V, class R>
CUTE_DEVICE void load_slot(Pack<T, V> const& slot, R (&r)[V]) {
  const Pack<T, V> pack = slot;
  convert_all(pack.element, r);
}

// Writes the elements of `r` to a slot.
template <class T, int V>
CUTE_DEVICE void store_slot(T const (&r)[V], Pack<T, V>& slot) {
  Pack<T, V> pack;
  CUTE_UNROLL
  for (int v = 0; v < V; ++v) pack.element[v] = r[v];
  slot = pack;
}

CUTE_DEVICE void cluster_sync() {
  asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory");
  asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
}
template <int Ctas>
CUTE_DEVICE void leave_cluster() {
  if constexpr (Ctas > 1) cluster_sync();
}

template <int Ctas, class Acc>
CUTE_DEVICE void combine_cluster(Acc& acc, float* slot) {
  if constexpr (Ctas > 1) {
    constexpr int kWords = sizeof(Acc) / sizeof(unsigned);
    if (threadIdx.x == 0) memcpy(slot, &acc, sizeof(Acc));
    cluster_sync();
    unsigned words[kWords], at = unsigned(__cvta_generic_to_shared(slot)), theirs;
    asm volatile("mapa.shared::cluster.u32 %0, %1, %2;"
                 : "=r"(theirs)
                 : "r"(at), "r"(threadIdx.x % Ctas));
    CUTE_UNROLL
    for (int w = 0; w < kWords; ++w)
      asm volatile("ld.shared::cluster.u32 %0, [%1];"
                   : "=r"(words[w])
                   : "r"(theirs + 4 * w)
                   : "memory");
    memcpy(&acc, words, sizeof(Acc));
    combine_warp<Ctas>(acc);
  }
}

template <int Ctas, int Columns, int Threads, class Acc, int V>
CUTE_DEVICE void combine_columns_of_cluster(Acc (&acc)[V], float* slot) {
  if constexpr (Ctas > 1) {
    constexpr int kWords = sizeof(Acc) / sizeof(unsigned), kSlots = Columns * V;
    Acc* const mine = reinterpret_cast<Acc*>(slot);
    Acc* const totals = mine + kSlots;
    const int x = threadIdx.x % Columns;
    if (threadIdx.x < Columns) {
      CUTE_UNROLL
      for (int v = 0; v < V; ++v) mine[v * Columns + x] = acc[v];
    }
    cluster_sync();
    for (int s = threadIdx.x; s < kSlots; s += Threads) {
      const unsigned at = unsigned(__cvta_generic_to_shared(mine + s));
      Acc total;
      CUTE_UNROLL
      for (int cta = 0; cta < Ctas; ++cta) {
        unsigned words[kWords], theirs;
        asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(theirs) : "r"(at), "r"(cta));
        CUTE_UNROLL
        for (int w = 0; w < kWords; ++w)
          asm volatile("ld.shared::cluster.u32 %0, [%1];"
                       : "=r"(words[w])
                       : "r"(theirs + 4 * w)
                       : "memory");
        Acc part;
        memcpy(&part, words, sizeof(Acc));
        total.merge(part);
      }
      totals[s] = total;
    }
    __syncthreads();
    CUTE_UNROLL
    for (int v = 0; v < V; ++v) acc[v] = totals[v * Columns + x];
  }
}

}  // namespace cutegen
