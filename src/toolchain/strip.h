// SPDX-License-Identifier: Apache-2.0
// Strips from PTX the module-scope variables that nothing uses: with -default-device every constant
// of the CuTe headers becomes one (about 1,100 of them, 98% of a small kernel's text).
//
// Contract: kept are variables that code or a kept initialiser names, those with visible, extern,
// weak or common linkage, and names of C with a value or with cg_ in front, which a plan may ask
// for. All else is copied unchanged, but for the folder of source names in .file lines. Example:
// std::string small = strip_ptx(ptx, "kernel.cu");
#pragma once

#include <string>
#include <string_view>

namespace cutegen::toolchain {

[[nodiscard]] std::string strip_ptx(std::string_view ptx, std::string_view name);

}  // namespace cutegen::toolchain
