// SPDX-License-Identifier: Apache-2.0
// The evaluator process: reads requests of the engine, sends verdicts.
//
// Contract: serve() answers until the channel ends; then it stops its work and returns. One thread
// handles the requests one at a time. A second request meanwhile is an error.
//
// Example:
//   return serve(wire::Channel(UniqueFd(3)));
#pragma once

#include "wire/channel.h"

namespace cutegen::eval {

int serve_evaluator(wire::Channel channel);

}  // namespace cutegen::eval
