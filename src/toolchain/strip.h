// SPDX-License-Identifier: Apache-2.0
// Removes unused module-scope variables from PTX. With -default-device, NVRTC turns every constant
// in the CuTe headers into a module-scope variable: about 1,100 variables, 98% of the PTX text of a
// small kernel.
//
// Contract: strip_ptx() keeps variables that the code or the initialiser of a kept variable names,
// and variables with visible, extern, weak or common linkage. It also keeps variables that a plan
// may name: variables with a C name and a value, or with the prefix cg_. It copies all other text
// unchanged, but removes the folder from the source's name in .file lines.
//
// Example: std::string small = strip_ptx(ptx, "kernel.cu");
#pragma once

#include <string>
#include <string_view>

namespace cutegen::toolchain {

std::string strip_ptx(std::string_view ptx, std::string_view name);

}  // namespace cutegen::toolchain
