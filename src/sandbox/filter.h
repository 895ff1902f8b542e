// SPDX-License-Identifier: Apache-2.0
// The seccomp filter as bytes, for a child that must start something before it locks itself in.
//
// Contract: the filter that spawn() would install for `isolation` (the child may start programs),
// in the kernel's form of 8 bytes per instruction. The child installs it on all of its threads
// before it meets third-party code, and reports success. An error if libseccomp refuses a rule.
//
// Example: CG_TRY(std::string program, sandbox::filter_bytes({.no_network = true}));
#pragma once

#include <string>

#include "sandbox/sandbox.h"

namespace cutegen::sandbox {

Result<std::string> filter_bytes(const Isolation& isolation);

}  // namespace cutegen::sandbox
