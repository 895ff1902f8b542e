// SPDX-License-Identifier: Apache-2.0
#include "eval/sets/official_pool.h"

#include "base/hash.h"

namespace cutegen::eval {
namespace {

bool is_of_the_task(const Error& error) {
  return error.kind == ErrorKind::unsupported || error.kind == ErrorKind::user;
}

}  // namespace

OfficialPool::OfficialPool(Source source) : source_(std::move(source)) {
  thread_ = std::thread([this] { restock(); });
}

OfficialPool::~OfficialPool() {
  {
    std::lock_guard hold(lock_);
    stop_.request_stop();
  }
  wake_.notify_all();
  thread_.join();
}

OfficialSetPtr OfficialPool::in_stock(const OfficialKey& key, const std::string& program_id) {
  std::lock_guard hold(lock_);
  return stock_.take(key, program_id);
}

Result<OfficialSetPtr> OfficialPool::make(const Context& ctx, const Task& task,
                                          const ShapeCase& shape, const std::string& family) {
  const OfficialKey key{.task_id = task.id, .shape = shape.name, .family = family};
  {
    std::lock_guard hold(lock_);
    auto at = refused_.find(key);
    if (at != refused_.end() && Clock::now() - at->second.second < kPatience)
      return fail(at->second.first);
  }
  if (auto needs = official_needs(task, shape)) {
    std::lock_guard hold(lock_);
    stock_.make_room(needs->set_bytes);
  }
  auto set = source_(ctx, task, shape, family, secret_seed());
  if (set || !is_of_the_task(set.error())) return set;
  std::lock_guard hold(lock_);
  refused_.insert_or_assign(key, std::pair(set.error(), Clock::now()));
  return set;
}

Result<OfficialSetPtr> OfficialPool::draw(const Context& ctx, const Task& task,
                                          const ShapeCase& shape, const std::string& family,
                                          const std::string& program_id) {
  const OfficialKey key{.task_id = task.id, .shape = shape.name, .family = family};
  if (OfficialSetPtr set = in_stock(key, program_id)) return set;
  std::lock_guard one_at_a_time(source_lock_);
  if (OfficialSetPtr set = in_stock(key, program_id)) return set;  // another thread has made one
  CG_TRY(OfficialSetPtr set, make(ctx, task, shape, family));
  keep(set, program_id);
  return set;
}

OfficialSetPtr OfficialPool::ready(const std::string& task_id, const std::string& shape,
                                   const std::string& family, const std::string& program_id) {
  return in_stock({.task_id = task_id, .shape = shape, .family = family}, program_id);
}

Result<OfficialSetPtr> OfficialPool::fresh(const Context& ctx, const Task& task,
                                           const ShapeCase& shape, const std::string& family) {
  std::lock_guard one_at_a_time(source_lock_);
  return make(ctx, task, shape, family);
}

void OfficialPool::keep(const OfficialSetPtr& set, const std::string& program_id) {
  std::lock_guard hold(lock_);
  stock_.keep(set, program_id);
}

void OfficialPool::allow(int64_t bytes) {
  {
    std::lock_guard hold(lock_);
    stock_.allow(bytes);
  }
  wake_.notify_all();
}

void OfficialPool::want(const Task& task, const ShapeCase& shape,
                        const std::vector<std::string>& families) {
  {
    std::lock_guard hold(lock_);
    std::vector<Wanted> first;  // sets of the task opened last come first
    for (const std::string& family : families) first.push_back({task, shape, family});
    for (int i = 0; i < kMoreToTime && !families.empty(); ++i)
      first.push_back({task, shape, families.front()});
    wanted_.insert(wanted_.begin(), first.begin(), first.end());
  }
  wake_.notify_all();
}

void OfficialPool::forget(const std::string& task_id) {
  std::lock_guard hold(lock_);
  std::erase_if(wanted_, [&](const Wanted& w) { return w.task.id == task_id; });
  stock_.forget(task_id);
  std::erase_if(refused_, [&](const auto& r) { return r.first.task_id == task_id; });
}

void OfficialPool::pause() {
  std::unique_lock hold(lock_);
  paused_ = true;
  wake_.wait(hold, [this] { return !busy_; });
}

void OfficialPool::resume() {
  {
    std::lock_guard hold(lock_);
    paused_ = false;
  }
  wake_.notify_all();
}

void OfficialPool::shrink(int64_t bytes) {
  std::lock_guard hold(lock_);
  stock_.shrink(bytes);
}

int64_t OfficialPool::bytes() {
  std::lock_guard hold(lock_);
  return stock_.bytes();
}

int64_t OfficialPool::allowed() {
  std::lock_guard hold(lock_);
  return stock_.allowed();
}

// A wanted set that is missing and fits into the free memory. Call it under the lock.
const OfficialPool::Wanted* OfficialPool::missing() {
  std::map<OfficialKey, int64_t> wanted;  // number of wanted sets
  for (const Wanted& want : wanted_) {
    const OfficialKey key{.task_id = want.task.id, .shape = want.shape.name, .family = want.family};
    if (refused_.contains(key)) continue;
    auto needs = official_needs(want.task, want.shape);
    if (++wanted[key] > stock_.count(key) && needs && stock_.has_room(needs->set_bytes))
      return &want;
  }
  return nullptr;
}

void OfficialPool::restock() {
  Context ctx(stop_.get_token());
  bool failed = false;
  std::unique_lock hold(lock_);
  for (;;) {
    const Wanted* next = nullptr;
    wake_.wait(hold, [&] {
      if (stop_.stop_requested()) return true;
      next = paused_ || failed ? nullptr : missing();
      return next != nullptr;
    });
    if (stop_.stop_requested()) return;
    const Wanted want = *next;
    busy_ = true;
    hold.unlock();
    {
      std::lock_guard one_at_a_time(source_lock_);
      auto set = make(ctx, want.task, want.shape, want.family);
      if (set) keep(*set, {});
      // If this fails, draw() fails in the same way and reports it.
      failed = !set && !is_of_the_task(set.error());
    }
    hold.lock();
    busy_ = false;
    wake_.notify_all();
  }
}

}  // namespace cutegen::eval
