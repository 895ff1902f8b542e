// SPDX-License-Identifier: Apache-2.0
// @NAME@: machine code and launches, with the few functions of NVIDIA's driver that they need.
#include "@FILE@.h"

#include <dlfcn.h>

#include <map>
#include <mutex>
#include <string>
#include <vector>

namespace {

using Status = int;
using Handle = void*;

struct Attribute {
  int id, padding;
  unsigned value[16];
};
struct Settings {
  unsigned grid[3], block[3], shared;
  Handle stream;
  Attribute* attributes;
  unsigned count;
};
struct alignas(64) TensorMap {
  uint64_t words[16];
};

// The launches as numbers. Buffers: first the tensors in order, then parts of the scratch.
enum Kind { kValue, kPointer, kMap };
struct Argument {
  Kind kind;
  unsigned at;  // an index into kValues, the buffers or kMaps
};
struct Map {
  unsigned buffer, rank;
  int type, swizzle;
  uint64_t sizes[5], pitches[5];
  unsigned box[5], steps[5];
  int im2col, lower[3], upper[3];  // im2col mode: channels and pixels of a box are box[0] and box[1]
};
struct Step {
  const char* kernel;  // null: a fill
  unsigned module, grid[3], block[3], cluster[3], shared, cooperative, overlaps, first, count;
  unsigned buffer, width, words[2];  // of a fill: a pattern of `width` bytes
  uint64_t bytes;
};
struct Gpu {
  int major, minor, multiprocessors;
};

@TABLES@
struct Driver {
  Status (*context)(Handle*);
  Status (*device)(int*);
  Status (*attribute)(int*, int, int);
  Status (*load)(Handle*, const void*);
  Status (*function)(Handle*, Handle, const char*);
  Status (*set)(Handle, int, int);
  Status (*launch)(const Settings*, Handle, void**, void**);
  Status (*encode)(TensorMap*, int, unsigned, void*, const uint64_t*, const uint64_t*,
                   const unsigned*, const unsigned*, int, int, int, int);
  Status (*encode_pixels)(TensorMap*, int, unsigned, void*, const uint64_t*, const uint64_t*,
                          const int*, const int*, unsigned, unsigned, const unsigned*, int, int, int,
                          int);
  Status (*fill8)(uint64_t, unsigned char, size_t, Handle);
  Status (*fill16)(uint64_t, unsigned short, size_t, Handle);
  Status (*fill32)(uint64_t, unsigned, size_t, Handle);
  Status (*fill_rows)(uint64_t, size_t, unsigned, size_t, size_t, Handle);
  bool complete;
};

Driver open_driver() {
  Driver d{};
  void* library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (!library) return d;
  auto find = [&](const char* name, auto& function) {
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(library, name));
    return function != nullptr;
  };
  d.complete = find("cuCtxGetCurrent", d.context) && find("cuCtxGetDevice", d.device) &&
               find("cuDeviceGetAttribute", d.attribute) && find("cuModuleLoadData", d.load) &&
               find("cuModuleGetFunction", d.function) && find("cuFuncSetAttribute", d.set) &&
               find("cuLaunchKernelEx", d.launch) && find("cuTensorMapEncodeTiled", d.encode) &&
               find("cuTensorMapEncodeIm2col", d.encode_pixels) &&
               find("cuMemsetD8Async", d.fill8) && find("cuMemsetD16Async", d.fill16) &&
               find("cuMemsetD32Async", d.fill32) && find("cuMemsetD2D32Async", d.fill_rows);
  return d;
}

const Driver& driver() {
  static const Driver only = open_driver();
  return only;
}

// The kernels in one context: a function for each step.
struct Loaded {
  std::string trouble;
  std::vector<Handle> functions;
};

std::string load(Loaded& out) {
  const Driver& d = driver();
  int device = 0, major = 0, minor = 0, sms = 0;
  d.device(&device);
  d.attribute(&major, 75, device), d.attribute(&minor, 76, device), d.attribute(&sms, 16, device);
  if (major != kGpu.major || minor != kGpu.minor || sms != kGpu.multiprocessors)
    return "this is another GPU than the kernels were made for";
  std::vector<Handle> modules;
  for (const unsigned char* image : kImages) {
    Handle module = nullptr;
    if (d.load(&module, image)) return "the driver does not load the kernels";
    modules.push_back(module);
  }
  for (const Step& s : kSteps) {
    Handle function = nullptr;
    if (s.kernel && d.function(&function, modules[s.module], s.kernel))
      return std::string("there is no kernel ") + s.kernel;
    constexpr int kSharedBytes = 8, kAnyCluster = 14;
    constexpr unsigned kPlainCluster = 8;
    Status status = 0;
    if (s.kernel && s.shared > 0) status = d.set(function, kSharedBytes, int(s.shared));
    if (s.kernel && s.cluster[0] * s.cluster[1] * s.cluster[2] > kPlainCluster && !status)
      status = d.set(function, kAnyCluster, 1);
    if (status) return std::string("the driver refuses the shared memory of ") + s.kernel;
    out.functions.push_back(function);
  }
  return {};
}

