// SPDX-License-Identifier: Apache-2.0
// SuiteQueue: the remaining jobs of a suite of baselines, in the order in which they start.
//
// Contract: a task needs three jobs: describe the task; build and time its baselines; compute its
// truth (the result in float64). After the description, the two remaining jobs may run in any
// order. next_job() returns all descriptions first, then the builds, beginning with the build that
// needs the least memory. next_truth() returns the largest truth that fits in free memory.
// SuiteQueue is not thread-safe, so the caller must lock. Items must outlive the queue.
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
  int left = 2;        // number of unfinished jobs among builds and truth
  bool alone = false;  // the task ran out of memory while other jobs used the GPU
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
  // Removes the task's remaining jobs.
  void drop(SuiteItem& item);

  // Returns the next job, or nullopt if no job is ready; running jobs may add jobs later. The
  // caller reports the end of the job with described() or built().
  std::optional<SuiteJob> next_job();
  bool has_jobs_under_way() const { return describing_ > 0 || building_ > 0; }
  // Reports that a worker has described the task. With `measure`, queues the task's build and
  // truth.
  void described(SuiteItem& item, bool measure);
  void built() { --building_; }
  // Queues a build once more, because it ran out of memory. The build then runs alone, after all
  // other builds.
  void build_alone(SuiteItem& item, int64_t bytes);

  // Returns the largest truth whose memory is free now, or nullopt. While has_truths_to_come() is
  // true, a later call may return another truth.
  std::optional<SuiteTruth> next_truth(MemoryBudget& budget);
  bool has_truths_to_come() const {
    return !untrue_.empty() || describing_ > 0 || !undescribed_.empty();
  }

 private:
  std::list<SuiteItem*> undescribed_, unbuilt_, alone_, untrue_;
  int describing_ = 0, building_ = 0;
};

}  // namespace cutegen::eval
