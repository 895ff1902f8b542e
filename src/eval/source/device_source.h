// SPDX-License-Identifier: Apache-2.0
// The device code of a source that also has host code.
//
// Contract: replaces host functions, their headers and their macros by blanks, so that every other
// token keeps its line. Keeps host functions that device code calls. If the launch has template
// arguments, the kernel becomes a device function, and an extern "C" kernel of the same name calls
// it with them.
//
// Example: CG_TRY(std::string text, device_source(text, outline, launch, "silu.cu"));
#pragma once

#include <string>

#include "eval/source/launcher.h"

namespace cutegen::eval {

Result<std::string> device_source(const std::string& text, const SourceOutline& outline,
                                  const HostLaunch& launch, const std::string& file);

}  // namespace cutegen::eval
