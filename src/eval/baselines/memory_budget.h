// SPDX-License-Identifier: Apache-2.0
// MemoryBudget: counts how much of a GPU's memory concurrent jobs use, and makes a job wait until
// enough memory is free.
//
// Contract: claim() waits until the bytes are free, or until the Context is cancelled or times out.
// A request for more than the total memory claims the total. While an urgent request waits, all
// others wait, too. The destructor of a Claim returns its bytes to the budget.
//
// Example: CG_TRY(MemoryBudget::Claim held, budget.claim(ctx, bytes)); work();
#pragma once

#include <condition_variable>
#include <mutex>
#include <optional>

#include "base/context.h"

namespace cutegen::eval {

class MemoryBudget {
 public:
  explicit MemoryBudget(int64_t bytes) : total_(bytes) {}

  class Claim {
   public:
    Claim(MemoryBudget& budget, int64_t bytes) : budget_(&budget), bytes_(bytes) {}
    Claim(Claim&& o) noexcept : budget_(std::exchange(o.budget_, nullptr)), bytes_(o.bytes_) {}
    Claim& operator=(Claim&&) = delete;
    ~Claim() {
      if (budget_) budget_->give_back(bytes_);
    }

   private:
    MemoryBudget* budget_;
    int64_t bytes_;
  };

  Result<Claim> claim(const Context& ctx, int64_t bytes, bool urgent = false);
  // Returns nullopt without waiting if the bytes are not free.
  std::optional<Claim> try_claim(int64_t bytes);
  int64_t total() const { return total_; }

 private:
  void give_back(int64_t bytes);

  const int64_t total_;
  std::mutex lock_;
  std::condition_variable wake_;
  int64_t used_ = 0;
  int urgent_ = 0;  // number of urgent requests that wait
};

}  // namespace cutegen::eval
