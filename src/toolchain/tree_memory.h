// SPDX-License-Identifier: Apache-2.0
// Measures the memory of a process and all its descendants.
//
// Contract: tree_memory() returns the sum of the proportional set sizes that the Linux kernel
// reports (a page that n processes share counts 1/n for each). If Linux does not report these sizes
// (for another user's process), the function returns the largest resident set of the processes,
// which is a lower bound. If the process does not exist, tree_memory() returns 0. A call takes a
// few milliseconds per GiB, because Linux walks the page tables.
//
// Example: int64_t bytes = tree_memory(server_pid);
#pragma once

#include <sys/types.h>

#include <cstdint>

namespace cutegen::toolchain {

int64_t tree_memory(pid_t root);

}  // namespace cutegen::toolchain
