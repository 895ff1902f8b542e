// SPDX-License-Identifier: Apache-2.0
// guards_of: the predicates that must be true (or false) whenever a thread executes a store.
//
// Contract: guards_of() returns, for each store, the conditional branches and exits of `conditions`
// that every path from the program's first instruction to the store passes on the same side. The
// result also contains the predicate of the store itself. It may omit guards, for example in a
// program that is too large to search its paths.
//
// Example: for (const Guard& g : guards_of(program, stores, conditions)[0]) { ... }
#pragma once

#include <cstdint>
#include <vector>

#include "ptx/decode/program.h"

namespace cutegen::ptx {

struct Guard {
  int32_t slot = -1;  // the predicate
  bool holds = true;  // the value with which a thread may execute the store
};

// `stores` and `conditions` are pcs.
std::vector<std::vector<Guard>> guards_of(const Program& program, const std::vector<size_t>& stores,
                                          const std::vector<size_t>& conditions);

}  // namespace cutegen::ptx
