// SPDX-License-Identifier: Apache-2.0
// The simulated global memory: buffers at deterministic addresses that are far apart.
//
// Contract: the addresses of buffers are multiples of 256 and depend only on the order and sizes of
// the buffers. Addresses between two buffers belong to no buffer. Several threads may call find()
// at once.
//
// Example: const Buffer* b = state.find(address);  // nullptr: a red zone
#pragma once

#include <map>
#include <string>
#include <vector>

#include "ptx/machine/machine.h"
#include "ptx/state/shadow.h"
#include "ptx/state/stored_bytes.h"

namespace cutegen::ptx {

struct Buffer {
  std::string name;
  uint64_t base = 0, size = 0;
  std::byte* data = nullptr;
  Access access = Access::read_write;
  Content content = Content::given;
  StoredBytes stored = {};  // watched in sampled launches, if the buffer is a read-write input
  bool holds(uint64_t address) const { return address - base < size; }
};

struct Memory::State {
  std::vector<Buffer> buffers;        // sorted by base address
  std::vector<BufferShadow> shadows;  // by buffer; empty before the first launch with checks
  uint32_t next_epoch = 1;            // see checks/global_races.h
  // Launches whose epochs (race-check ids) are smaller than `settled` end before the next launch
  // begins.
  uint32_t settled = 1;
  int shadow_shift = 2;  // log2 of the bytes that one shadow entry covers
  uint64_t next = 0;
  // The `.global` and `.const` variables of modules, by module and index. The first launch that
  // uses a variable allocates its memory.
  struct Variable {
    uint64_t base = 0;
    std::vector<std::byte> storage;
  };
  std::map<std::pair<uint64_t, int32_t>, Variable> variables;
  std::vector<std::byte> workspace;  // of cooperative launches
  uint64_t workspace_base = 0;

  uint64_t place(const std::string& name, std::span<std::byte> storage, Access access,
                 Content content = Content::given);
  const Buffer* find(uint64_t address) const;
  // Starts to count the stored bytes of each read-write input.
  void watch_stores();
  // Returns the buffer nearest to an invalid address, or nullptr if there are no buffers.
  const Buffer* nearest(uint64_t address) const;
};

}  // namespace cutegen::ptx
