// SPDX-License-Identifier: Apache-2.0
#include "eval/baselines/memory_budget.h"

#include <algorithm>

namespace cutegen::eval {
namespace {

constexpr auto kBudgetLook = std::chrono::milliseconds(20);  // how often the Context is checked

}  // namespace

Result<MemoryBudget::Claim> MemoryBudget::claim(const Context& ctx, int64_t bytes, bool urgent) {
  bytes = std::clamp<int64_t>(bytes, 0, total_);
  std::unique_lock hold(lock_);
  urgent_ += urgent ? 1 : 0;
  auto free = [&] { return used_ + bytes <= total_ && (urgent || urgent_ == 0); };
  while (!free() && !ctx.done()) wake_.wait_for(hold, kBudgetLook);
  urgent_ -= urgent ? 1 : 0;
  if (!free()) {
    wake_.notify_all();
    CG_CHECK(ctx.check("waiting for the GPU's memory"));
  }
  used_ += bytes;
  return Claim(*this, bytes);
}

std::optional<MemoryBudget::Claim> MemoryBudget::try_claim(int64_t bytes) {
  bytes = std::clamp<int64_t>(bytes, 0, total_);
  std::lock_guard hold(lock_);
  if (used_ + bytes > total_ || urgent_ > 0) return std::nullopt;
  used_ += bytes;
  return Claim(*this, bytes);
}

void MemoryBudget::give_back(int64_t bytes) {
  std::lock_guard hold(lock_);
  used_ -= bytes;
  wake_.notify_all();
}

}  // namespace cutegen::eval
