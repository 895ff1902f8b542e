// SPDX-License-Identifier: Apache-2.0
// Loads the CUDA driver library at run time, as a table of functions. Building cutegen needs no
// part of CUDA.
//
// Contract: load_driver() opens $CUTEGEN_CUDA_DRIVER if set, else libcuda.so.1 on the loader's
// search path, else libcuda.so.1 in the usual folders of drivers. If the library lacks a function,
// the error says that the driver is too old. The library stays loaded. The types and numbers in
// this file equal the definitions in cuda.h, which NVIDIA keeps stable.
//
// Example: CG_TRY(const Driver* d, load_driver()); CG_CHECK(d->check(d->init(0), "starting CUDA"));
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"

namespace cutegen::device::cuda {

using Status = int;
using Address = uint64_t;  // in device memory
using Handle = void*;      // a CUDA context, module, function, stream, event or linker

// The CUresult codes that cutegen distinguishes.
enum : Status {
  kOk = 0,
  kInvalidValue = 1,
  kOutOfMemory = 2,
  kDeviceUnavailable = 46,
  kNoDevice = 100,
  kInvalidDevice = 101,
  kNoBinaryForGpu = 209,
  kInvalidPtx = 218,
  kUnsupportedPtx = 222,
  kNotReady = 600,
  kIllegalAddress = 700,
  kOutOfResources = 701,
  kLaunchTimeout = 702,
  kAssert = 710,
  kStackError = 714,
  kIllegalInstruction = 715,
  kMisaligned = 716,
  kInvalidAddressSpace = 717,
  kInvalidPc = 718,
  kLaunchFailed = 719,
  kCooperativeTooLarge = 720,
  kDriverMismatch = 803,
  kInvalidCluster = 912,
};

struct Location {
  int type = 1, id = 0;  // a device
};
inline constexpr int kDescriptor = 1;  // handle type for sharing: POSIX file descriptor
struct AllocationProperties {
  int type = 1;          // CU_MEM_ALLOCATION_TYPE_PINNED
  int handle_types = 0;  // kDescriptor: shareable
  Location location;
  void* reserved = nullptr;
  unsigned char flags[8] = {};
};
struct AccessDescription {
  Location location;
  int flags = 3;  // 3: read and write; 1: read
};
struct LaunchAttribute {
  int id = 0;
  char padding[4] = {};
  union {
    char bytes[64];
    int number;
    unsigned dims[3];
  } value = {};
};
struct LaunchSettings {
  unsigned grid[3], block[3];
  unsigned shared_bytes;
  Handle stream;
  LaunchAttribute* attributes;
  unsigned attribute_count;
};
struct alignas(64) TensorMap {
  uint64_t words[16];
};
struct Uuid {
  unsigned char bytes[16];
};
static_assert(sizeof(AllocationProperties) == 32 && sizeof(AccessDescription) == 12 &&
              sizeof(LaunchAttribute) == 72 && sizeof(LaunchSettings) == 56 &&
              sizeof(TensorMap) == 128);

struct Driver {
  Status (*init)(unsigned);
  Status (*version)(int*);
  Status (*device_count)(int*);
  Status (*device_get)(int*, int);
  Status (*device_name)(char*, int, int);
  Status (*device_attribute)(int*, int, int);
  Status (*device_memory)(size_t*, int);
  Status (*device_uuid)(Uuid*, int);
  Status (*context_retain)(Handle*, int);
  Status (*context_release)(int);
  Status (*context_set)(Handle);
  Status (*context_set_limit)(int, size_t);
  Status (*error_name)(Status, const char**);
  Status (*error_text)(Status, const char**);
  Status (*memory_info)(size_t*, size_t*);
  Status (*granularity)(size_t*, const AllocationProperties*, int);
  Status (*reserve)(Address*, size_t, size_t, Address, unsigned long long);
  Status (*unreserve)(Address, size_t);
  Status (*create)(uint64_t*, size_t, const AllocationProperties*, unsigned long long);
  Status (*release)(uint64_t);
  Status (*map)(Address, size_t, size_t, uint64_t, unsigned long long);
  Status (*unmap)(Address, size_t);
  Status (*set_access)(Address, size_t, const AccessDescription*, size_t);
  Status (*export_memory)(void*, uint64_t, int, unsigned long long);
  Status (*import_memory)(uint64_t*, void*, int);
  Status (*allocate)(Address*, size_t);
  Status (*free)(Address);
  Status (*host_allocate)(void**, size_t, unsigned);
  Status (*host_address)(Address*, void*, unsigned);
  Status (*host_free)(void*);
  Status (*to_device)(Address, const void*, size_t);
  Status (*to_host)(void*, Address, size_t);
  Status (*copy)(Address, Address, size_t, Handle);
  Status (*set8)(Address, unsigned char, size_t, Handle);
  Status (*set16)(Address, unsigned short, size_t, Handle);
  Status (*set32)(Address, unsigned, size_t, Handle);
  Status (*set_2d32)(Address, size_t, unsigned, size_t, size_t, Handle);
  Status (*stream_create)(Handle*, unsigned);
  Status (*stream_query)(Handle);
  Status (*stream_destroy)(Handle);
  Status (*capture_begin)(Handle, int);
  Status (*capture_end)(Handle, Handle*);
  Status (*graph_instantiate)(Handle*, Handle, unsigned long long);
  Status (*graph_launch)(Handle, Handle);
  Status (*graph_executable_destroy)(Handle);
  Status (*graph_destroy)(Handle);
  Status (*event_create)(Handle*, unsigned);
  Status (*event_record)(Handle, Handle);
  Status (*event_elapsed)(float*, Handle, Handle);
  Status (*event_destroy)(Handle);
  Status (*module_load)(Handle*, const void*);
  Status (*module_unload)(Handle);
  Status (*module_function)(Handle*, Handle, const char*);
  Status (*function_get)(int*, int, Handle);
  Status (*function_set)(Handle, int, int);
  Status (*link_create)(unsigned, int*, void**, Handle*);
  Status (*link_add)(Handle, int, const void*, size_t, const char*, unsigned, int*, void**);
  Status (*link_complete)(Handle, void**, size_t*);
  Status (*link_destroy)(Handle);
  Status (*launch)(const LaunchSettings*, Handle, void**, void**);
  Status (*encode_tiled)(TensorMap*, int, uint32_t, void*, const uint64_t*, const uint64_t*,
                         const uint32_t*, const uint32_t*, int, int, int, int);
  Status (*encode_im2col)(TensorMap*, int, uint32_t, void*, const uint64_t*, const uint64_t*,
                          const int*, const int*, uint32_t, uint32_t, const uint32_t*, int, int,
                          int, int);

  // The optional function cuCtxResetPersistingL2Cache; null if the driver lacks this function.
  Status (*reset_persisting_l2)() = nullptr;

  std::string library;  // path of the loaded driver library

  // Returns, for example, "out of memory (CUDA_ERROR_OUT_OF_MEMORY)".
  std::string text(Status status) const;
  // Converts a failed status to a world error whose message contains `what`, the failed action.
  Result<void> check(Status status, const std::string& what) const;
};

Result<const Driver*> load_driver();
// The result of open_library("libcuda.so.1"); `library` is null if no such library exists.
struct Opened {
  void* library = nullptr;
  std::string path;
};
Opened open_library(const std::string& name);

inline constexpr int kDynamicShared = 8;  // CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES

}  // namespace cutegen::device::cuda
