// SPDX-License-Identifier: Apache-2.0
// What the Hopper programs share: mbarriers, tensor copies, wgmma, clusters. `Fault` selects one
// planted fault at run time, so that one PTX serves the right program and all its faults.
#pragma once

#include <cuda_bf16.h>

using u32 = unsigned;
using u64 = unsigned long long;
using bf16 = __nv_bfloat16;
struct alignas(64) Map {
  u64 words[16];
};

#define DEVICE __device__ __forceinline__
#define kInfinity __int_as_float(0x7f800000)
#define KERNEL extern "C" __global__ void

DEVICE u32 at(const void* p) { return u32(__cvta_generic_to_shared(p)); }

// mbarriers
DEVICE void init(u32 bar, u32 count) { asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(bar), "r"(count) : "memory"); }
DEVICE void publish_barriers() { asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory"); }
DEVICE void arrive(u32 bar) { asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(bar) : "memory"); }
DEVICE void expect(u32 bar, u32 bytes) { asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(bar), "r"(bytes) : "memory"); }
DEVICE void wait(u32 bar, u32 parity) {
  asm volatile(
      "{ .reg .pred p; WAIT_%=: mbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1; @!p bra WAIT_%=; }" ::"r"(bar), "r"(parity)
      : "memory");
}
DEVICE u32 in_cta(u32 address, u32 rank) {
  u32 out;
  asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(out) : "r"(address), "r"(rank));
  return out;
}
DEVICE void arrive_at(u32 bar, u32 rank) {
  asm volatile("mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%0];" ::"r"(in_cta(bar, rank)) : "memory");
}
DEVICE void fence_shared() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }
DEVICE void named_barrier(u32 id, u32 threads) { asm volatile("bar.sync %0, %1;" ::"r"(id), "r"(threads) : "memory"); }
DEVICE void named_arrive(u32 id, u32 threads) { asm volatile("bar.arrive %0, %1;" ::"r"(id), "r"(threads) : "memory"); }

// Clusters
DEVICE u32 rank_in_cluster() { u32 r; asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(r)); return r; }
DEVICE u32 ctas_in_cluster() { u32 r; asm volatile("mov.u32 %0, %%cluster_nctarank;" : "=r"(r)); return r; }
DEVICE void cluster_sync() {
  asm volatile("barrier.cluster.arrive.release.aligned; barrier.cluster.wait.acquire.aligned;" ::: "memory");
}

// Copies
DEVICE void load_2d(u32 to, const Map& map, int x, int y, u32 bar) {
  asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];"
               ::"r"(to), "l"(&map), "r"(x), "r"(y), "r"(bar) : "memory");
}
DEVICE void load_2d_to(u32 to, const Map& map, int x, int y, u32 bar, unsigned short ctas) {
  asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%0], [%1, {%2, %3}], [%4], %5;"
               ::"r"(to), "l"(&map), "r"(x), "r"(y), "r"(bar), "h"(ctas) : "memory");
}
DEVICE void store_2d(const Map& map, int x, int y, u32 from) {
  asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%0, {%1, %2}], [%3];" ::"l"(&map), "r"(x), "r"(y), "r"(from) : "memory");
}
DEVICE void add_2d(const Map& map, int x, int y, u32 from) {
  asm volatile("cp.reduce.async.bulk.tensor.2d.global.shared::cta.add.bulk_group [%0, {%1, %2}], [%3];" ::"l"(&map), "r"(x), "r"(y), "r"(from) : "memory");
}
DEVICE void load_bytes(u32 to, const void* from, u32 bytes, u32 bar) {
  asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(to), "l"(from), "r"(bytes), "r"(bar) : "memory");
}
DEVICE void store_bytes(void* to, u32 from, u32 bytes) {
  asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(to), "r"(from), "r"(bytes) : "memory");
}
DEVICE void commit_stores() { asm volatile("cp.async.bulk.commit_group;" ::: "memory"); }
DEVICE void wait_stores() { asm volatile("cp.async.bulk.wait_group 0;" ::: "memory"); }
DEVICE void wait_reads() { asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory"); }

// wgmma, 64 x 64. A tile has rows of 128 bytes (128-byte swizzle), in blocks of 8 rows.
DEVICE u64 descriptor(u32 address, u64 leading = 16, u64 stride = 1024) {
  return u64((address & 0x3ffff) >> 4) | (leading >> 4) << 16 | (stride >> 4) << 32 | u64(1) << 62;
}
DEVICE void wgmma_fence() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
DEVICE void wgmma_commit() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
template <int Left>
DEVICE void wgmma_wait() { asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(Left) : "memory"); }

