// SPDX-License-Identifier: Apache-2.0
// GpuTruthPool: keeps input sets of the open tasks at official shapes (the sizes in the task files)
// in GPU memory, as many as fit.
//
// Contract: draw() returns a kept input set (set_stock.h) on which the program has not run, or
// computes a new set. All sets together take at most as many bytes as allow() permits; the pool
// drops the least recently drawn sets. If a set cannot be computed, because the set does not fit or
// the task fails, draw() returns the same error until kPatience has passed. Then draw() tries
// again, because memory may be free.
//
// After want(), a thread of the pool computes the missing sets of a task: one per family (input
// distribution), and kMoreToTime more of the first family. The thread pauses between pause() and
// resume(). ready() never computes a set.
//
// Example: CG_TRY(GpuSetPtr set, pool.draw(ctx, task, shape, "made", program_id));
#pragma once

#include <condition_variable>
#include <functional>
#include <map>
#include <mutex>
#include <thread>

#include "eval/sets/set_stock.h"

namespace cutegen::eval {

class GpuTruthPool {
 public:
  static constexpr int kMoreToTime = 2;  // more input sets of the first family, for timed runs
  static constexpr auto kPatience = std::chrono::minutes(1);
  using Source = std::function<Result<GpuSetPtr>(const Context&, const Task&, const ShapeCase&,
                                                 const std::string& family, uint64_t seed)>;

  explicit GpuTruthPool(Source source);
  ~GpuTruthPool();
  Result<GpuSetPtr> draw(const Context& ctx, const Task& task, const ShapeCase& shape,
                         const std::string& family, const std::string& program_id);
  // Returns a kept input set on which the program has not run, or null. Never computes a set.
  GpuSetPtr ready(const std::string& task_id, const std::string& shape, const std::string& family,
                  const std::string& program_id);
  // Computes an input set for a single program, which the pool does not keep.
  Result<GpuSetPtr> fresh(const Context& ctx, const Task& task, const ShapeCase& shape,
                          const std::string& family);
  void allow(int64_t bytes);  // sets the memory limit; without a limit, the pool keeps no sets
  void want(const Task& task, const ShapeCase& shape, const std::vector<std::string>& families);
  void forget(const std::string& task_id);
  // Lets the thread finish its present set, but start no other set until resume().
  void pause();
  void resume();
  // Drops input sets until all kept sets take at most `bytes` bytes.
  void shrink(int64_t bytes);
  int64_t bytes();
  int64_t allowed();

 private:
  struct Wanted {
    Task task;
    ShapeCase shape;
    std::string family;
  };
  Result<GpuSetPtr> make(const Context& ctx, const Task& task, const ShapeCase& shape,
                         const std::string& family);
  GpuSetPtr in_stock(const SetKey& key, const std::string& program_id);
  void keep(const GpuSetPtr& set, const std::string& program_id);
  const Wanted* missing();
  void restock();

  Source source_;
  std::mutex source_lock_;  // locked during the computation of an input set
  std::mutex lock_;
  std::condition_variable wake_;
  SetStock stock_;
  std::map<SetKey, std::pair<Error, Clock::time_point>> refused_;
  std::vector<Wanted> wanted_;
  bool paused_ = false, busy_ = false;
  std::stop_source stop_;
  std::thread thread_;
};

}  // namespace cutegen::eval
