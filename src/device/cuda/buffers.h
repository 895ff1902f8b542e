// SPDX-License-Identifier: Apache-2.0
// The buffers of a run on the GPU, each between two guards.
//
// Contract: one bind() places the buffers at the start of their blocks, the next bind() at the end,
// so that an access beyond either end of a buffer reaches an unmapped page in one of two runs. The
// rest of each block, its guards, holds a random byte. A buffer with a pattern holds repetitions of
// it and has no copy in the caller's memory. It may have several copies; find() returns the one
// that use_copy() chose. A shared buffer is memory of another process, mapped without copying; its
// owner checks the guards. It too may have copies, each bound under its own name ("y", "y#1", ...),
// and an initial buffer, whose bytes restore() copies into it. copy_back() copies the other buffers
// to the caller, read-only ones too, and names a guard that was overwritten: "memory behind 'x' was
// written".
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
  std::span<std::byte> host;  // empty for patterns and shared buffers
  bool read_only = false, shared = false;
  unsigned char guard = 0;
  std::vector<std::byte> pattern;
  int copies = 1;
  std::string initial;    // the buffer that restore() copies from
  bool is_state = false;  // writable data: restore() writes the pattern
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
  // In timed run `run`, a buffer with n copies uses copy `run % n`.
  void use_copy(int run) { run_ = run; }
  // Refills the chosen copy with its pattern, or restores it from its initial buffer.
  Result<void> refill(const std::string& name, Handle stream);
  // Restores the initial values of the chosen copy of a mutated tensor.
  Result<void> restore(const std::string& name, Handle stream);
  // Copies every buffer to the caller. Returns the first overwritten guard, or an empty text.
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
