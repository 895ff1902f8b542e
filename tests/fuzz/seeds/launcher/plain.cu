// SPDX-License-Identifier: Apache-2.0
__global__ void scale(const float* x, float* out, int n, float by) {}
template <typename T> T up(T a, T b) { return (a + b - 1) / b; }
#define UP(a, b) (((a) + (b)-1) / (b))
static const int kT = 2 * 128;
void launch(float* out, const float* x, int n, int rows, double by, cudaStream_t stream) {
  auto k = &scale;
  dim3 g(rows), b;
  b.x = std::max<int>({n, rows, 3}); b.y *= 2;
  if (n > 64 && !(rows & 31)) { g.x = up(n, kT) << 3; } else g.x = n > 4 ? UP(n, 0x10) : sizeof(float4);
  if (rows == 0) return;
  auto half = [](int a) { return a / 2; };
  k<<<g, dim3{static_cast<unsigned>(half(n)), 4}, 16 * sizeof(float), stream>>>(x, out, n, by);
}
