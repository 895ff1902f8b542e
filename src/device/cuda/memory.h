// SPDX-License-Identifier: Apache-2.0
// Allocates blocks of device memory between unmapped pages, or imports blocks from another process.
//
// Contract: an unmapped page lies before and after each block, so that an access outside the block
// faults. The function give_back() keeps released blocks, up to a limit, and take() reuses kept
// blocks without clearing their bytes. If Keeping::shareable is set, share() exports a block as a
// file descriptor. Another process can import the block with this descriptor, at a different
// address. A kernel faults if it writes to a block that was imported read-only. Callers release
// imported blocks by drop(), not by give_back(). The CUDA context must outlive the BlockMemory.
//
// Example: CG_TRY(Block b, memory.take(4096)); CG_TRY(UniqueFd fd, memory.share(b)); ...
//   CG_TRY(Block same, other.import(fd.get(), b.mapped_bytes, true)); ... other.drop(same);
#pragma once

#include <map>

#include "base/file.h"
#include "device/cuda/driver.h"

namespace cutegen::device::cuda {

struct Block {
  Address reserved = 0, mapped = 0;
  size_t reserved_bytes = 0, mapped_bytes = 0;
  uint64_t physical = 0;
};

struct Keeping {
  size_t most_bytes = size_t{1} << 30, most_block = size_t{128} << 20;
  bool shareable = false;
};

class BlockMemory {
 public:
  BlockMemory(const Driver& driver, int device, Keeping keeping = {})
      : driver_(driver), device_(device), keeping_(keeping) {}
  ~BlockMemory();
  BlockMemory(const BlockMemory&) = delete;
  BlockMemory& operator=(const BlockMemory&) = delete;

  Result<Block> take(size_t bytes);
  void give_back(const Block& block);
  Result<UniqueFd> share(const Block& block) const;
  Result<Block> import(int descriptor, size_t mapped_bytes, bool read_only);
  void drop(const Block& block);
  void drop_kept();
  Result<size_t> page();  // page size in bytes; blocks consist of whole pages

 private:
  Status make(Block& block, size_t page);
  Status map(Block& block, size_t page, bool read_only);

  const Driver& driver_;
  int device_;
  Keeping keeping_;
  size_t page_ = 0, kept_bytes_ = 0;
  std::multimap<size_t, Block> kept_;  // by size
};

}  // namespace cutegen::device::cuda
