// SPDX-License-Identifier: Apache-2.0
// Predicts which tool will read a GPU's hardware counters, for the first lines of a run. Nothing is
// read yet: only a profile does that (eval/profile/hardware_counters.h).
//
// Contract: returns one line. Looks for ncu, asks for its version, and reads the driver's setting
// for access to counters. If no tool can read them, the line gives the reason and the remedy.
//
// Example: counters_outlook(ctx, false)  // "ncu 2025.3.1.0"
#pragma once

#include <filesystem>
#include <string>

#include "base/context.h"

namespace cutegen::eval {

std::string counters_outlook(
    const Context& ctx, bool require_sandbox,
    const std::filesystem::path& driver_settings = "/proc/driver/nvidia/params");

}  // namespace cutegen::eval
