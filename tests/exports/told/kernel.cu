// SPDX-License-Identifier: Apache-2.0
struct alignas(64) Map {
  unsigned long long words[16];
};
extern "C" __device__ const unsigned cg_tile[15] = {1, 2, 16, 16, 0, 0, 0, 0, 1, 0, 0, 0, 64, 0, 0};

extern "C" __global__ void tell(double* out, int n, float factor, double other, const __grid_constant__ Map map,
                                const double* x) {
  if (threadIdx.x == 0) out[0] = n + factor + other + double(map.words[0]) + x[0];
}
