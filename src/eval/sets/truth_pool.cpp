// SPDX-License-Identifier: Apache-2.0
#include "eval/sets/truth_pool.h"

#include "base/hash.h"
#include "eval/diagnosis/public_example.h"
#include "torch/foreign_worker.h"

namespace cutegen::eval {
namespace {

// Two proposed tests may have the same name but different sizes or values.
std::string pool_name(const ShapeCase& shape) {
  if (shape.kind != ShapeKind::derived) return shape.name;
  return shape.name + dump_json(write_json(shape.constants)) + dump_json(write_json(shape.values));
}

}  // namespace

TruthPool::TruthPool(Task task, SetSource source, size_t most_bytes)
    : task_(std::move(task)),
      source_(std::move(source)),
      most_bytes_(most_bytes),
      random_(secret_seed()) {
  thread_ = std::thread([this] { refill(); });
}

TruthPool::~TruthPool() {
  stop_.request_stop();
  {
    std::lock_guard hold(lock_);
    refilling_ = true;  // wakes the thread, so that it sees the stop request
  }
  wake_.notify_all();
  thread_.join();
}

Result<SetPtr> TruthPool::make(const Context& ctx, const ShapeCase& shape,
                               const std::string& family) {
  return make_from(ctx, shape, family, secret_seed());
}

Result<SetPtr> TruthPool::make_from(const Context& ctx, const ShapeCase& shape,
                                    const std::string& family, uint64_t seed) {
  std::lock_guard one_at_a_time(source_lock_);
  CG_TRY(torch::TensorSet tensors, source_(ctx, shape, family, seed));
  tensors.model_seed = torch::model_seed_of(seed, family, shape.name);
  return make_input_set(task_, shape, std::move(tensors));
}

Result<SetPtr> TruthPool::draw_public(const Context& ctx, const ShapeCase& shape,
                                      const std::string& family) {
  constexpr size_t kKept = 4;
  const Key key{pool_name(shape), family};
  {
    std::lock_guard hold(lock_);
    if (auto it = public_.find(key); it != public_.end()) return it->second;
  }
  CG_TRY(SetPtr set, make_from(ctx, shape, family, kPublicSeed));
  std::lock_guard hold(lock_);
  if (public_.size() >= kKept) public_.clear();
  return public_[key] = set;
}

Result<SetPtr> TruthPool::draw(const Context& ctx, const ShapeCase& shape,
                               const std::string& family, const std::string& program_id) {
  Key key{pool_name(shape), family};
  {
    std::lock_guard hold(lock_);
    drawn_ = drawn_ || program_id != kAdmission;
    auto& stock = stock_[key];
    std::vector<size_t> fresh;
    for (size_t i = 0; i < stock.size(); ++i)
      if (!stock[i].met.contains(program_id)) fresh.push_back(i);
    if (!fresh.empty()) {
      size_t i = fresh[random_() % fresh.size()];
      SetPtr set = stock[i].set;
      stock[i].met.insert(program_id);
      if (++stock[i].uses >= kMostUses) stock.erase(stock.begin() + std::ptrdiff_t(i));
      return set;
    }
  }
  CG_TRY(SetPtr set, make(ctx, shape, family));
  std::lock_guard hold(lock_);
  auto& stock = stock_[key];
  // A program that is judged repeatedly has used all sets, so drop the oldest.
  if (stock.size() >= 2 * kStock) stock.erase(stock.begin());
  stock.push_back({.set = set, .uses = 1, .met = {program_id}});
  make_room(key);
  return set;
}

size_t TruthPool::bytes() const {
  size_t out = 0;
  for (const auto& [key, stock] : stock_)
    for (const Stocked& s : stock) out += s.set->memory.size();
  for (const auto& [key, set] : public_) out += set->memory.size();
  return out;
}

void TruthPool::make_room(const Key& kept) {
  for (auto& [key, stock] : stock_)
    while (key != kept && !stock.empty() && bytes() > most_bytes_) stock.erase(stock.begin());
  auto& stock = stock_[kept];
  while (stock.size() > 1 && bytes() > most_bytes_) stock.erase(stock.begin());
}

void TruthPool::refill_in_background(const std::vector<std::pair<ShapeCase, std::string>>& wanted) {
  {
    std::lock_guard hold(lock_);
    wanted_ = wanted;
    refilling_ = true;
    failed_ = false;
  }
  wake_.notify_all();
}

void TruthPool::pause() {
  std::lock_guard hold(lock_);
  refilling_ = false;
}

void TruthPool::wait_until_idle() {
  std::unique_lock hold(lock_);
  wake_.wait(hold, [this] { return !busy_; });
}

void TruthPool::resume() {
  {
    std::lock_guard hold(lock_);
    refilling_ = true;
    judged_ = drawn_;
  }
  wake_.notify_all();
}

const std::pair<ShapeCase, std::string>* TruthPool::short_of() {
  if (bytes() > most_bytes_ / 2) return nullptr;  // leave memory for the sets of other families
  const size_t most = judged_ ? kStock : 1;
  for (size_t count = 1; count <= most; ++count)
    for (const auto& want : wanted_)
      if (stock_[{pool_name(want.first), want.second}].size() < count) return &want;
  return nullptr;
}

void TruthPool::refill() {
  Context ctx(stop_.get_token());
  std::unique_lock hold(lock_);
  for (;;) {
    const std::pair<ShapeCase, std::string>* next = nullptr;
    wake_.wait(hold, [&] {
      if (stop_.stop_requested()) return true;
      next = refilling_ && !failed_ ? short_of() : nullptr;
      return next != nullptr;
    });
    if (stop_.stop_requested()) return;
    auto [shape, family] = *next;
    busy_ = true;
    hold.unlock();
    auto set = make(ctx, shape, family);
    hold.lock();
    busy_ = false;
    // If this fails, draw() tries again and reports the failure.
    if (set)
      stock_[{pool_name(shape), family}].push_back({.set = *set, .uses = 0});
    else
      failed_ = true;
    wake_.notify_all();
  }
}

}  // namespace cutegen::eval
