// SPDX-License-Identifier: Apache-2.0
// RegisterFile: the registers of a CTA's warps, including constants and special registers.
//
// Contract: each warp has a block of Program::register_bytes bytes, aligned to 64. The constructor
// writes constants, and special registers that have the same value in all CTAs of a launch. begin()
// writes the other special registers.
//
// Example: RegisterFile file(job, warps); file.begin({0, 0, 0}); in.full(file.of(0), in, ~0u);
#pragma once

#include <array>
#include <memory>

#include "ptx/cta/job.h"

namespace cutegen::ptx {

class RegisterFile {
 public:
  RegisterFile(const Job& job, size_t warps);
  std::byte* of(size_t warp) { return registers_.get() + warp * bytes_; }
  // Call begin() when the CTA with grid index `at` begins.
  void begin(const std::array<int64_t, 3>& at);

 private:
  void fill_constants(const Job& job, size_t warp);
  void fill_special(const Job& job, const SpecialSlot& s, size_t warp);

  uint64_t value_of(Special which, const std::array<int64_t, 3>& at) const;

  const Job& job_;
  const Program& program_;
  size_t warps_, bytes_;
  std::unique_ptr<std::byte[], void (*)(void*)> registers_;
};

// Writes `value` to all lanes of a register. `size` is the number of bytes per lane, or 0 for a
// predicate, whose mask is `value`.
void fill_register(std::byte* registers, int32_t offset, int size, uint64_t value);

}  // namespace cutegen::ptx
