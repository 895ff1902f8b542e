// SPDX-License-Identifier: Apache-2.0
// The seccomp filter as bytes, for a child that first has to start something (a GPU's driver) and
// then restricts itself.
//
// Contract: filter_bytes() returns the filter that spawn() would install for `isolation`, in the
// kernel's form of 8 bytes per instruction; the child may still start programs. The child installs
// the filter on all its threads before it runs third-party code, and reports success. It is an
// error if libseccomp refuses a rule.
//
// Example: CG_TRY(std::string program, sandbox::filter_bytes({.no_network = true}));
#pragma once

#include <string>

#include "sandbox/sandbox.h"

namespace cutegen::sandbox {

Result<std::string> filter_bytes(const Isolation& isolation);

}  // namespace cutegen::sandbox
