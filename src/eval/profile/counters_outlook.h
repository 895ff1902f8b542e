// SPDX-License-Identifier: Apache-2.0
// Who will read a GPU's hardware counters, as far as can be told without trying: for the first
// lines of a run. A profile tries it (eval/profile/hardware_counters.h).
//
// Contract: one line. ncu is looked for and asked for its version; the driver's own setting says
// whether it lets users read counters. Where nobody can, the line says why and what helps.
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
