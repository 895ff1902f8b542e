// SPDX-License-Identifier: Apache-2.0
// Predicts which tool will be able to read a GPU's hardware counters, for the first lines of a run.
// For a profile, eval/profile/hardware_counters.h reads the counters themselves.
//
// Contract: counters_outlook() looks for ncu, runs it to get its version, and reads the driver's
// setting for access to counters. The returned line names the tool or, if there is none, the reason
// and the remedy.
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
