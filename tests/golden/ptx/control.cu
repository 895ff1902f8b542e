extern "C" __global__ void trips(const int* count, int* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  int total = 0;
  for (int k = 0; k < count[i]; ++k) { if (k & 1) { total += k * 3; if (total % 7 == 0) continue; } else total ^= k; if (total > 5000) break; }
  out[i] = total;
}
extern "C" __global__ void cases(const int* x, int* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  int local[16];
  for (int k = 0; k < 16; ++k) local[k] = k * x[i];
  int v = 0;
  switch (x[i] & 7) { case 0: v = local[x[i] & 15]; break; case 1: v = 17; break; case 2: v = x[i] / 3; break; case 3: v = x[i] % 11; break;
    case 4: v = -x[i]; break; case 5: v = __popc(x[i]); break; case 6: v = __clz(x[i]); break; default: v = __brev(x[i]); }
  local[v & 15] += 5;
  int sum = 0;
  for (int k = 0; k < 16; ++k) sum += local[(k * 7 + v) & 15] * (k + 1);
  out[i] = sum + v;
}
extern "C" __global__ void wide(const long long* a, const long long* b, long long* out, int n) {
  long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  long long d = b[i] ? b[i] : 3;
  out[i * 6] = a[i] / d; out[i * 6 + 1] = a[i] % d; out[i * 6 + 2] = a[i] * d; out[i * 6 + 3] = (long long)((unsigned long long)a[i] >> (d & 63));
  out[i * 6 + 4] = __umul64hi(a[i], d); out[i * 6 + 5] = (long long)((unsigned)a[i] / ((unsigned)d | 1u)) + (a[i] < d);
}
extern "C" __global__ void scoped(int* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  int v = i;
  #pragma unroll
  for (int k = 0; k < 3; ++k)
    asm volatile("{\n .reg .pred p;\n .reg .b32 t;\n mov.b32 t, %0;\nLAB_WAIT:\n add.s32 t, t, -5;\n setp.gt.s32 p, t, 0;\n @p bra LAB_WAIT;\n @!p bra DONE;\n DONE:\n mov.b32 %0, t;\n add.s32 %0, %0, %1;\n}\n" : "+r"(v) : "r"(k + 20));
  out[i] = v;
}
