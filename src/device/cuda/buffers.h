// SPDX-License-Identifier: Apache-2.0
// Allocates the buffers of a run on the GPU and detects writes just outside them.
//
// Contract: unmapped pages surround each block of memory. The calls of bind() place the buffers
// alternately at the start and at the end of their blocks, so that in one of two successive runs,
// an access before or behind a buffer reaches an unmapped page. The rest of each block is a guard,
// in which every byte has the same random value.
//
// If the caller gives a pattern for a buffer, bind() fills the buffer with repetitions of the
// pattern, and the caller's memory has no copy of the buffer. Such a buffer may have several copies
// on the GPU, from which find() returns the copy that use_copy() chose. A shared buffer is memory
// of another process, mapped without copying; its owner checks the guards. The caller binds each
// copy of a shared buffer under its own name ("y", "y#1", ...), and may name an initial buffer,
// whose bytes restore() copies into the shared buffer. The function copy_back() copies to the
// caller all buffers that have no pattern and are not shared. It checks the guards of all buffers
// that are not shared, and reports an overwritten guard: "memory behind 'x' was written".
//
// Example: CG_CHECK(buffers.bind(list, stream)); ... CG_TRY(auto damage, buffers.copy_back());
#pragma once

#include <span>

#include "device/cuda/memory.h"
#include "device/device.h"

namespace cutegen::device::cuda {

struct PlacedBuffer {
  Block block;
  Address at = 0;
  size_t bytes = 0;
  std::span<std::byte> host;  // empty for shared buffers and buffers with a pattern
  bool read_only = false, shared = false;
  unsigned char guard = 0;
  std::vector<std::byte> pattern;
  int copies = 1;
  std::string initial;    // name of the buffer that restore() copies from
  bool is_state = false;  // a mutated tensor that restore() fills with its pattern
};

class Buffers {
 public:
  Buffers(const Driver& driver, int device) : driver_(driver), memory_(driver, device) {}
  ~Buffers() { clear(); }
  Buffers(const Buffers&) = delete;
  Buffers& operator=(const Buffers&) = delete;

  Result<void> bind(const std::vector<BufferBinding>& list, Handle stream);
  void clear();
  Result<const PlacedBuffer*> find(const std::string& name, const std::string& step) const;
  // Chooses copy `run % n` of each buffer with n copies, for timed run `run`.
  void use_copy(int run) { run_ = run; }
  // Refills the copy that use_copy() chose. The new content comes from the pattern or from the
  // initial buffer.
  Result<void> refill(const std::string& name, Handle stream);
  // Restores the initial values of a tensor that the program mutates, in the copy that use_copy()
  // chose.
  Result<void> restore(const std::string& name, Handle stream);
  // Returns a message about the first overwritten guard, or an empty string.
  Result<std::string> copy_back();
  Result<void> read(const std::string& name, int64_t offset, std::span<std::byte> out) const;

 private:
  Result<void> place(const BufferBinding& given, const std::string& name, Handle stream);
  Result<void> place_shared(const BufferBinding& given);
  Result<void> write_guards(const PlacedBuffer& b, Handle stream);
  Result<void> fill_in(const PlacedBuffer& b, std::span<const std::byte> pattern, Handle stream);
  Result<bool> intact(Address from, size_t bytes, unsigned char guard) const;

  const Driver& driver_;
  BlockMemory memory_;
  std::map<std::string, PlacedBuffer> placed_;
  bool at_the_end_ = false;
  int run_ = 0;
};

}  // namespace cutegen::device::cuda
