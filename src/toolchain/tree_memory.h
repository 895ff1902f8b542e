// SPDX-License-Identifier: Apache-2.0
// The memory of a process and all its descendants.
//
// Contract: returns the sum of the proportional set sizes that the kernel reports (a page that n
// processes share counts 1/n in each). If the kernel reports none (another user's process), returns
// the largest resident set of the tree, a lower bound. Returns 0 if the process does not exist.
// Walks page tables, which takes a few milliseconds per GiB.
//
// Example: int64_t bytes = tree_memory(server_pid);
#pragma once

#include <sys/types.h>

#include <cstdint>

namespace cutegen::toolchain {

int64_t tree_memory(pid_t root);

}  // namespace cutegen::toolchain
