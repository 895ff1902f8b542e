// SPDX-License-Identifier: Apache-2.0
// RegisterFile: the registers of a CTA's warps, including constants and special registers.
//
// Contract: each warp has a block of Program::register_bytes, aligned to 64 bytes. The constructor
// writes constants and special registers that are the same for all CTAs of a launch. begin() writes
// the others.
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
  // Call it when CTA `at` of the grid begins.
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

// Writes `value` to all lanes of a register. size: bytes per lane; 0: a predicate's mask.
void fill_register(std::byte* registers, int32_t offset, int size, uint64_t value);

}  // namespace cutegen::ptx
