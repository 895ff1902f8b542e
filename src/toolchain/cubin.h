// SPDX-License-Identifier: Apache-2.0
// Reads the machine code of each kernel from a cubin.
//
// Contract: code_of() returns the bytes of each kernel's section (".text.NAME") in the order of the
// file, as views into `cubin`. If the file is damaged or not a 64-bit ELF, it returns an empty
// list. It never fails and never reads out of bounds.
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

std::vector<KernelCode> code_of(std::string_view cubin);

}  // namespace cutegen::toolchain
