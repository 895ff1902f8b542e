// SPDX-License-Identifier: Apache-2.0
// libFuzzer target: any bytes as PTX: parsing and running them ends, and accesses only the given
// buffers.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <vector>

#include "ptx/machine/machine.h"
#include "ptx/ops/tensor_map.h"

namespace {

using namespace cutegen;

constexpr int64_t kMostParamBytes = 4096;

// A tensor map of the buffer's 4096 bytes; `kind` selects rank and mode.
std::vector<std::byte> tensor_map(uint64_t address, size_t kind) {
  ptx::TensorMap m;
  m.type = kind % 3 == 2 ? ptx::TensorType::f32 : ptx::TensorType::u32, m.address = address;
  m.rank = uint32_t(1 + kind % 5), m.im2col = m.rank >= 3, m.swizzle = uint8_t(kind / 5 % 4);
  uint64_t stride = 4;
  for (size_t i = 0; i < m.rank; ++i) {
    m.sizes[i] = i == 0 ? 8 : 4, m.box[i] = i == 0 ? 4 : 3, m.strides[i] = i == 0 ? 0 : stride;
    stride *= m.sizes[i];
  }
  m.lower.fill(m.im2col ? -1 : 0), m.upper.fill(m.im2col ? -1 : 0);
  const auto bytes = ptx::encode(m);
  return {bytes.begin(), bytes.end()};
}

// The address of the buffer in every 8-byte parameter, tensor maps in parameters of their size, a
// small number in the others.
std::vector<std::vector<std::byte>> arguments(const ptx::Entry& entry, uint64_t address) {
  std::vector<std::vector<std::byte>> out;
  for (const ptx::Param& param : entry.params) {
    if (param.size == ptx::kTensorMapBytes) {
      out.push_back(tensor_map(address, out.size() + entry.name.size()));
      continue;
    }
    std::vector<std::byte> bytes(param.size);
    uint64_t value = param.size == 8 ? address : 17;
    if (!bytes.empty()) std::memcpy(bytes.data(), &value, std::min(sizeof value, bytes.size()));
    out.push_back(std::move(bytes));
  }
  return out;
}

bool small(const ptx::Entry& entry) {
  int64_t bytes = 0;
  for (const ptx::Param& param : entry.params) {
    if (param.size > kMostParamBytes) return false;
    bytes += int64_t(param.size);
  }
  return bytes <= kMostParamBytes && entry.static_shared_bytes <= 48 << 10;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  auto module = ptx::Module::parse({reinterpret_cast<const char*>(data), size});
  if (!module) return 0;
  (void)module->integer_constants();
  for (const std::string& name : module->constant_names()) (void)module->constant_bytes(name);
  for (const ptx::Entry& entry : module->entries()) {
    if (!small(entry)) continue;
    std::vector<std::byte> storage(4096);
    ptx::Memory memory;
    uint64_t address = memory.add("buffer", storage, ptx::Access::read_write);
    (void)ptx::launch(Context(), memory, *module, entry.name, {{2, 1, 1}, {48, 1, 1}},
                      arguments(entry, address), {.threads = 1, .instruction_budget = 4000});
  }
  return 0;
}
