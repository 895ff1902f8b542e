// SPDX-License-Identifier: Apache-2.0
// The evaluator process: reads requests of the engine, sends verdicts.
//
// Contract: serve() answers requests until the channel ends; then it stops its work and returns.
// One thread works on one request at a time; a second request meanwhile gets an error.
//
// Example:
//   return serve(wire::Channel(UniqueFd(3)));
#pragma once

#include "wire/channel.h"

namespace cutegen::eval {

int serve_evaluator(wire::Channel channel);

}  // namespace cutegen::eval
