// SPDX-License-Identifier: Apache-2.0
// WarmParents: the parsed programs that wait for their children, within a memory budget.
//
// Contract: keep() adds a parent. If all parents together exceed the budget, it drops the least
// recently used ones, and even the newest if that one alone exceeds the budget. A background thread
// asks the kernel how much memory their processes use. find() returns the parent that saves `text`
// the most processor time. While hold() is in effect, no parent continues to parse. A broken parent
// is dropped and logged once. Thread-safe.
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

// Whether parsing a program ahead pays. cold: how long its compile from the beginning takes.
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
  void settle();  // measures memory and evicts now

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
  std::list<Entry> entries_;  // most recently used first
  int holds_ = 0;
  bool unmeasured_ = false;
  std::jthread watcher_;  // last, because it uses the other members
};

}  // namespace cutegen::toolchain
