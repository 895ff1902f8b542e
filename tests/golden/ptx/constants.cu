namespace cutegen { struct tma_spec { unsigned version, rank, box[5]; int mode[5]; unsigned bits, swizzle_b, swizzle_m; }; }
extern "C" __device__ const int cg_smem = 4096;
extern "C" __device__ const long long cg_big = 1ll << 40;
extern "C" __device__ const cutegen::tma_spec cg_tma_a = {1, 2, {64, 128, 1, 1, 1}, {0, 1, 0, 0, 0}, 16, 3, 4};
__constant__ float table[8] = {1.f, 2.f, 3.f, 4.f, 5.5f, 6.f, 7.f, 8.f};
__device__ unsigned char bytes[5] = {1, 2, 3, 4, 5};
__device__ int counter = 3;
struct alignas(64) tensor_map { char bytes[128]; };
extern "C" __global__ void lookup(const __grid_constant__ tensor_map m, float* y, int k) {
  __shared__ __align__(16) double buf[4];
  if (threadIdx.x < 4) buf[threadIdx.x] = threadIdx.x * 2.0;
  __syncthreads();
  y[threadIdx.x] = table[(threadIdx.x + k) & 7] + bytes[threadIdx.x % 5] + (float)buf[threadIdx.x & 3] + m.bytes[threadIdx.x];
  if (threadIdx.x == 0) atomicAdd(&counter, 1);
}
extern "C" __global__ void faulty(float* y, int mode) {
  __shared__ float s[32];
  s[threadIdx.x & 31] = 1.f;
  if (mode == 0) y[1000000 + threadIdx.x] = 1.f;
  if (mode == 1) *(float2*)((char*)y + 4) = make_float2(1.f, 2.f);
  if (mode == 2) s[threadIdx.x + 5000] = 2.f;
  if (mode == 3) { if (threadIdx.x < 16) __syncthreads(); }
  if (mode == 4) while (*(volatile int*)y == 0) {}
  if (mode == 5) __trap();
  if (mode == 6) *(float*)nullptr = 1.f;
  if (mode == 7) { if (threadIdx.x < 32) asm volatile("bar.sync 1, 64;"); }
  if (mode == 8) y[threadIdx.x] = s[(threadIdx.x + 1) & 31];
}
