// SPDX-License-Identifier: Apache-2.0
// Memory of a process and all below it.
//
// Contract: the sum of proportional set sizes (a page that n processes share counts 1/n in each),
// as the kernel tells them; where it does not (another owner), the largest resident set of the
// tree, the least that it can be. 0 for a process that is not there. Walks page tables: a few
// milliseconds for each GiB.
//
// Example: int64_t bytes = tree_memory(server_pid);
#pragma once

#include <sys/types.h>

#include <cstdint>

namespace cutegen::toolchain {

[[nodiscard]] int64_t tree_memory(pid_t root);

}  // namespace cutegen::toolchain
