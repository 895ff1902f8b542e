// SPDX-License-Identifier: Apache-2.0
// WarmParents: a set of partly parsed programs (WarmParent) within a memory budget. A program that
// has the same beginning as a parsed program (its parent) compiles faster.
//
// Contract: keep() adds a parent. A background thread measures how much memory the parents'
// processes use. If all parents together exceed the budget, the thread drops the least recently
// used parents, and also the newest parent if this parent alone exceeds the budget. The function
// find() returns the parent that saves the most processor time when `text` is compiled. While
// hold(true) is in effect, all parents pause parsing. If a parent's server dies early, WarmParents
// drops the parent and writes one log line. Thread-safe.
//
// Example: WarmParents kept(budget); kept.keep(key, parent); if (auto f = kept.find(key, text)) ...
#pragma once

#include <condition_variable>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "toolchain/warm_parent.h"

namespace cutegen::toolchain {

// Returns whether parsing a program in advance saves time for `children` later programs. `cold` is
// the time of a compile that parses the whole program.
bool warm_pays(Nanoseconds cold, int children);

class WarmParents {
 public:
  using Memory = std::function<int64_t(const WarmParent&)>;
  explicit WarmParents(int64_t budget_bytes, Memory memory = &WarmParent::memory);
  ~WarmParents();

  struct Found {
    std::shared_ptr<WarmParent> parent;
    WarmParent::Place place;
  };
  void keep(const std::string& key, std::shared_ptr<WarmParent> parent);
  bool has(const std::string& key, const std::string& text);
  std::optional<Found> find(const std::string& key, const std::string& text);
  void hold(bool stop);
  int64_t budget() const { return budget_; }
  size_t count();
  void settle();  // measures memory and drops parents beyond the budget

 private:
  struct Entry {
    std::string key;
    std::shared_ptr<WarmParent> parent;
    int64_t bytes = 0;
  };
  void watch(const std::stop_token& stop);
  void drop_broken();
  void evict();

  const int64_t budget_;
  const Memory memory_;
  std::mutex mutex_;
  std::condition_variable_any wake_;
  std::list<Entry> entries_;  // the most recently used entry comes first
  int holds_ = 0;
  bool unmeasured_ = false;
  std::jthread watcher_;  // must be the last member, because its thread uses the other members
};

}  // namespace cutegen::toolchain
