// SPDX-License-Identifier: Apache-2.0
// The evaluator process: requests from the engine in, verdicts out.
//
// Contract: serve() answers until the channel ends; then whatever runs is stopped and it returns.
// Requests run on one thread, one at a time; a second one meanwhile is refused. Example:
//   return serve(wire::Channel(UniqueFd(3)));
#pragma once

#include "wire/channel.h"

namespace cutegen::eval {

int serve_evaluator(wire::Channel channel);

}  // namespace cutegen::eval
