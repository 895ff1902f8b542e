// SPDX-License-Identifier: Apache-2.0
// Extracts the device code from a CUDA source that also has host code.
//
// Contract: device_source() replaces host functions, host-only includes and host-only macros by
// blanks, so that all other code keeps its line numbers. Host functions that device code calls
// remain. If the launch has template arguments, the kernel becomes a device function, and a new
// extern "C" kernel of the same name calls it with these arguments.
//
// Example: CG_TRY(std::string text, device_source(text, outline, launch, "silu.cu"));
#pragma once

#include <string>

#include "eval/source/launcher.h"

namespace cutegen::eval {

Result<std::string> device_source(const std::string& text, const SourceOutline& outline,
                                  const HostLaunch& launch, const std::string& file);

}  // namespace cutegen::eval
