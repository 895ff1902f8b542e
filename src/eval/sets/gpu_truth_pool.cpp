// SPDX-License-Identifier: Apache-2.0
#include "eval/sets/gpu_truth_pool.h"

#include "base/hash.h"

namespace cutegen::eval {
namespace {

bool is_of_the_task(const Error& error) {
  return error.kind == ErrorKind::unsupported || error.kind == ErrorKind::user;
}

}  // namespace

GpuTruthPool::GpuTruthPool(Source source) : source_(std::move(source)) {
  thread_ = std::thread([this] { restock(); });
}

GpuTruthPool::~GpuTruthPool() {
  {
    std::lock_guard hold(lock_);
    stop_.request_stop();
  }
  wake_.notify_all();
  thread_.join();
}

GpuSetPtr GpuTruthPool::in_stock(const SetKey& key, const std::string& program_id) {
  std::lock_guard hold(lock_);
  return stock_.take(key, program_id);
}

Result<GpuSetPtr> GpuTruthPool::make(const Context& ctx, const Task& task, const ShapeCase& shape,
                                     const std::string& family) {
  const SetKey key{.task_id = task.id, .shape = shape.name, .family = family};
  {
    std::lock_guard hold(lock_);
    auto at = refused_.find(key);
    if (at != refused_.end() && Clock::now() - at->second.second < kPatience)
      return fail(at->second.first);
  }
  if (auto needs = gpu_set_needs(task, shape)) {
    std::lock_guard hold(lock_);
    stock_.make_room(needs->set_bytes);
  }
  auto set = source_(ctx, task, shape, family, secret_seed());
  if (set || !is_of_the_task(set.error())) return set;
  std::lock_guard hold(lock_);
  refused_.insert_or_assign(key, std::pair(set.error(), Clock::now()));
  return set;
}

Result<GpuSetPtr> GpuTruthPool::draw(const Context& ctx, const Task& task, const ShapeCase& shape,
                                     const std::string& family, const std::string& program_id) {
  const SetKey key{.task_id = task.id, .shape = shape.name, .family = family};
  if (GpuSetPtr set = in_stock(key, program_id)) return set;
  std::lock_guard one_at_a_time(source_lock_);
  if (GpuSetPtr set = in_stock(key, program_id)) return set;  // another thread has computed one
  CG_TRY(GpuSetPtr set, make(ctx, task, shape, family));
  keep(set, program_id);
  return set;
}

GpuSetPtr GpuTruthPool::ready(const std::string& task_id, const std::string& shape,
                              const std::string& family, const std::string& program_id) {
  return in_stock({.task_id = task_id, .shape = shape, .family = family}, program_id);
}

Result<GpuSetPtr> GpuTruthPool::fresh(const Context& ctx, const Task& task, const ShapeCase& shape,
                                      const std::string& family) {
  std::lock_guard one_at_a_time(source_lock_);
  return make(ctx, task, shape, family);
}

void GpuTruthPool::keep(const GpuSetPtr& set, const std::string& program_id) {
  std::lock_guard hold(lock_);
  stock_.keep(set, program_id);
}

void GpuTruthPool::allow(int64_t bytes) {
  {
    std::lock_guard hold(lock_);
    stock_.allow(bytes);
  }
  wake_.notify_all();
}

void GpuTruthPool::want(const Task& task, const ShapeCase& shape,
                        const std::vector<std::string>& families) {
  {
    std::lock_guard hold(lock_);
    std::vector<Wanted> first;  // sets of the task opened last come first
    for (const std::string& family : families)
      first.push_back({.task = task, .shape = shape, .family = family});
    for (int i = 0; i < kMoreToTime && !families.empty(); ++i)
      first.push_back({.task = task, .shape = shape, .family = families.front()});
    wanted_.insert(wanted_.begin(), first.begin(), first.end());
  }
  wake_.notify_all();
}

void GpuTruthPool::forget(const std::string& task_id) {
  std::lock_guard hold(lock_);
  std::erase_if(wanted_, [&](const Wanted& w) { return w.task.id == task_id; });
  stock_.forget(task_id);
  std::erase_if(refused_, [&](const auto& r) { return r.first.task_id == task_id; });
}

void GpuTruthPool::pause() {
  std::unique_lock hold(lock_);
  paused_ = true;
  wake_.wait(hold, [this] { return !busy_; });
}

void GpuTruthPool::resume() {
  {
    std::lock_guard hold(lock_);
    paused_ = false;
  }
  wake_.notify_all();
}

void GpuTruthPool::shrink(int64_t bytes) {
  std::lock_guard hold(lock_);
  stock_.shrink(bytes);
}

int64_t GpuTruthPool::bytes() {
  std::lock_guard hold(lock_);
  return stock_.bytes();
}

int64_t GpuTruthPool::allowed() {
  std::lock_guard hold(lock_);
  return stock_.allowed();
}

// A wanted set that is missing and fits into the free memory. Call it under the lock.
const GpuTruthPool::Wanted* GpuTruthPool::missing() {
  std::map<SetKey, int64_t> wanted;  // number of wanted sets
  for (const Wanted& want : wanted_) {
    const SetKey key{.task_id = want.task.id, .shape = want.shape.name, .family = want.family};
    if (refused_.contains(key)) continue;
    auto needs = gpu_set_needs(want.task, want.shape);
    if (++wanted[key] > stock_.count(key) && needs && stock_.has_room(needs->set_bytes))
      return &want;
  }
  return nullptr;
}

void GpuTruthPool::restock() {
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
