// SPDX-License-Identifier: Apache-2.0
// SetStock: the official sets that a pool keeps, ordered by their last draw.
//
// Contract: take() returns a set on which the program has not been judged, and drops it after
// kMostUses draws. keep() drops the sets drawn longest ago until the limit of allow() holds; it
// does not keep a set that is larger than the limit. Not thread-safe: the pool locks.
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

  // Returns nullptr if the program has been judged on all sets.
  GpuSetPtr take(const SetKey& key, const std::string& program_id);
  // program_id: the program that drew the set; empty if the pool made it in advance.
  void keep(const GpuSetPtr& set, const std::string& program_id);
  // Drops sets until `bytes` more fit.
  void make_room(int64_t bytes);
  // Drops sets until they take at most `bytes`.
  void shrink(int64_t bytes);
  void forget(const std::string& task_id);

 private:
  struct Stocked {
    GpuSetPtr set;
    int uses = 0;
    std::set<std::string> met;
  };
  int64_t most_bytes_ = 0;
  std::list<Stocked> sets_;  // the one drawn last comes last
};

}  // namespace cutegen::eval
