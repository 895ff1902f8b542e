// SPDX-License-Identifier: Apache-2.0
// UndefinedMemory: records which words of a CTA's shared and local memory have been written.
//
// Contract: each word has a state of one byte: never written, written, or a copy of an undefined
// value. The states of global buffers are in BufferShadow (state/shadow.h).
//
// Example: if (UndefinedMemory::suspicious(memory.shared(), lanes, summary, at, 4)) ...
#pragma once

#include <vector>

#include "ptx/checks/undefined_registers.h"

namespace cutegen::ptx {

class UndefinedMemory {
 public:
  static constexpr uint8_t kNever = 0, kWritten = 1, kCopy = 2;
  UndefinedMemory(int warps, size_t shared_bytes, size_t local_bytes);
  void begin();
  uint8_t* shared() { return shared_.data(); }
  size_t* shared_left() { return &shared_left_; }
  uint8_t* local(int warp) { return local_.data() + size_t(warp) * local_words_ * 32; }

  // Returns whether some lane reads a word whose state is not kWritten. `state` has one entry per
  // word, from address 0.
  static bool suspicious(const uint8_t* state, uint32_t lanes, const AddressSummary& sum,
                         const uint64_t* at, uint32_t bytes);
  // Call store() before a store. `left` counts the words that no store has written yet.
  static void store(const UndefinedStep& s, const UndefinedRegisters& values, uint8_t* state,
                    const AddressSummary& sum, const uint64_t* at, size_t* left);

 private:
  size_t local_words_;  // of a thread
  std::vector<uint8_t> shared_, local_;
  size_t shared_left_ = 0;
};

// Calls f(word) for each word that the bytes [at, at + bytes) overlap.
template <class F>
void each_word(uint64_t at, uint32_t bytes, F f) {
  for (uint64_t word = at / 4; word <= (at + bytes - 1) / 4; ++word) f(word);
}

}  // namespace cutegen::ptx
