// SPDX-License-Identifier: Apache-2.0
// cutegen-evaluator: computes verdicts for the engine, over descriptor 3; see docs/protocols.md.
#include <csignal>
#include <cstdio>

#include "eval/judge/server.h"

int main(int argc, char**) {
  if (argc > 1) {
    std::fputs("cutegen-evaluator is started by cutegen; it takes no arguments\n", stderr);
    return cutegen::kExitUser;
  }
  std::signal(SIGPIPE, SIG_IGN);
  return cutegen::eval::serve_evaluator(cutegen::wire::Channel(cutegen::UniqueFd(3)));
}
