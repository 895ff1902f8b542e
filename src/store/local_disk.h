// SPDX-License-Identifier: Apache-2.0
// Refuses folders on network file systems, because SQLite's write-ahead log is not safe on them.
//
// Contract: require_local_disk() asks the operating system on which file system an existing folder
// lies, and returns an error for a network file system.
//
// Example: CG_CHECK(require_local_disk("runs"));
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "base/result.h"

namespace cutegen::store {

// Returns the name of the network file system with this statfs magic number, or nullopt if no
// network file system has this number.
std::optional<std::string> network_file_system(unsigned long magic);
Result<void> require_local_disk(const std::filesystem::path& dir);

}  // namespace cutegen::store
