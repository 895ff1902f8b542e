// SPDX-License-Identifier: Apache-2.0
// A GPU driver without a GPU, for tests: device memory is the machine's own, launches do what their
// kernel's name says ("sevens" writes 7 to its first buffer, "outside" beyond it, "ones" writes 1
// in float8_e4m3fn, "once" adds 1000 in place, "fault", "hang"). It reports no SM clock, or 1 GHz
// (slow_clock.so).
//
// The name under which the library is opened says what fails: no_device.so, old.so, memory.so, ...
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace {

constexpr int kInvalidValue = 1, kOutOfMemory = 2, kBusy = 46, kNoDevice = 100, kInvalidPtx = 218,
              kUnsupportedPtx = 222, kNotReady = 600, kIllegalAddress = 700;
constexpr size_t kPage = 65536;
constexpr size_t kCooling = size_t{64} << 20;  // a write of this size counts as cooling the L2
constexpr int kBusyCoolings = 60;              // in the mode busy_memory
int sticky = 0;                                // the context's error after a failed kernel
int coolings = 0;
bool cooling = false;  // since the last event

std::map<std::string, int> counts, dynamic_shared;
using Graph = std::vector<std::function<void()>>;

std::string mode() {
  Dl_info info{};
  static const int here = 0;
  dladdr(&here, &info);
  std::string name = info.dli_fname ? info.dli_fname : "";
  name = name.substr(name.rfind('/') + 1);
  return name.substr(0, name.find('.'));
}
bool is(const char* what) {
  return mode() == what;
}

}  // namespace

#define EXPORT extern "C" __attribute__((visibility("default"))) int

