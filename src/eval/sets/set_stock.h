// SPDX-License-Identifier: Apache-2.0
// SetStock: the input sets that a GpuTruthPool keeps, in the order of their last use.
//
// Contract: take() returns a set on which the evaluator has not judged the program. After kMostUses
// uses, the stock drops a set. keep() drops the least recently used sets until all sets fit into
// the limit of allow(), and never keeps a set that is larger than this limit. SetStock is not
// thread-safe; the pool locks.
//
// Example: SetStock stock; stock.allow(bytes); stock.keep(set, program_id);
//   GpuSetPtr other = stock.take({task_id, shape, family}, other_id);
#pragma once

#include <compare>
#include <list>
#include <set>
#include <string>

#include "eval/sets/gpu_set.h"

namespace cutegen::eval {

struct SetKey {
  std::string task_id, shape, family;
  auto operator<=>(const SetKey&) const = default;
};

class SetStock {
 public:
  static constexpr int kMostUses = 12;

  void allow(int64_t bytes) { most_bytes_ = bytes; }
  int64_t allowed() const { return most_bytes_; }
  int64_t bytes() const;
  bool has_room(int64_t bytes) const { return this->bytes() + bytes <= most_bytes_; }
  int64_t count(const SetKey& key) const;

  // Returns null if the evaluator has judged the program on all sets of this key.
  GpuSetPtr take(const SetKey& key, const std::string& program_id);
  // program_id: the program that runs on the set, or empty if the pool computed the set in advance.
  void keep(const GpuSetPtr& set, const std::string& program_id);
  // Drops sets until a set of `bytes` bytes fits.
  void make_room(int64_t bytes);
  // Drops sets until all sets take at most `bytes` bytes.
  void shrink(int64_t bytes);
  void forget(const std::string& task_id);

 private:
  struct Stocked {
    GpuSetPtr set;
    int uses = 0;
    std::set<std::string> met;
  };
  int64_t most_bytes_ = 0;
  std::list<Stocked> sets_;  // the set at the end is the most recently used
};

}  // namespace cutegen::eval
