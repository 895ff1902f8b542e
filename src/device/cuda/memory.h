// SPDX-License-Identifier: Apache-2.0
// Device memory in blocks with unmapped pages on both sides.
//
// Contract: a block's address range has a page of nothing before and behind it, so that an access
// outside faults. Blocks that come back are kept and given out again, up to a limit; their content
// is whatever it was. Lives as long as the context.
//
// Example: CG_TRY(Block b, memory.take(4096)); ... memory.give_back(b);
#pragma once

#include <map>

#include "device/cuda/driver.h"

namespace cutegen::cuda {

struct Block {
  Address reserved = 0, mapped = 0;
  size_t reserved_bytes = 0, mapped_bytes = 0;
  uint64_t physical = 0;
};

class BlockMemory {
 public:
  BlockMemory(const Driver& driver, int device) : driver_(driver), device_(device) {}
  ~BlockMemory();
  BlockMemory(const BlockMemory&) = delete;
  BlockMemory& operator=(const BlockMemory&) = delete;

  [[nodiscard]] Result<Block> take(size_t bytes);
  void give_back(const Block& block);

 private:
  [[nodiscard]] Result<size_t> page();
  [[nodiscard]] Status make(Block& block, size_t page);
  void drop(const Block& block);
  void drop_kept();

  const Driver& driver_;
  int device_;
  size_t page_ = 0, kept_bytes_ = 0;
  std::multimap<size_t, Block> kept_;  // by size
};

}  // namespace cutegen::cuda
