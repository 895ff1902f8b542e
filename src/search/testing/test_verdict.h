// SPDX-License-Identifier: Apache-2.0
// For tests: timed() returns the verdict on a correct program that takes `ns` nanoseconds.
//
// Example: timed(100)
#pragma once

#include "core/verdict.h"

namespace cutegen::search {

inline Verdict timed(double ns) {
  Verdict v;
  v.status = Status::correct;
  Timing t;
  t.time_ns = ns;
  v.timing = t;
  return v;
}

}  // namespace cutegen::search
