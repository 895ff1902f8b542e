// SPDX-License-Identifier: Apache-2.0
// TruthPool: makes secret input sets of one task in advance, and gives each program a random one.
//
// Contract: draw() returns a random set of (shape, family) from the stock on which this program has
// not been judged, or computes one. It drops a set after kMostUses draws. After
// refill_in_background(), a thread of the pool computes one set of each (shape, family), which is
// enough for a first program. At the first resume() after a program has drawn sets, it begins to
// keep kStock of each. The pool keeps at most kMostBytes, and thus fewer sets of large tensors.
// After pause(), it finishes its current set and starts no other until resume(), so that it does
// not disturb a run. Seeds come from the operating system's CSPRNG and are not stored.
//
// Example: CG_TRY(auto set, pool.draw(ctx, shape, "heavy", program_id));
#pragma once

#include <condition_variable>
#include <functional>
#include <map>
#include <mutex>
#include <random>
#include <set>
#include <thread>

#include "eval/sets/input_set.h"

namespace cutegen::eval {

using SetPtr = std::shared_ptr<const InputSet>;
// Makes one set from a seed (the torch worker; a toy in tests).
using SetSource = std::function<Result<torch::TensorSet>(const Context&, const ShapeCase&,
                                                         const std::string& family, uint64_t seed)>;

class TruthPool {
 public:
  static constexpr int kMostUses = 6;
  static constexpr size_t kStock = 2;  // sets of each (shape, family) kept ready
  // The id under which admission draws sets for degenerate solutions, which are not programs.
  static constexpr const char* kAdmission = "admission";
  static constexpr size_t kMostBytes = size_t{2} << 30;

  TruthPool(Task task, SetSource source, size_t most_bytes = kMostBytes);
  ~TruthPool();
  Result<SetPtr> draw(const Context& ctx, const ShapeCase& shape, const std::string& family,
                      const std::string& program_id);
  // Makes a set that judges no program.
  Result<SetPtr> make(const Context& ctx, const ShapeCase& shape, const std::string& family);
  void refill_in_background(const std::vector<std::pair<ShapeCase, std::string>>& wanted);
  void pause();
  void wait_until_idle();
  void resume();

 private:
  struct Stocked {
    SetPtr set;
    int uses = 0;
    std::set<std::string> met;  // program ids
  };
  using Key = std::pair<std::string, std::string>;
  void refill();
  // The next key with too few sets; call it under the lock.
  const std::pair<ShapeCase, std::string>* short_of();
  size_t bytes() const;  // total size of all sets; call it under the lock
  // Drops sets of other keys until the rest fits; call it under the lock.
  void make_room(const Key& kept);

  Task task_;
  SetSource source_;
  const size_t most_bytes_;
  std::mutex source_lock_;  // held during each call of the worker
  std::mutex lock_;
  std::condition_variable wake_;
  std::map<Key, std::vector<Stocked>> stock_;
  std::vector<std::pair<ShapeCase, std::string>> wanted_;
  bool refilling_ = false, busy_ = false, failed_ = false;
  // Whether a program has drawn a set, and whether one is judged now.
  bool drawn_ = false, judged_ = false;
  std::mt19937_64 random_;
  std::stop_source stop_;
  std::thread thread_;
};

}  // namespace cutegen::eval
