// SPDX-License-Identifier: Apache-2.0
// WarmParents: the programs that are kept read for their children, within a budget of memory.
//
// Contract: keep() takes one in; when they need more than the budget, those used least recently go,
// the newest too if it alone needs more. Memory is what the kernel says of their processes, looked
// at in the background. find() gives the one that has most of `text` behind it. While hold() stops
// them none is read further. Thread-safe. A parent that breaks is dropped, and said once.
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

// Whether reading a program ahead repays: `cold` is what it takes to compile from its beginning.
[[nodiscard]] bool warm_pays(Nanoseconds cold, int children);

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
  [[nodiscard]] bool has(const std::string& key, const std::string& text);
  [[nodiscard]] std::optional<Found> find(const std::string& key, const std::string& text);
  void hold(bool stop);
  [[nodiscard]] int64_t budget() const { return budget_; }
  [[nodiscard]] size_t count();
  void settle();  // looks at the memory now

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
  std::jthread watcher_;  // last: it uses the rest
};

}  // namespace cutegen::toolchain