EXPORT cuInit(unsigned) {
  return is("no_device") ? kNoDevice : 0;
}
EXPORT cuDriverGetVersion(int* version) {
  *version = is("old") ? 11040 : is("cuda12") ? 12020 : 13000;
  return 0;
}
EXPORT cuDeviceGetCount(int* count) {
  *count = 1;
  return 0;
}
EXPORT cuDeviceGet(int* device, int index) {
  *device = index;
  return 0;
}
EXPORT cuDeviceGetName(char* name, int size, int) {
  std::snprintf(name, size_t(size), "%s", is("unknown") ? "NVIDIA X1" : "NVIDIA H200");
  return 0;
}
EXPORT cuDeviceGetAttribute(int* value, int attribute, int) {
  switch (attribute) {
    case 1:
      *value = 1024;
      break;
    case 5:
      *value = 2147483647;
      break;
    case 6:
      *value = 65535;
      break;
    case 16:
      *value = 132;
      break;
    case 38:
      *value = 1 << 20;
      break;
    case 39:
      *value = 2048;
      break;
    case 75:
      *value = 9;
      break;
    case 76:
      *value = 0;
      break;
    case 81:
      *value = 233472;
      break;
    case 97:
      *value = 232448;
      break;
    case 102:
      *value = !is("no_pages");
      break;
    case 106:
      *value = 32;
      break;
    default:
      return kInvalidValue;
  }
  return 0;
}
EXPORT cuDeviceTotalMem_v2(size_t* bytes, int) {
  *bytes = (is("small") ? size_t{3} : size_t{141}) << 30;
  return 0;
}
EXPORT cuDeviceGetUuid_v2(unsigned char* uuid, int) {
  for (unsigned char i = 0; i < 16; ++i) uuid[i] = i;
  return 0;
}
EXPORT cuDevicePrimaryCtxRetain(void** context, int) {
  static int only = 0;
  *context = &only;
  return is("memory") ? kOutOfMemory : is("busy") ? kBusy : 0;
}
EXPORT cuDevicePrimaryCtxRelease_v2(int) {
  return 0;
}
EXPORT cuCtxSetCurrent(void*) {
  return 0;
}
EXPORT cuCtxGetCurrent(void** context) {
  *context = &sticky;
  return 0;
}
EXPORT cuCtxGetDevice(int* device) {
  *device = 0;
  return 0;
}
EXPORT cuThreadExchangeStreamCaptureMode(int*) {
  return 0;
}
EXPORT cuStreamSynchronize(void*) {
  return sticky;
}
EXPORT cuCtxSetLimit(int, size_t) {
  return 0;
}
EXPORT cuCtxResetPersistingL2Cache() {
  ++counts["reset"];
  return is("no_reset") ? kInvalidValue : 0;
}
// How often a kernel of this name was launched; for "reset": how often persisting L2 lines were
// reset.
EXPORT fake_count(const char* what) {
  return counts[what];
}
EXPORT cuGetErrorName(int status, const char** name) {
  *name = status == kOutOfMemory      ? "CUDA_ERROR_OUT_OF_MEMORY"
          : status == kIllegalAddress ? "CUDA_ERROR_ILLEGAL_ADDRESS"
                                      : "CUDA_ERROR_OTHER";
  return 0;
}
EXPORT cuGetErrorString(int status, const char** text) {
  *text = status == kOutOfMemory ? "out of memory" : "an error";
  return 0;
}
EXPORT cuMemGetInfo_v2(size_t* free, size_t* total) {
  *free = *total = size_t{141} << 30;
  if (is("taken")) *free = size_t{16} << 30;  // other processes hold the rest
  return 0;
}
EXPORT cuMemGetAllocationGranularity(size_t* bytes, const void*, int) {
  *bytes = kPage;
  return 0;
}
EXPORT cuMemAddressReserve(uint64_t* at, size_t bytes, size_t, uint64_t, unsigned long long) {
  void* p = mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  *at = reinterpret_cast<uint64_t>(p);
  return p == MAP_FAILED ? kOutOfMemory : 0;
}
EXPORT cuMemAddressFree(uint64_t at, size_t bytes) {
  return munmap(reinterpret_cast<void*>(at), bytes) ? kInvalidValue : 0;
}
// Handles and shared descriptors are descriptors of a memory file, so both processes map the same
// pages.
EXPORT cuMemCreate(uint64_t* handle, size_t bytes, const void*, unsigned long long) {
  int fd = memfd_create("gpu", MFD_CLOEXEC);
  if (fd < 0 || ftruncate(fd, off_t(bytes)) != 0) return kOutOfMemory;
  *handle = uint64_t(fd);
  return 0;
}
EXPORT cuMemRelease(uint64_t handle) {
  return close(int(handle)) ? kInvalidValue : 0;
}
EXPORT cuMemExportToShareableHandle(int* out, uint64_t handle, int kind, unsigned long long) {
  *out = kind == 1 ? fcntl(int(handle), F_DUPFD_CLOEXEC, 3) : -1;
  return *out < 0 ? kInvalidValue : 0;
}
EXPORT cuMemImportFromShareableHandle(uint64_t* handle, void* descriptor, int kind) {
  int fd = int(reinterpret_cast<intptr_t>(descriptor));
  fd = kind == 1 ? fcntl(fd, F_DUPFD_CLOEXEC, 3) : -1;
  *handle = uint64_t(fd);
  return fd < 0 ? kInvalidValue : 0;
}
EXPORT cuMemMap(uint64_t at, size_t bytes, size_t, uint64_t handle, unsigned long long) {
  struct stat info{};
  const int fd = int(handle);
  if (fstat(fd, &info) != 0 || size_t(info.st_size) < bytes) return kInvalidValue;
  void* p = mmap(reinterpret_cast<void*>(at), bytes, PROT_NONE, MAP_SHARED | MAP_FIXED, fd, 0);
  return p == MAP_FAILED ? kOutOfMemory : 0;
}
EXPORT cuMemUnmap(uint64_t at, size_t bytes) {
  void* p = mmap(reinterpret_cast<void*>(at), bytes, PROT_NONE,
                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
  return p == MAP_FAILED ? kInvalidValue : 0;
}
EXPORT cuMemSetAccess(uint64_t at, size_t bytes, const int* access, size_t) {
  const int rights = access[2] == 3 ? PROT_READ | PROT_WRITE : PROT_READ;
  return mprotect(reinterpret_cast<void*>(at), bytes, rights) ? kInvalidValue : 0;
}
EXPORT cuMemAlloc_v2(uint64_t* at, size_t bytes) {
  *at = reinterpret_cast<uint64_t>(std::malloc(bytes));
  return *at ? 0 : kOutOfMemory;
}
EXPORT cuMemFree_v2(uint64_t at) {
  std::free(reinterpret_cast<void*>(at));
  return 0;
}
EXPORT cuMemHostAlloc(void** at, size_t bytes, unsigned) {
  *at = std::malloc(bytes);
  return 0;
}
EXPORT cuMemHostGetDevicePointer_v2(uint64_t* at, void* host, unsigned) {
  *at = reinterpret_cast<uint64_t>(host);
  return 0;
}
EXPORT cuMemFreeHost(void* at) {
  std::free(at);
  return 0;
}
EXPORT cuMemcpyHtoD_v2(uint64_t to, const void* from, size_t bytes) {
  std::memcpy(reinterpret_cast<void*>(to), from, bytes);
  return sticky;
}
EXPORT cuMemcpyDtoH_v2(void* to, uint64_t from, size_t bytes) {
  std::memcpy(to, reinterpret_cast<void*>(from), bytes);
  return sticky;
}
EXPORT cuMemcpyDtoDAsync_v2(uint64_t to, uint64_t from, size_t bytes, void*) {
  if (bytes < kCooling)
    std::memcpy(reinterpret_cast<void*>(to), reinterpret_cast<void*>(from), bytes);
  return sticky;
}
EXPORT cuMemsetD8Async(uint64_t at, unsigned char value, size_t count, void*) {
  if (count < kCooling) std::memset(reinterpret_cast<void*>(at), value, count);
  if (count >= kCooling) ++coolings, cooling = true;
  return sticky;
}
EXPORT cuMemsetD16Async(uint64_t at, unsigned short value, size_t count, void*) {
  for (size_t i = 0; i < count; ++i) reinterpret_cast<unsigned short*>(at)[i] = value;
  return sticky;
}
EXPORT cuMemsetD32Async(uint64_t at, unsigned value, size_t count, void*) {
  for (size_t i = 0; i < count; ++i) reinterpret_cast<unsigned*>(at)[i] = value;
  return sticky;
}
EXPORT cuMemsetD2D32Async(uint64_t at, size_t pitch, unsigned value, size_t width, size_t height,
                          void*) {
  for (size_t y = 0; y < height; ++y)
    for (size_t x = 0; x < width; ++x) reinterpret_cast<unsigned*>(at + y * pitch)[x] = value;
  return sticky;
}
EXPORT cuStreamCreate(void** stream, unsigned) {
  *stream = &sticky;
  return 0;
}
EXPORT cuStreamQuery(void*) {
  return sticky;
}
EXPORT cuStreamDestroy_v2(void*) {
  return 0;
}
// During a capture, launches add their work to this graph.
static Graph* capturing = nullptr;
EXPORT cuStreamBeginCapture_v2(void*, int) {
  capturing = new Graph;
  return sticky;
}
EXPORT cuStreamEndCapture(void*, void** graph) {
  *graph = is("no_graphs") ? nullptr : capturing;
  capturing = nullptr;
  return is("no_graphs") ? kInvalidValue : 0;
}
EXPORT cuGraphInstantiateWithFlags(void** executable, void* graph, unsigned long long) {
  *executable = graph;
  return 0;
}
EXPORT cuGraphLaunch(void* executable, void*) {
  for (const auto& work : *static_cast<Graph*>(executable)) work();
  return sticky;
}
EXPORT cuGraphExecDestroy(void*) {
  return 0;
}
EXPORT cuGraphDestroy(void*) {
  return 0;
}
// An event holds the number of the cooling that it ends, or 0.
EXPORT cuEventCreate(void** event, unsigned) {
  *event = new int(0);
  return 0;
}
EXPORT cuEventRecord(void* event, void*) {
  *static_cast<int*>(event) = std::exchange(cooling, false) ? coolings : 0;
  return 0;
}
EXPORT cuEventElapsedTime(float* ms, void*, void* end) {
  const int which = *static_cast<int*>(end);
  const bool busy =
      is("always_busy_memory") ? which % 7 != 1 : is("busy_memory") && which <= kBusyCoolings;
  *ms = which > 0 && busy ? 0.6F : 0.5F;
  return 0;
}
EXPORT cuEventDestroy_v2(void* event) {
  delete static_cast<int*>(event);
  return 0;
}
// A module is its text; a function is the name of its kernel.
EXPORT cuModuleLoadData(void** module, const void* image) {
  if (is("no_cubin") && std::memcmp(image, "\x7f", 1) == 0) return kInvalidPtx;
  if (is("no_scrub") && std::strstr(static_cast<const char*>(image), "scrub_")) return kInvalidPtx;
  *module = const_cast<void*>(image);
  return 0;
}
EXPORT cuModuleUnload(void*) {
  return 0;
}
EXPORT cuModuleGetFunction(void** function, void*, const char* name) {
  *function = strdup(name);
  return 0;
}
// A kernel "local_N" has N bytes of local memory per thread.
EXPORT cuFuncGetAttribute(int* value, int attribute, void* function) {
  constexpr int kLocal = 3;
  int bytes = 16;
  if (attribute == kLocal) std::sscanf(static_cast<const char*>(function), "local_%d", &bytes);
  *value = bytes;
  return 0;
}
constexpr int kDynamicShared = 8;
EXPORT cuFuncSetAttribute(void* function, int attribute, int value) {
  if (value > 232448) return kInvalidValue;
  if (attribute == kDynamicShared) dynamic_shared[static_cast<const char*>(function)] = value;
  return 0;
}
namespace {
struct Link {
  std::string text;
  char* log;
};
}  // namespace
EXPORT cuLinkCreate_v2(unsigned, int*, void** values, void** link) {
  *link = new Link{.text = {}, .log = static_cast<char*>(values[0])};
  return 0;
}
EXPORT cuLinkAddData_v2(void* link, int, const void* data, size_t bytes, const char*, unsigned,
                        int*, void**) {
  auto* l = static_cast<Link*>(link);
  l->text.assign(static_cast<const char*>(data), bytes);
  if (is("old_ptx")) return kUnsupportedPtx;
  if (l->text.find("no.such.opcode") == std::string::npos) return 0;
  std::strcpy(l->log,
              "ptxas application ptx input, line 9; error   : Not a name of any known "
              "instruction: 'no'");
  return kInvalidPtx;
}
EXPORT cuLinkComplete(void* link, void** image, size_t* bytes) {
  auto* l = static_cast<Link*>(link);
  *image = l->text.data();
  *bytes = l->text.size();
  return 0;
}
EXPORT cuLinkDestroy(void* link) {
  delete static_cast<Link*>(link);
  return 0;
}
// Writes a launch to its first buffer: grid, block, shared bytes, each attribute with its first
// value, then an int, a float, a double, and whether a tensor map has the buffer's address.
static void tell(const unsigned* settings, void** arguments) {
  double* out = *static_cast<double**>(arguments[0]);
  for (int i = 0; i < 7; ++i) *out++ = settings[i];
  unsigned count = 0;
  std::memcpy(&count, reinterpret_cast<const char*>(settings) + 48, 4);
  const unsigned* attribute = nullptr;
  std::memcpy(&attribute, reinterpret_cast<const char*>(settings) + 40, 8);
  for (unsigned i = 0; i < count; ++i, attribute += 18)
    *out++ = attribute[0], *out++ = attribute[2];
  *out++ = *static_cast<int*>(arguments[1]);
  *out++ = *static_cast<float*>(arguments[2]);
  *out++ = *static_cast<double*>(arguments[3]);
  *out = *static_cast<uint64_t*>(arguments[4]) == *static_cast<uint64_t*>(arguments[0]) ? 1 : 0;
}
// Adds 1000 to a mutated tensor. A second addition to the same values is a fault.
static void add_once(float* values, size_t count) {
  if (values[0] >= 1000) sticky = kIllegalAddress;
  for (size_t i = 0; i < count; ++i) values[i] += 1000;
}
// Changes the first buffer as a kernel of this name does.
static void work(const std::string& kernel, void* first, size_t threads) {
  if (kernel == "ones") std::memset(first, 0x38, threads);
  if (kernel == "once") add_once(static_cast<float*>(first), threads);
  if (kernel != "sevens" && kernel != "outside") return;
  int* out = static_cast<int*>(first);
  for (size_t i = 0; i < threads; ++i) out[i] = 7;
  if (kernel == "outside") out[-1] = 7;
}
EXPORT cuLaunchKernelEx(const unsigned* settings, void* function, void** arguments, void**) {
  const std::string kernel = static_cast<const char*>(function);
  if (settings[3] * settings[4] * settings[5] > 1024) return kInvalidValue;
  constexpr int kStaticShared = 16, kPlainShared = 48 << 10;
  const auto set = dynamic_shared.find(kernel);
  const int most = set == dynamic_shared.end() ? kPlainShared - kStaticShared : set->second;
  if (int(settings[6]) > most) return kInvalidValue;
  if (kernel.starts_with("scrub_local") && is("no_local")) return kOutOfMemory;
  ++counts[kernel];
  if (kernel == "fault") sticky = kIllegalAddress;
  if (kernel == "hang") sticky = kNotReady;
  if (kernel == "tell") tell(settings, arguments);
  if (kernel == "tick" && is("slow_clock")) {
    auto* told = *static_cast<uint64_t**>(arguments[0]);
    told[0] = told[1] = 15000;
  }
  if (kernel != "ones" && kernel != "once" && kernel != "sevens" && kernel != "outside") return 0;
  void* first = *static_cast<void**>(arguments[0]);
  const size_t threads = size_t{settings[0]} * settings[3];
  if (capturing)
    capturing->push_back([=] { work(kernel, first, threads); });
  else
    work(kernel, first, threads);
  return 0;
}
// Keeps the corners for the test that reads them.
EXPORT cuTensorMapEncodeIm2col(void* map, int, uint32_t rank, void* address, const uint64_t*,
                               const uint64_t*, const int* lower, const int* upper,
                               uint32_t channels, uint32_t pixels, const uint32_t* steps, int, int,
                               int, int) {
  if (rank < 3 || channels > 256 || pixels > 1024) return kInvalidValue;
  const uint64_t words[] = {reinterpret_cast<uint64_t>(address),
                            uint64_t(int64_t{lower[0]}),
                            uint64_t(int64_t{upper[0]}),
                            channels,
                            pixels,
                            steps[1]};
  std::memcpy(map, words, sizeof words);
  return 0;
}
EXPORT cuTensorMapEncodeTiled(void* map, int, uint32_t rank, void* address, const uint64_t*,
                              const uint64_t*, const uint32_t* box, const uint32_t*, int, int, int,
                              int) {
  for (uint32_t i = 0; i < rank; ++i)
    if (box[i] > 256) return kInvalidValue;
  if (reinterpret_cast<uint64_t>(map) % 64 != 0) return kInvalidValue;
  std::memcpy(map, &address, sizeof address);
  return reinterpret_cast<uint64_t>(address) % 16 ? kInvalidValue : 0;
}
