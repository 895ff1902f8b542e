// SPDX-License-Identifier: Apache-2.0
// The machine code in a cubin.
//
// Contract: the bytes of each kernel's section (".text.NAME") in the file's order; views into
// `cubin`. A file that is no 64-bit ELF, or is damaged, has none. Never fails, reads in bounds.
//
// Example: for (const KernelCode& k : code_of(cubin)) all += k.bytes;
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace cutegen::toolchain {

struct KernelCode {
  std::string name;
  std::string_view bytes;
};

[[nodiscard]] std::vector<KernelCode> code_of(std::string_view cubin);

}  // namespace cutegen::toolchain
