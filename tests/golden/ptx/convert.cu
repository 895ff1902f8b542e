#include <cuda_bf16.h>
#include <cuda_fp16.h>
extern "C" __global__ void halves(const float* x, __half* h, __nv_bfloat16* b, float* back, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  __half a = __float2half_rn(x[i]); __nv_bfloat16 c = __float2bfloat16_rn(x[i]);
  h[i] = a; b[i] = c; back[2 * i] = __half2float(a); back[2 * i + 1] = __bfloat162float(c);
}
extern "C" __global__ void half_math(const __half2* x, const __half2* y, __half2* out, const __nv_bfloat162* p, const __nv_bfloat162* q, __nv_bfloat162* r, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  out[3 * i] = __hadd2(x[i], y[i]); out[3 * i + 1] = __hmul2(x[i], y[i]); out[3 * i + 2] = __hfma2(x[i], y[i], x[i]);
  r[3 * i] = __hadd2(p[i], q[i]); r[3 * i + 1] = __hmax2(p[i], q[i]); r[3 * i + 2] = __hfma2(p[i], q[i], p[i]);
}
extern "C" __global__ void integers(const float* x, int* o, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  float a = x[i]; int* q = o + i * 8;
  q[0] = (int)a; q[1] = (int)(unsigned)fabsf(a); q[2] = __float2int_rn(a); q[3] = __float2int_ru(a); q[4] = __float2int_rd(a);
  q[5] = (signed char)(int)a; q[6] = (unsigned char)(int)a; q[7] = (short)(int)(a * 1000.f);
}
