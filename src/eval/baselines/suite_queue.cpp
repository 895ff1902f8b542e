// SPDX-License-Identifier: Apache-2.0
#include "eval/baselines/suite_queue.h"

#include <algorithm>

namespace cutegen::eval {

void SuiteQueue::drop(SuiteItem& item) {
  std::erase(unbuilt_, &item), std::erase(untrue_, &item);
}

std::optional<SuiteJob> SuiteQueue::next_job() {
  if (!undescribed_.empty()) {
    SuiteItem* item = undescribed_.front();
    undescribed_.pop_front();
    ++describing_;
    return SuiteJob{.item = item, .describe = true};
  }
  for (auto* from : {&unbuilt_, &alone_}) {
    auto at = std::min_element(
        from->begin(), from->end(),
        [](const SuiteItem* a, const SuiteItem* b) { return a->build_bytes < b->build_bytes; });
    if (at == from->end()) continue;
    SuiteItem* item = *at;
    from->erase(at);
    ++building_;
    return SuiteJob{.item = item, .describe = false};
  }
  return std::nullopt;
}

void SuiteQueue::described(SuiteItem& item, bool measure) {
  --describing_;
  if (!measure) return;
  unbuilt_.push_back(&item);
  untrue_.push_back(&item);
}

void SuiteQueue::build_alone(SuiteItem& item, int64_t bytes) {
  item.alone = true, item.build_bytes = bytes;
  alone_.push_back(&item);
}

// Builds run at the same time. A truth that does not fit beside them waits until they end.
std::optional<SuiteTruth> SuiteQueue::next_truth(MemoryBudget& budget) {
  untrue_.sort(
      [](const SuiteItem* a, const SuiteItem* b) { return a->truth_bytes > b->truth_bytes; });
  for (auto at = untrue_.begin(); at != untrue_.end(); ++at) {
    auto held = budget.try_claim((*at)->truth_bytes);
    if (!held) continue;
    SuiteItem* item = *at;
    untrue_.erase(at);
    return SuiteTruth{.item = item, .held = std::move(*held)};
  }
  return std::nullopt;
}

}  // namespace cutegen::eval
