// SPDX-License-Identifier: Apache-2.0
#include "eval/sets/set_stock.h"

#include <algorithm>

namespace cutegen::eval {
namespace {

SetKey key_of(const GpuSet& set) {
  return {.task_id = set.task_id, .shape = set.shape, .family = set.family};
}

}  // namespace

int64_t SetStock::bytes() const {
  int64_t bytes = 0;
  for (const Stocked& s : sets_) bytes += s.set->bytes;
  return bytes;
}

int64_t SetStock::count(const SetKey& key) const {
  return std::count_if(sets_.begin(), sets_.end(),
                       [&](const Stocked& s) { return key_of(*s.set) == key; });
}

GpuSetPtr SetStock::take(const SetKey& key, const std::string& program_id) {
  for (auto at = sets_.begin(); at != sets_.end(); ++at) {
    if (key_of(*at->set) != key || at->met.contains(program_id)) continue;
    GpuSetPtr set = at->set;
    at->met.insert(program_id);
    if (++at->uses >= kMostUses)
      sets_.erase(at);
    else
      sets_.splice(sets_.end(), sets_, at);
    return set;
  }
  return nullptr;
}

void SetStock::keep(const GpuSetPtr& set, const std::string& program_id) {
  if (set->bytes > most_bytes_) return;  // such a set lives only as long as its run
  // A program that is judged repeatedly has used the key's other sets, so drop them first.
  std::erase_if(sets_, [&](const Stocked& s) {
    return !program_id.empty() && key_of(*s.set) == key_of(*set);
  });
  make_room(set->bytes);
  Stocked stocked{.set = set, .uses = 0, .met = {}};
  if (!program_id.empty()) {
    stocked.uses = 1;
    stocked.met.insert(program_id);
  }
  sets_.push_back(std::move(stocked));
}

void SetStock::make_room(int64_t bytes) {
  shrink(std::max<int64_t>(0, most_bytes_ - bytes));
}

void SetStock::shrink(int64_t bytes) {
  while (!sets_.empty() && this->bytes() > bytes) sets_.pop_front();
}

void SetStock::forget(const std::string& task_id) {
  std::erase_if(sets_, [&](const Stocked& s) { return s.set->task_id == task_id; });
}

}  // namespace cutegen::eval
