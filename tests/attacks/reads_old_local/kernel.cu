// SPDX-License-Identifier: Apache-2.0
// What an earlier launch has left in local memory.
extern "C" __global__ void f(const float* x, float* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  float old;
  asm volatile("{\n .local .align 4 .b8 stash[1024];\n .reg .b64 at;\n mov.u64 at, stash;\n"
               " add.s64 at, at, %1;\n ld.local.f32 %0, [at];\n}" : "=f"(old) : "l"((long long)(i & 255) * 4));
  out[i] = old;
}
