// SPDX-License-Identifier: Apache-2.0
// The seccomp filter as bytes, for a child that has to start something before it is locked in.
//
// Contract: what spawn() would install for `isolation` (programs may be started), in the kernel's
// form: 8 bytes an instruction. The child installs it on all of its threads before it meets foreign
// code, and says so. An error where libseccomp refuses a rule.
//
// Example: CG_TRY(std::string program, sandbox::filter_bytes({.no_network = true}));
#pragma once

#include <string>

#include "sandbox/sandbox.h"

namespace cutegen::sandbox {

[[nodiscard]] Result<std::string> filter_bytes(const Isolation& isolation);

}  // namespace cutegen::sandbox
