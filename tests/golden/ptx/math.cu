extern "C" __global__ void unary(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  float a = x[i]; float* o = y + (size_t)i * 20; float p = fabsf(a) + 0.125f;
  o[0] = 0.5f * a * (1.f + erff(a * 0.70710678f));
  o[1] = tanhf(a); o[2] = expf(a); o[3] = logf(p); o[4] = sqrtf(p); o[5] = rsqrtf(p);
  o[6] = 1.f / (1.f + __expf(-a)); o[7] = log1pf(p); o[8] = expm1f(a); o[9] = powf(p, 1.7f);
  o[10] = a / p; o[11] = __fdividef(a, p); o[12] = floorf(a); o[13] = rintf(a); o[14] = truncf(a);
  o[15] = sinf(a); o[16] = cosf(a); o[17] = log2f(p); o[18] = exp2f(a); o[19] = fmodf(a, 0.7f);
}
extern "C" __global__ void doubles(const double* x, double* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  double a = x[i]; double* o = y + i * 6; double p = fabs(a) + 0.5;
  o[0] = a * p + 1.0; o[1] = a / p; o[2] = sqrt(p); o[3] = exp(a); o[4] = log(p); o[5] = (double)(float)a + (double)(long long)a;
}
