// SPDX-License-Identifier: Apache-2.0
// A profile for people: the bottleneck, the hot lines and their problems, all counters.
//
// Contract: sanitises text from outside; marks every modelled figure. docs/profile.md explains the
// columns.
//
// Example: print_text(profile_text(*verdict.profile));
#pragma once

#include <string>

#include "core/profile.h"

namespace cutegen::cli {

std::string profile_text(const Profile& profile);

}  // namespace cutegen::cli
