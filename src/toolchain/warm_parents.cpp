// SPDX-License-Identifier: Apache-2.0
#include "toolchain/warm_parents.h"

#include <algorithm>

#include "base/log.h"
#include "base/text.h"
#include "base/units.h"

namespace cutegen::toolchain {
namespace {

constexpr auto kLookAgain = std::chrono::milliseconds(500);  // while a server parses a program

// Measured (docs/measurements/warm.md): parsing takes kReadingShare of a program's compile time
// after the headers. A child saves kSparedShare of its compile time on average.
constexpr double kReadingShare = 0.6, kSparedShare = 0.3;
constexpr double kHeaderSeconds = 1.5;

}  // namespace

bool warm_pays(Nanoseconds cold, int children) {
  const double seconds = std::chrono::duration<double>(cold).count();
  return children * kSparedShare * seconds > kHeaderSeconds + kReadingShare * seconds;
}

WarmParents::WarmParents(int64_t budget_bytes, Memory memory)
    : budget_(budget_bytes),
      memory_(std::move(memory)),
      watcher_([this](const std::stop_token& stop) { watch(stop); }) {}

WarmParents::~WarmParents() = default;

void WarmParents::keep(const std::string& key, std::shared_ptr<WarmParent> parent) {
  {
    std::lock_guard lock(mutex_);
    if (holds_ > 0) parent->hold(true);
    entries_.push_front({.key = key, .parent = std::move(parent), .bytes = 0});
    unmeasured_ = true;
  }
  wake_.notify_all();
}

bool WarmParents::has(const std::string& key, const std::string& text) {
  std::lock_guard lock(mutex_);
  return std::any_of(entries_.begin(), entries_.end(),
                     [&](const Entry& e) { return e.key == key && e.parent->text() == text; });
}

size_t WarmParents::count() {
  std::lock_guard lock(mutex_);
  return entries_.size();
}

std::optional<WarmParents::Found> WarmParents::find(const std::string& key,
                                                    const std::string& text) {
  std::lock_guard lock(mutex_);
  drop_broken();
  std::optional<Found> out;
  auto from = entries_.end();
  for (auto e = entries_.begin(); e != entries_.end(); ++e) {
    auto place = e->key == key ? e->parent->best(text) : std::nullopt;
    if (!place || (out && place->spent <= out->place.spent)) continue;
    out = Found{.parent = e->parent, .place = std::move(*place)};
    from = e;
  }
  if (out) entries_.splice(entries_.begin(), entries_, from);
  return out;
}

void WarmParents::hold(bool stop) {
  std::lock_guard lock(mutex_);
  const bool before = holds_ > 0;
  holds_ += stop ? 1 : -1;
  if (before == (holds_ > 0)) return;
  for (Entry& e : entries_) e.parent->hold(holds_ > 0);
  wake_.notify_all();
}

// The caller must hold the lock. Parents have compiled before, so a failure here is cutegen's or
// the machine's fault.
void WarmParents::drop_broken() {
  std::erase_if(entries_, [](const Entry& e) {
    if (e.parent->look()) return false;
    log_info("a program could not be read ahead, so its children compile from the start: {}",
             sanitize(trim(e.parent->error_text()), 300));
    return true;
  });
}

void WarmParents::settle() {
  std::list<Entry> now;
  {
    std::lock_guard lock(mutex_);
    drop_broken();
    now = entries_;
  }
  for (Entry& e : now) e.bytes = memory_(*e.parent);
  std::lock_guard lock(mutex_);
  for (Entry& e : entries_)
    for (const Entry& measured : now)
      if (measured.parent == e.parent) e.bytes = measured.bytes;
  evict();
}

void WarmParents::evict() {
  auto needed = [&] {
    int64_t sum = 0;
    for (const Entry& e : entries_) sum += e.bytes;
    return sum;
  };
  while (!entries_.empty() && needed() > budget_) {
    if (entries_.size() == 1)
      log_info("a program read ahead for its children needs {}, more than --compile-memory ({})",
               human(Bytes{entries_.back().bytes}), human(Bytes{budget_}));
    entries_.pop_back();
  }
}

// Measures memory until every program is parsed, and once more at the end.
void WarmParents::watch(const std::stop_token& stop) {
  while (!stop.stop_requested()) {
    bool reading = false;
    {
      std::unique_lock lock(mutex_);
      wake_.wait(lock, stop, [this] { return unmeasured_ && holds_ == 0; });
      wake_.wait_for(lock, stop, kLookAgain, [] { return false; });
      for (const Entry& e : entries_) reading = reading || !e.parent->complete();
      unmeasured_ = reading;
    }
    if (!stop.stop_requested()) settle();
  }
}

}  // namespace cutegen::toolchain
