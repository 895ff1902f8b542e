// SPDX-License-Identifier: Apache-2.0
// Context: lets a caller stop and time out a blocking call.
//
// Contract: a blocking call polls done() or waits at most remaining(). If the caller has stopped
// the context, or if the context's deadline has passed, the blocking call returns the error of
// check(). A Context is cheap to copy. The function with_timeout() never extends the deadline.
//
// Example:
//   CG_CHECK(ctx.check("waiting for the runner"));
//   auto reply = channel.receive(ctx.with_timeout(std::chrono::seconds(5)));
#pragma once

#include <chrono>
#include <optional>
#include <stop_token>
#include <string>

#include "base/result.h"

namespace cutegen {

using Clock = std::chrono::steady_clock;
using Nanoseconds = std::chrono::nanoseconds;

class Context {
 public:
  Context() = default;  // a context that nobody can stop and that has no deadline
  explicit Context(std::stop_token stop) : stop_(std::move(stop)) {}

  Context with_timeout(Nanoseconds timeout) const;

  bool stopped() const { return stop_.stop_requested(); }
  bool expired() const { return deadline_ && Clock::now() >= *deadline_; }
  bool done() const { return stopped() || expired(); }
  // Returns the time until the deadline (zero after the deadline), but at most `most`.
  Nanoseconds remaining(Nanoseconds most) const;
  // Returns an error that names `what`: `cancelled` if the caller has stopped the context,
  // `timeout` if the deadline has passed.
  Result<void> check(const std::string& what) const;

  const std::stop_token& stop() const { return stop_; }

 private:
  std::stop_token stop_;
  std::optional<Clock::time_point> deadline_;
};

}  // namespace cutegen
