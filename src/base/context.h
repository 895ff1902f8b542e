// SPDX-License-Identifier: Apache-2.0
// Context: lets a caller stop and time out a blocking call.
//
// Contract: a blocking call polls done() or waits at most remaining(). When the context has ended,
// the call returns check()'s error. A Context is cheap to copy. with_timeout can only shorten the
// deadline.
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
  Context() = default;  // never stops, no deadline
  explicit Context(std::stop_token stop) : stop_(std::move(stop)) {}

  Context with_timeout(Nanoseconds timeout) const;

  bool stopped() const { return stop_.stop_requested(); }
  bool expired() const { return deadline_ && Clock::now() >= *deadline_; }
  bool done() const { return stopped() || expired(); }
  // Time left, but at most `most`. Zero after the deadline.
  Nanoseconds remaining(Nanoseconds most) const;
  // If the context has ended, an error (`cancelled` or `timeout`) that names `what`.
  Result<void> check(const std::string& what) const;

  const std::stop_token& stop() const { return stop_; }

 private:
  std::stop_token stop_;
  std::optional<Clock::time_point> deadline_;
};

}  // namespace cutegen
