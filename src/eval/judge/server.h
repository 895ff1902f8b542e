// SPDX-License-Identifier: Apache-2.0
// The main loop of the evaluator process: receives requests from the engine and sends replies.
//
// Contract: serve_evaluator() answers requests until the channel closes. Then it cancels its work
// and returns. It works on one request at a time; a second request in the meantime gets an error.
//
// Example:
//   return serve(wire::Channel(UniqueFd(3)));
#pragma once

#include "wire/channel.h"

namespace cutegen::eval {

int serve_evaluator(wire::Channel channel);

}  // namespace cutegen::eval
