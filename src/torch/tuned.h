// SPDX-License-Identifier: Apache-2.0
// TunedTimes: kernel times that torch.compile's max-autotune measured, shared by all torch workers
// that time one suite of tasks on one GPU.
//
// Contract: all() has the form {operator: {inputs: {precision: {hash of a kernel's text: ms}}}}. A
// worker reports its times after torch.compile has built a module. The next build, in any worker,
// receives all known times and does not measure the kernels with known times again. If several
// workers report a time for one kernel, the first report counts. The function add() ignores
// malformed entries and entries beyond its limits. With false times, a malicious task file can only
// make other tasks of the suite choose slow kernels. Thread-safe.
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
