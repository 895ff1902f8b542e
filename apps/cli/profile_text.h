// SPDX-License-Identifier: Apache-2.0
// A profile for people: what binds, the hot lines, what is wrong with them, all counters.
//
// Contract: foreign text is sanitized; every modelled figure says so. docs/profile.md explains the
// columns. Example: print_text(profile_text(*verdict.profile));
#pragma once

#include <string>

#include "core/profile.h"

namespace cutegen::cli {

[[nodiscard]] std::string profile_text(const Profile& profile);

}  // namespace cutegen::cli
