// SPDX-License-Identifier: Apache-2.0
// SuiteQueue: what is still to be done with the tasks of a baseline suite, and in which order.
//
// Contract: a task is described, then built and timed, and its truth made, the two in any order.
// Descriptions come first; of the builds, those that need least memory; of the truths, the largest
// that fits. Not thread-safe: the caller holds its lock. Items must outlive the queue.
//
// Example: queue.add(item); while (auto job = queue.next_job()) perform(*job);
#pragma once

#include <list>
#include <optional>

#include "core/task.h"
#include "engine/baselines/memory_budget.h"

namespace cutegen::engine {

struct BaselineRow;

struct SuiteItem {
  BaselineRow* row = nullptr;
  Task task;
  int64_t build_bytes = 0, truth_bytes = 0;
  int left = 2;        // parts that are not done
  bool alone = false;  // it ran out of memory beside others
};

struct SuiteJob {
  SuiteItem* item = nullptr;
  bool describe = false;  // else build
};

struct SuiteTruth {
  SuiteItem* item;
  MemoryBudget::Claim held;
};

class SuiteQueue {
 public:
  void add(SuiteItem& item) { undescribed_.push_back(&item); }
  // Removes what is left to do for the task.
  void drop(SuiteItem& item);

  // The job is under way until described() or built(). Without one, others may still bring more.
  std::optional<SuiteJob> next_job();
  bool has_jobs_under_way() const { return describing_ > 0 || building_ > 0; }
  // `measure`: build it and make its truth.
  void described(SuiteItem& item, bool measure);
  void built() { --building_; }
  // Once more, after it ran out of memory: when nothing else is left to build.
  void build_alone(SuiteItem& item, int64_t bytes);

  // The largest task whose memory is free now. Without one, more may come.
  std::optional<SuiteTruth> next_truth(MemoryBudget& budget);
  bool has_truths_to_come() const {
    return !untrue_.empty() || describing_ > 0 || !undescribed_.empty();
  }

 private:
  std::list<SuiteItem*> undescribed_, unbuilt_, alone_, untrue_;
  int describing_ = 0, building_ = 0;
};

}  // namespace cutegen::engine
