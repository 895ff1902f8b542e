// SPDX-License-Identifier: Apache-2.0
// TunedTimes: the times that max-autotune measured, shared by the torch workers of one suite on one
// GPU.
//
// Contract: a tree of times, {operator: {inputs: {precision: {hash of a kernel's text: ms}}}}. A
// worker reports its times after a build; the next build receives all known times and measures none
// of these kernels again. If several workers report a kernel, the first time is kept. add() ignores
// malformed entries and those beyond its limits, so a task file can at worst make other tasks of
// its suite choose slow kernels. Thread-safe.
//
// Example: TunedTimes t; t.add(reply["tuned"]); request["tuned"] = t.all();
#pragma once

#include <mutex>

#include "base/json.h"

namespace cutegen::torch {

class TunedTimes {
 public:
  void add(const Json& told);
  Json all() const;

 private:
  void merge(Json& into, const Json& told, int depth);

  mutable std::mutex lock_;
  Json known_ = Json::object();
  size_t bytes_ = 0;
};

}  // namespace cutegen::torch
