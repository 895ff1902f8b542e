// SPDX-License-Identifier: Apache-2.0
// Suggests commands that enable missing protections of the sandbox on this machine.
//
// Contract: allow_user_namespaces() reads settings of the Linux kernel and changes nothing.
//
// Example: allow_user_namespaces()  // "sudo sysctl -w user.max_user_namespaces=10000 (...)"
#pragma once

#include <filesystem>
#include <string>

namespace cutegen::sandbox {

std::string allow_user_namespaces(const std::filesystem::path& settings = "/proc/sys");

}  // namespace cutegen::sandbox
