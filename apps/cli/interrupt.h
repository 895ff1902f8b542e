// SPDX-License-Identifier: Apache-2.0
// Interrupt: Ctrl-C (SIGINT) and SIGTERM as a stop token.
//
// Contract: create one object in main. The first signal requests the stop: the command finishes the
// current event and says so. The second signal ends the process and its children at once with code
// 130. SIGPIPE is ignored, so writing to a closed pipe is an error instead of the end of the
// process.
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
  std::stop_token token() const { return stop_.get_token(); }

 private:
  std::stop_source stop_;
  std::thread listener_;
};

}  // namespace cutegen::cli
