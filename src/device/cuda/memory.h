// SPDX-License-Identifier: Apache-2.0
// Device memory in blocks with unmapped pages on both sides, of our own or of another process.
//
// Contract: a block's address range has a page of nothing before and behind it, so that an access
// outside faults. Blocks that come back are kept and given out again, up to a limit; their content
// is whatever it was. Where blocks are shareable, share() gives a descriptor of one, which another
// process imports: its mapping is at an address of its own, and where it is read-only a kernel that
// writes there faults. What was imported is dropped, never given back. Lives as long as the
// context.
//
// Example: CG_TRY(Block b, memory.take(4096)); CG_TRY(UniqueFd fd, memory.share(b)); ...
//   CG_TRY(Block same, other.import(fd.get(), b.mapped_bytes, true)); ... other.drop(same);
#pragma once

#include <map>

#include "base/file.h"
#include "device/cuda/driver.h"

namespace cutegen::cuda {

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

  [[nodiscard]] Result<Block> take(size_t bytes);
  void give_back(const Block& block);
  [[nodiscard]] Result<UniqueFd> share(const Block& block) const;
  [[nodiscard]] Result<Block> import(int descriptor, size_t mapped_bytes, bool read_only);
  void drop(const Block& block);
  void drop_kept();
  [[nodiscard]] Result<size_t> page();  // blocks are multiples of it

 private:
  [[nodiscard]] Status make(Block& block, size_t page);
  [[nodiscard]] Status map(Block& block, size_t page, bool read_only);

  const Driver& driver_;
  int device_;
  Keeping keeping_;
  size_t page_ = 0, kept_bytes_ = 0;
  std::multimap<size_t, Block> kept_;  // by size
};

}  // namespace cutegen::cuda
