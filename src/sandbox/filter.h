// SPDX-License-Identifier: Apache-2.0
// Returns the seccomp filter as bytes, for a child process that must start a GPU's driver before it
// restricts itself.
//
// Contract: filter_bytes() returns the filter that spawn() would install for `isolation`, except
// that the returned filter permits exec. The bytes have the Linux kernel's format of 8 bytes per
// instruction. The child process installs the filter on all its threads before it runs third-party
// code, and reports success. If libseccomp refuses a rule, the result is an error.
//
// Example: CG_TRY(std::string program, sandbox::filter_bytes({.no_network = true}));
#pragma once

#include <string>

#include "sandbox/sandbox.h"

namespace cutegen::sandbox {

Result<std::string> filter_bytes(const Isolation& isolation);

}  // namespace cutegen::sandbox
