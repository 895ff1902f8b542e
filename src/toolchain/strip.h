// SPDX-License-Identifier: Apache-2.0
// Strips unused module-scope variables from PTX. With -default-device, every constant in the CuTe
// headers becomes such a variable (about 1,100 of them, 98% of a small kernel's text).
//
// Contract: keeps variables that code or a kept initialiser names, those with visible, extern, weak
// or common linkage, and those that a plan may name: C names with a value or with the prefix cg_.
// Copies everything else unchanged, but removes the folder of the source's name from .file lines.
// Example:
//   std::string small = strip_ptx(ptx, "kernel.cu");
#pragma once

#include <string>
#include <string_view>

namespace cutegen::toolchain {

std::string strip_ptx(std::string_view ptx, std::string_view name);

}  // namespace cutegen::toolchain
