// SPDX-License-Identifier: Apache-2.0
// StorePaths: finds the stores that a thread may execute, if the outcomes of some conditions are
// known.
//
// Contract: a condition is the predicate of a branch, an exit or a store. Each predicate has the
// same value whenever the thread evaluates it. reached() follows all paths through the program that
// agree with the given values. For any other condition, reached() follows both outcomes, so it may
// report too many stores as reached, but never too few.
//
// Example: StorePaths paths(program, stores, predicates);
//          if (paths.reached(outcomes)[2]) { /* the thread may execute stores[2] */ }
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "ptx/decode/program.h"

namespace cutegen::ptx {

class StorePaths {
 public:
  static constexpr size_t kMostPredicates = 64;
  // stores: pcs. predicates: at most kMostPredicates registers.
  StorePaths(const Program& program, std::vector<size_t> stores, std::vector<int32_t> predicates);
  // outcomes: bit i is the value of predicate i. Returns one entry for each store.
  const std::vector<char>& reached(uint64_t outcomes);

 private:
  enum class Value : uint8_t { no, yes, unknown };
  Value value_of(const Inst& in, uint64_t outcomes) const;
  void search(uint64_t outcomes);
  void walk(size_t pc, uint64_t outcomes);
  void leave(const Inst& in);

  const Program& p_;
  std::vector<size_t> stores_;
  std::unordered_map<int32_t, size_t> bit_of_;  // of a predicate
  std::unordered_map<uint64_t, std::vector<char>> known_;
  std::vector<char> all_;
  std::vector<char> seen_;  // by pc
  std::vector<size_t> work_;
};

}  // namespace cutegen::ptx