#define ACC4(d, i) "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3])
#define ACC(d) ACC4(d, 0), ACC4(d, 4), ACC4(d, 8), ACC4(d, 12), ACC4(d, 16), ACC4(d, 20), ACC4(d, 24), ACC4(d, 28)
#define ACC_LIST \
  "{%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%28,%29,%30,%31}"

template <int AMajor = 0, int BMajor = 0>
DEVICE void multiply_bf16(float (&d)[32], u64 a, u64 b, int more) {
  asm volatile("{ .reg .pred p; setp.ne.b32 p, %34, 0; wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 " ACC_LIST
               ", %32, %33, p, 1, 1, %35, %36; }"
               : ACC(d) : "l"(a), "l"(b), "r"(more), "n"(AMajor), "n"(BMajor));
}
template <int BMajor = 0>
DEVICE void multiply_bf16(float (&d)[32], const u32 (&a)[4], u64 b, int more) {
  asm volatile("{ .reg .pred p; setp.ne.b32 p, %37, 0; wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 " ACC_LIST
               ", {%32,%33,%34,%35}, %36, p, 1, 1, %38; }"
               : ACC(d) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(more), "n"(BMajor));
}
DEVICE void multiply_fp8(float (&d)[32], u64 a, u64 b, int more) {
  asm volatile("{ .reg .pred p; setp.ne.b32 p, %34, 0; wgmma.mma_async.sync.aligned.m64n64k32.f32.e4m3.e4m3 " ACC_LIST ", %32, %33, p, 1, 1; }"
               : ACC(d) : "l"(a), "l"(b), "r"(more));
}
DEVICE void multiply_tf32(float (&d)[32], const u32 (&a)[4], u64 b, int more) {
  asm volatile("{ .reg .pred p; setp.ne.b32 p, %37, 0; wgmma.mma_async.sync.aligned.m64n64k8.f32.tf32.tf32 " ACC_LIST
               ", {%32,%33,%34,%35}, %36, p, 1, 1; }"
               : ACC(d) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(more));
}
#define ACI4(d, i) "+r"(d[i]), "+r"(d[i + 1]), "+r"(d[i + 2]), "+r"(d[i + 3])
#define ACI(d) ACI4(d, 0), ACI4(d, 4), ACI4(d, 8), ACI4(d, 12), ACI4(d, 16), ACI4(d, 20), ACI4(d, 24), ACI4(d, 28)
DEVICE void multiply_bytes(int (&d)[32], u64 a, u64 b, int more, bool is_unsigned) {
  if (is_unsigned)
    asm volatile("{ .reg .pred p; setp.ne.b32 p, %34, 0; wgmma.mma_async.sync.aligned.m64n64k32.s32.u8.s8 " ACC_LIST ", %32, %33, p; }"
                 : ACI(d) : "l"(a), "l"(b), "r"(more));
  else
    asm volatile("{ .reg .pred p; setp.ne.b32 p, %34, 0; wgmma.mma_async.sync.aligned.m64n64k32.s32.s8.s8 " ACC_LIST ", %32, %33, p; }"
                 : ACI(d) : "l"(a), "l"(b), "r"(more));
}
// The row of accumulator i of a thread of the warpgroup, and its column.
DEVICE int row_of(int i) { return threadIdx.x % 128 / 32 * 16 + threadIdx.x % 32 / 4 + (i / 2 % 2) * 8; }
DEVICE int column_of(int i) { return i / 4 * 8 + threadIdx.x % 4 * 2 + i % 2; }
DEVICE u32 pack(float low, float high) {
  const __nv_bfloat162 v = __floats2bfloat162_rn(low, high);
  return *reinterpret_cast<const u32*>(&v);
}
// The place of byte x of row y in a tile with the 128-byte swizzle.
DEVICE u32 swizzled(u32 y, u32 x) { return y * 128 + ((x >> 4 ^ (y & 7)) << 4) + (x & 15); }

// What every pipeline here has: `full` counts the producer and its bytes, `empty` the consumers.
template <int Stages>
struct Ring {
  u32 full, empty;  // the first mbarrier of each kind
  int stage = 0;
  u32 phase = 0;
  DEVICE u32 filled() const { return full + 8 * stage; }
  DEVICE u32 emptied() const { return empty + 8 * stage; }
  DEVICE void next() {
    if (++stage == Stages) stage = 0, phase ^= 1;
  }
};
