// SPDX-License-Identifier: Apache-2.0
// Interrupt: Ctrl-C (SIGINT) and SIGTERM as a stop token.
//
// Contract: one object in main. The first signal requests the stop, so that the command ends after
// the event in hand and says so; the second ends the process at once with code 130 (its children
// die with it). SIGPIPE is ignored: a closed reader is an error of write, not a death.
//
// Example: Interrupt interrupt; Context ctx(interrupt.token());
#pragma once

#include <stop_token>
#include <thread>

namespace cutegen::cli {

class Interrupt {
 public:
  Interrupt();
  ~Interrupt();
  Interrupt(const Interrupt&) = delete;
  Interrupt& operator=(const Interrupt&) = delete;
  [[nodiscard]] std::stop_token token() const { return stop_.get_token(); }

 private:
  std::stop_source stop_;
  std::thread listener_;
};

}  // namespace cutegen::cli
