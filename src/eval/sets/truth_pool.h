// SPDX-License-Identifier: Apache-2.0
// TruthPool: computes secret input sets of one task in advance, and selects a random set for each
// program.
//
// Contract: draw() returns a random kept input set of this shape and family (input distribution) on
// which the program has not run, or computes a new set. The pool drops a set after kMostUses draws.
// After refill_in_background(), a thread of the pool computes one set per (shape, family), because
// a first program needs no more. From the first resume() after a program has drawn a set, the
// thread keeps kStock sets per (shape, family). All kept sets together take at most kMostBytes.
// After pause(), the thread finishes its present set and starts no other set until resume(), so
// that the thread does not slow a run down. Seeds come from the operating system's CSPRNG and are
// not stored.
//
// draw_public() returns the set from the published seed kPublicSeed. Feedback may show the values
// of this set, and draw() never returns this set.
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
// A function that computes one set from a seed: the torch worker's, or a fake in tests.
using SetSource = std::function<Result<torch::TensorSet>(const Context&, const ShapeCase&,
                                                         const std::string& family, uint64_t seed)>;

class TruthPool {
 public:
  static constexpr int kMostUses = 6;
  static constexpr size_t kStock = 2;  // number of kept sets per (shape, family)
  // Used as program_id for degenerate solutions, which have no program.
  static constexpr const char* kAdmission = "admission";
  static constexpr size_t kMostBytes = size_t{2} << 30;

  TruthPool(Task task, SetSource source, size_t most_bytes = kMostBytes);
  ~TruthPool();
  Result<SetPtr> draw(const Context& ctx, const ShapeCase& shape, const std::string& family,
                      const std::string& program_id);
  // Returns the same set for every program.
  Result<SetPtr> draw_public(const Context& ctx, const ShapeCase& shape, const std::string& family);
  // Computes an input set that the pool does not keep, so no program runs on this set.
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
  Result<SetPtr> make_from(const Context& ctx, const ShapeCase& shape, const std::string& family,
                           uint64_t seed);
  void refill();
  // Returns the next (shape, family) with too few sets, or null. The caller must lock `lock_`.
  const std::pair<ShapeCase, std::string>* short_of();
  size_t bytes() const;  // total size of all sets; the caller must lock `lock_`
  // Drops sets with keys other than `kept` until all sets fit. The caller must lock `lock_`.
  void make_room(const Key& kept);

  Task task_;
  SetSource source_;
  const size_t most_bytes_;
  std::mutex source_lock_;  // locked during each call of `source_`
  std::mutex lock_;
  std::condition_variable wake_;
  std::map<Key, std::vector<Stocked>> stock_;
  std::map<Key, SetPtr> public_;  // the last few sets of draw_public()
  std::vector<std::pair<ShapeCase, std::string>> wanted_;
  bool refilling_ = false, busy_ = false, failed_ = false;
  // drawn_: whether a program has drawn a set. judged_: the value of drawn_ at the last resume().
  bool drawn_ = false, judged_ = false;
  std::mt19937_64 random_;
  std::stop_source stop_;
  std::thread thread_;
};

}  // namespace cutegen::eval
