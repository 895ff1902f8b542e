// SPDX-License-Identifier: Apache-2.0
// The buffers of a run on the GPU: copies of the caller's memory, between guards.
//
// Contract: bind() places each buffer at one end of its block, at the other end the next time, so
// that an access beyond either end meets an unmapped page in one of two runs; what is left of the
// block holds a random byte. A buffer with a pattern repeats it and has no copy in the caller's
// memory; there may be several of it, of which find() gives the one that use_copy() chose. A shared
// buffer is memory of another process, mapped where it says; nothing is copied and its guards are
// the owner's. It may have copies too, each bound by its own name ("y", "y#1", ...), and an initial
// buffer, whose bytes restore() copies into it.
// copy_back() brings the others back, read-only ones too, and says where a guard was written:
// "memory behind 'x' was written".
//
// Example: CG_CHECK(buffers.bind(list, stream)); ... CG_TRY(auto damage, buffers.copy_back());
#pragma once

#include <span>

#include "device/cuda/memory.h"
#include "device/device.h"

namespace cutegen::cuda {

struct PlacedBuffer {
  Block block;
  Address at = 0;
  size_t bytes = 0;
  std::span<std::byte> host;  // empty: a pattern was repeated
  bool read_only = false, shared = false;
  unsigned char guard = 0;
  std::vector<std::byte> pattern;
  int copies = 1;
  std::string initial;  // the buffer that it starts as
};

class Buffers {
 public:
  Buffers(const Driver& driver, int device) : driver_(driver), memory_(driver, device) {}
  ~Buffers() { clear(); }
  Buffers(const Buffers&) = delete;
  Buffers& operator=(const Buffers&) = delete;

  [[nodiscard]] Result<void> bind(const std::vector<BufferBinding>& list, Handle stream);
  void clear();
  [[nodiscard]] Result<const PlacedBuffer*> find(const std::string& name,
                                                 const std::string& step) const;
  // Timed run number `run`: each buffer's copy number run % copies.
  void use_copy(int run) { run_ = run; }
  // The chosen copy of a buffer with a pattern holds it again; one with an initial buffer is
  // restored.
  [[nodiscard]] Result<void> refill(const std::string& name, Handle stream);
  // The chosen copy holds the bytes of its initial buffer again, if it has one.
  [[nodiscard]] Result<void> restore(const std::string& name, Handle stream);
  // Every buffer back to the caller; the first guard that was written, or an empty text.
  [[nodiscard]] Result<std::string> copy_back();
  [[nodiscard]] Result<void> read(const std::string& name, int64_t offset,
                                  std::span<std::byte> out) const;

 private:
  [[nodiscard]] Result<void> place(const BufferBinding& given, const std::string& name,
                                   Handle stream);
  [[nodiscard]] Result<void> place_shared(const BufferBinding& given);
  [[nodiscard]] Result<void> write_guards(const PlacedBuffer& b, Handle stream);
  [[nodiscard]] Result<void> fill_in(const PlacedBuffer& b, std::span<const std::byte> pattern,
                                     Handle stream);
  [[nodiscard]] Result<bool> intact(Address from, size_t bytes, unsigned char guard) const;

  const Driver& driver_;
  BlockMemory memory_;
  std::map<std::string, PlacedBuffer> placed_;
  bool at_the_end_ = false;
  int run_ = 0;
};

}  // namespace cutegen::cuda