const Loaded& loaded(Handle context) {
  static std::mutex guard;
  static std::map<Handle, Loaded> known;
  std::lock_guard<std::mutex> lock(guard);
  auto [at, fresh] = known.try_emplace(context);
  if (fresh) at->second.trouble = load(at->second);
  return at->second;
}

Status encode(const Map& m, void* tensor, TensorMap& out) {
  constexpr int kPromoteTo128Bytes = 2;
  if (m.im2col)
    return driver().encode_pixels(&out, m.type, m.rank, tensor, m.sizes, m.pitches, m.lower, m.upper,
                                  m.box[0], m.box[1], m.steps, 0, m.swizzle, kPromoteTo128Bytes, 0);
  return driver().encode(&out, m.type, m.rank, tensor, m.sizes, m.pitches, m.box, m.steps, 0,
                         m.swizzle, kPromoteTo128Bytes, 0);
}

Status launch(const Step& s, Handle function, const uint64_t* buffers, Handle stream) {
  std::vector<TensorMap> maps(s.count);
  std::vector<void*> places(s.count + 1);
  for (unsigned i = 0; i < s.count; ++i) {
    const Argument& a = kArguments[s.first + i];
    if (a.kind == kValue) places[i] = const_cast<unsigned char*>(kValues + a.at);
    if (a.kind == kPointer) places[i] = const_cast<uint64_t*>(buffers + a.at);
    if (a.kind != kMap) continue;
    const Map& m = kMaps[a.at];
    if (Status bad = encode(m, reinterpret_cast<void*>(buffers[m.buffer]), maps[i])) return bad;
    places[i] = &maps[i];
  }
  constexpr int kCooperative = 2, kCluster = 4, kOverlap = 6;
  Attribute attributes[3] = {};
  Settings settings{{s.grid[0], s.grid[1], s.grid[2]}, {s.block[0], s.block[1], s.block[2]},
                    s.shared, stream, attributes, 0};
  if (s.cluster[0] * s.cluster[1] * s.cluster[2] > 1) {
    Attribute& a = attributes[settings.count++];
    a.id = kCluster;
    for (int i = 0; i < 3; ++i) a.value[i] = s.cluster[i];
  }
  if (s.cooperative) attributes[settings.count++] = {kCooperative, 0, {1}};
  if (s.overlaps) attributes[settings.count++] = {kOverlap, 0, {1}};
  return driver().launch(&settings, function, places.data(), nullptr);
}

Status fill(const Step& s, const uint64_t* buffers, Handle stream) {
  const uint64_t at = buffers[s.buffer];
  const size_t count = s.bytes / s.width;
  const Driver& d = driver();
  if (s.width == 1) return d.fill8(at, static_cast<unsigned char>(s.words[0]), count, stream);
  if (s.width == 2) return d.fill16(at, static_cast<unsigned short>(s.words[0]), count, stream);
  if (s.width == 4) return d.fill32(at, s.words[0], count, stream);
  Status bad = d.fill_rows(at, 8, s.words[0], 1, count, stream);
  return bad ? bad : d.fill_rows(at + 4, 8, s.words[1], 1, count, stream);
}

}  // namespace

size_t @FILE@_scratch_bytes(void) {
  return kScratchBytes;
}

const char* @FILE@_run(const @FILE@_tensors* tensors, void* scratch, void* stream) {
  if (!driver().complete) return "NVIDIA's driver (R525 or later) is not here";
  Handle context = nullptr;
  if (driver().context(&context) || !context) return "this thread has no current CUDA context";
  const Loaded& kernels = loaded(context);
  if (!kernels.trouble.empty()) return kernels.trouble.c_str();
  uint64_t buffers[kBuffers + 1] = {};
  const auto* given = reinterpret_cast<void* const*>(tensors);
  for (unsigned i = 0; i < kTensors; ++i) buffers[i] = reinterpret_cast<uint64_t>(given[i]);
  for (unsigned i = kTensors; i < kBuffers; ++i)
    buffers[i] = reinterpret_cast<uint64_t>(scratch) + kScratch[i - kTensors];
  for (size_t i = 0; i < kernels.functions.size(); ++i) {
    const Step& s = kSteps[i];
    Status bad = s.kernel ? launch(s, kernels.functions[i], buffers, stream)
                          : fill(s, buffers, stream);
    if (bad) return s.kernel ? "the driver refuses a launch" : "the driver refuses a fill";
  }
  return nullptr;
}
