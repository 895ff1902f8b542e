// SPDX-License-Identifier: Apache-2.0
// TunedTimes: what max-autotune measured, shared by the torch workers of one suite on one GPU.
//
// Contract: times only, {operator: {inputs: {precision: {hash of a kernel's text: ms}}}}, as a
// worker tells them after a build; the next build is given all of them and tries no kernel again.
// The first time that is told stays. What is no such tree, or more than the bounds, is left out: a
// task file can make others of its suite choose badly, no more. Any thread.
//
// Example: TunedTimes t; t.add(reply["tuned"]); request["tuned"] = t.all();
#pragma once

#include <mutex>

#include "base/json.h"

namespace cutegen {

class TunedTimes {
 public:
  void add(const Json& told);
  [[nodiscard]] Json all() const;

 private:
  void merge(Json& into, const Json& told, int depth);

  mutable std::mutex lock_;
  Json known_ = Json::object();
  size_t bytes_ = 0;
};

}  // namespace cutegen
