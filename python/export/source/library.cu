// SPDX-License-Identifier: Apache-2.0
// @NAME@: replaces the source file of the kernel @KERNEL@. See README.md.
//
// The source kernel follows unchanged, under its own name. @FILE@_launch queues the faster program
// for the sizes that it supports, and the source kernel for all others.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <cmath>
#include <cstdint>
#include <type_traits>
@INCLUDES@
@MODULES@// The source kernel.
@ORIGINAL@

namespace cutegen_launch_@FILE@ {

template <class A, class B>
auto over(A a, B b) {
  return b == 0 ? decltype(a / b)(0) : a / b;
}
inline int64_t rest(int64_t a, int64_t b) { return b == 0 ? 0 : a % b; }
inline int64_t ceil_over(int64_t a, int64_t b) { return b <= 0 ? 0 : a / b + (a % b > 0); }
template <class A, class B>
auto least(A a, B b) {
  return a <= b ? std::common_type_t<A, B>(a) : std::common_type_t<A, B>(b);
}
template <class A, class B>
auto most(A a, B b) {
  return a <= b ? std::common_type_t<A, B>(b) : std::common_type_t<A, B>(a);
}

inline int64_t multiprocessors() {
  int device = 0, count = 0;
  cudaGetDevice(&device);
  cudaDeviceGetAttribute(&count, cudaDevAttrMultiProcessorCount, device);
  return count;
}

struct Launch {
  int64_t grid[3], block[3], cluster[3], shared;
  bool cooperative, overlaps;
};

inline dim3 dim3_of(const int64_t* n) {
  return dim3(unsigned(n[0]), unsigned(n[1]), unsigned(n[2]));
}

inline cudaError_t queue(const void* kernel, const Launch& l, const void** arguments,
                         cudaStream_t stream) {
  const int64_t blocks = l.cluster[0] * l.cluster[1] * l.cluster[2];
  for (int i = 0; i < 3; ++i)
    if (l.grid[i] <= 0 || l.block[i] <= 0) return cudaErrorInvalidConfiguration;
  if (l.shared > 0)  // also below 48 KiB, because static shared memory counts, too
    if (cudaError_t bad = cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                               int(l.shared)))
      return bad;
  if (blocks > 8)
    if (cudaError_t bad =
            cudaFuncSetAttribute(kernel, cudaFuncAttributeNonPortableClusterSizeAllowed, 1))
      return bad;
  cudaLaunchAttribute attributes[3] = {};
  cudaLaunchConfig_t config = {};
  config.gridDim = dim3_of(l.grid), config.blockDim = dim3_of(l.block);
  config.dynamicSmemBytes = size_t(l.shared), config.stream = stream, config.attrs = attributes;
  if (blocks > 1) {
    attributes[config.numAttrs].id = cudaLaunchAttributeClusterDimension;
    attributes[config.numAttrs].val.clusterDim.x = unsigned(l.cluster[0]);
    attributes[config.numAttrs].val.clusterDim.y = unsigned(l.cluster[1]);
    attributes[config.numAttrs++].val.clusterDim.z = unsigned(l.cluster[2]);
  }
  if (l.cooperative) {
    attributes[config.numAttrs].id = cudaLaunchAttributeCooperative;
    attributes[config.numAttrs++].val.cooperative = 1;
  }
  if (l.overlaps) {
    attributes[config.numAttrs].id = cudaLaunchAttributeProgrammaticStreamSerialization;
    attributes[config.numAttrs++].val.programmaticStreamSerializationAllowed = 1;
  }
  return cudaLaunchKernelExC(&config, kernel, const_cast<void**>(arguments));
}

// Memory of one call, from the stream's pool.
struct Scratch {
  explicit Scratch(cudaStream_t s) : stream(s) {}
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  ~Scratch() {
    if (base) cudaFreeAsync(base, stream);
  }
  cudaStream_t stream;
  char* base = nullptr;
};

inline int64_t aligned(int64_t bytes) { return (bytes + 255) / 256 * 256; }

template <class T>
__global__ void fill_kernel(T* to, T value, int64_t count) {
  for (int64_t i = blockIdx.x * int64_t(blockDim.x) + threadIdx.x; i < count;
       i += int64_t(gridDim.x) * blockDim.x)
    to[i] = value;
}

template <class T>
cudaError_t fill(void* to, T value, int64_t count, cudaStream_t stream) {
  if (count <= 0) return cudaSuccess;
  T* at = static_cast<T*>(to);
  const void* arguments[] = {&at, &value, &count};
  const Launch l{{least(ceil_over(count, 256), INT64_C(4096)), 1, 1}, {256, 1, 1}, {1, 1, 1}, 0, false, false};
  return queue(reinterpret_cast<const void*>(&fill_kernel<T>), l, arguments, stream);
}

// What the caller passes: tensors, sizes and scalars.
struct Given {
@GIVEN@};

@PROGRAM@
@SOURCE@
}  // namespace cutegen_launch_@FILE@

extern "C" int @FILE@_launch(@PARAMETERS@cudaStream_t launch_stream) {
  namespace own = cutegen_launch_@FILE@;
  const own::Given launch_given{@VALUES@};
  bool launch_taken = false;
  cudaError_t launch_end = own::program(launch_given, launch_stream, launch_taken);
  if (!launch_taken) launch_end = own::source_kernel(launch_given, launch_stream, launch_taken);
  return int(launch_taken ? launch_end : cudaErrorInvalidValue);
}
