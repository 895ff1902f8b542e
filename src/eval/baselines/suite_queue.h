// SPDX-License-Identifier: Apache-2.0
// SuiteQueue: the work left for the tasks of a baseline suite, and its order.
//
// Contract: each task is described first. Then its baselines are built and timed and its truth is
// computed, in either order. The queue returns all descriptions first, then the builds, the one
// with the least memory first. Among the truths, it returns the largest one that fits. Not
// thread-safe: the caller holds its lock. Items must outlive the queue.
//
// Example: queue.add(item); while (auto job = queue.next_job()) perform(*job);
#pragma once

#include <list>
#include <optional>

#include "core/task.h"
#include "eval/api/suite.h"
#include "eval/baselines/memory_budget.h"

namespace cutegen::eval {

struct SuiteItem {
  const SuiteFile* file = nullptr;
  SuiteRow row = {};
  Task task = {};
  int64_t build_bytes = 0, truth_bytes = 0;
  int left = 2;        // number of unfinished parts: the builds and the truth
  bool alone = false;  // the task ran out of memory while others used the GPU
};

struct SuiteJob {
  SuiteItem* item = nullptr;
  bool describe = false;  // true: describe the task; false: build its baselines
};

struct SuiteTruth {
  SuiteItem* item;
  MemoryBudget::Claim held;
};

class SuiteQueue {
 public:
  void add(SuiteItem& item) { undescribed_.push_back(&item); }
  // Removes the task's remaining work.
  void drop(SuiteItem& item);

  // The next job, until described() or built() reports its end. If the queue is empty, running jobs
  // may still add more.
  std::optional<SuiteJob> next_job();
  bool has_jobs_under_way() const { return describing_ > 0 || building_ > 0; }
  // measure: whether to queue the task's builds and its truth.
  void described(SuiteItem& item, bool measure);
  void built() { --building_; }
  // Queues another attempt after the build ran out of memory; it runs when no other build is left.
  void build_alone(SuiteItem& item, int64_t bytes);

  // The largest truth whose memory is free now, if there is one. More truths may follow while
  // has_truths_to_come() is true.
  std::optional<SuiteTruth> next_truth(MemoryBudget& budget);
  bool has_truths_to_come() const {
    return !untrue_.empty() || describing_ > 0 || !undescribed_.empty();
  }

 private:
  std::list<SuiteItem*> undescribed_, unbuilt_, alone_, untrue_;
  int describing_ = 0, building_ = 0;
};

}  // namespace cutegen::eval
