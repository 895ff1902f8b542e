// SPDX-License-Identifier: Apache-2.0
// The main loop of the evaluator process: receives requests from the engine and sends replies.
//
// Contract: serve_evaluator() answers requests until the channel closes; it then cancels its work
// and returns. A request that arrives during the work on another request gets an error.
//
// Example:
//   return serve(wire::Channel(UniqueFd(3)));
#pragma once

#include "wire/channel.h"

namespace cutegen::eval {

int serve_evaluator(wire::Channel channel);

}  // namespace cutegen::eval
