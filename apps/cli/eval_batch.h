// SPDX-License-Identifier: Apache-2.0
// `cutegen eval --batch DIR --out DIR`: judges all programs in a folder.
//
// Contract: prints a table and the rate. Returns 0 if every entry has a verdict of any status, 130
// if interrupted, else the exit code of the first error.
//
// Example: return judge_batch(g, {.in = "proposed", .out = "verdicts"}, "", Rung::timing, options);
#pragma once

#include "cli/command.h"
#include "eval/api/client.h"

namespace cutegen::cli {

struct BatchOptions {
  std::string in, out;
  std::string devices;  // separated by commas
  bool again = false;
  AskedAccuracy asked = {};
  int evaluators = 0;  // per device; 0: up to three on a GPU, one on a simulator
};

// `seconds` applies to third-party solutions (ForeignRequest).
Result<int> judge_batch(const Globals& g, const BatchOptions& batch, const std::string& task,
                        Rung up_to, double seconds, const eval::EvaluatorOptions& options);

}  // namespace cutegen::cli
