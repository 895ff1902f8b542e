// SPDX-License-Identifier: Apache-2.0
// Times fp32 products by tile and layout, the data for the matmul recipe's cost model
// (src/recipes/matmul/matmul_tiling.cpp).
//
// On a machine with a GPU and nvcc (a minute to compile; not part of the build):
//   nvcc -std=c++20 -O3 -arch=sm_90a --expt-relaxed-constexpr -I CUTLASS/include -I include bench/simt_tiles.cu -o simt_tiles
//   ./simt_tiles          4096 x 4096 x 4096, each layout of the factors (m, n: along it; k: along the depth)
// One line a tiling: registers, bytes of local memory, median of 10 launches, largest error at 64 places.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cutegen/gemm_simt.cuh>
#include <vector>

constexpr int kSize = 4096;

template <class Gemm, int TileM, int TileN, int TileK, int Threads, int Resident, bool DepthA, bool DepthB>
__global__ void __launch_bounds__(Threads, Resident)
product(float const* __restrict__ a, float const* __restrict__ b, float* __restrict__ c) {
  using namespace cute;
  extern __shared__ uint4 shared[];
  auto& storage = *reinterpret_cast<typename Gemm::Storage*>(shared);
  const auto tile = cutegen::tile_index(blockIdx.x, kSize / TileM, kSize / TileN);
  auto factor = [](float const* from, auto along_depth) {
    const auto shape = make_shape(int(kSize), int(kSize));
    if constexpr (along_depth) return make_tensor(make_gmem_ptr(from), make_layout(shape, make_stride(int64_t(kSize), _1{})));
    else return make_tensor(make_gmem_ptr(from), make_layout(shape, make_stride(_1{}, int64_t(kSize))));
  };
  Gemm gemm;
  gemm.run(factor(a, bool_constant<DepthA>{}), factor(b, bool_constant<DepthB>{}), tile, 0, kSize / TileK, storage);
  gemm.template each<4>(tile, [&](float const (&r)[4], int m, int n) {
    *reinterpret_cast<float4*>(c + int64_t(m) * kSize + n) = make_float4(r[0], r[1], r[2], r[3]);
  });
}

struct Data {
  std::vector<float> a, b;
  float *on_gpu_a, *on_gpu_b, *on_gpu_c;
};

template <int TileM, int TileN, int TileK, int Threads, int Stages, int Resident, bool DepthA, bool DepthB>
void measure(Data const& d) {
  using Gemm = cutegen::SimtGemm<float, float, TileM, TileN, TileK, Threads, Stages, 4, 4, DepthA, DepthB>;
  auto kernel = product<Gemm, TileM, TileN, TileK, Threads, Resident, DepthA, DepthB>;
  const int bytes = sizeof(typename Gemm::Storage), grid = (kSize / TileM) * (kSize / TileN);
  cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
  cudaFuncAttributes facts;
  cudaFuncGetAttributes(&facts, kernel);
  cudaEvent_t begin, end;
  cudaEventCreate(&begin);
  cudaEventCreate(&end);
  std::vector<float> times;
  for (int i = 0; i < 14; ++i) {
    cudaEventRecord(begin);
    kernel<<<grid, Threads, bytes>>>(d.on_gpu_a, d.on_gpu_b, d.on_gpu_c);
    cudaEventRecord(end);
    cudaEventSynchronize(end);
    float ms;
    cudaEventElapsedTime(&ms, begin, end);
    if (i >= 4) times.push_back(ms);
  }
  std::sort(times.begin(), times.end());
  double worst = 0;
  for (int64_t place = 0; place < 64; ++place) {
    const int64_t m = (place * 7919 + 13) % kSize, n = (place * 104729 + 5) % kSize;
    float got;
    cudaMemcpy(&got, d.on_gpu_c + m * kSize + n, 4, cudaMemcpyDeviceToHost);
    double sum = 0;
    for (int64_t k = 0; k < kSize; ++k)
      sum += double(d.a[DepthA ? m * kSize + k : k * kSize + m]) * d.b[DepthB ? n * kSize + k : k * kSize + n];
    worst = std::isfinite(got) ? std::max(worst, std::fabs(sum - got)) : INFINITY;
  }
  std::printf("%c%c %3d x %3d x %2d, %3d threads, %d stages: %3d registers, %2d local, %8.1f us, error %.2g %s\n",
              DepthA ? 'k' : 'm', DepthB ? 'k' : 'n', TileM, TileN, TileK, Threads, Stages, facts.numRegs,
              int(facts.localSizeBytes), times[times.size() / 2] * 1e3, worst, cudaGetErrorString(cudaGetLastError()));
  std::fflush(stdout);
}

template <bool DepthA, bool DepthB>
void tilings(Data const& d) {
  measure<128, 128, 16, 256, 1, 2, DepthA, DepthB>(d);
  measure<128, 128, 16, 256, 2, 2, DepthA, DepthB>(d);
  measure<128, 128, 16, 256, 3, 2, DepthA, DepthB>(d);
  measure<128, 128, 32, 256, 2, 2, DepthA, DepthB>(d);
  measure<128, 128, 8, 256, 4, 2, DepthA, DepthB>(d);
  measure<128, 128, 16, 128, 3, 2, DepthA, DepthB>(d);
  measure<256, 128, 16, 256, 3, 1, DepthA, DepthB>(d);
  measure<128, 64, 16, 128, 3, 3, DepthA, DepthB>(d);
  measure<64, 64, 16, 128, 3, 4, DepthA, DepthB>(d);
}

int main() {
  Data d;
  const size_t elements = size_t(kSize) * kSize, bytes = elements * sizeof(float);
  unsigned state = 1;
  for (auto* values : {&d.a, &d.b})
    for (size_t i = 0; i < elements; ++i) {
      state = state * 1664525u + 1013904223u;
      values->push_back(float(int(state >> 9) - (1 << 22)) / (1 << 22));
    }
  cudaMalloc(&d.on_gpu_a, bytes);
  cudaMalloc(&d.on_gpu_b, bytes);
  cudaMalloc(&d.on_gpu_c, bytes);
  cudaMemcpy(d.on_gpu_a, d.a.data(), bytes, cudaMemcpyHostToDevice);
  cudaMemcpy(d.on_gpu_b, d.b.data(), bytes, cudaMemcpyHostToDevice);
  tilings<false, false>(d);
  tilings<false, true>(d);
  tilings<true, false>(d);
  tilings<true, true>(d);
}
