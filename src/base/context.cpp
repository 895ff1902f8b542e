// SPDX-License-Identifier: Apache-2.0
#include "base/context.h"

#include <algorithm>

namespace cutegen {

Context Context::with_timeout(Nanoseconds timeout) const {
  Context out = *this;
  auto deadline = Clock::now() + timeout;
  if (!out.deadline_ || deadline < *out.deadline_) out.deadline_ = deadline;
  return out;
}

Nanoseconds Context::remaining(Nanoseconds most) const {
  if (!deadline_) return most;
  auto left = std::chrono::duration_cast<Nanoseconds>(*deadline_ - Clock::now());
  return std::clamp(left, Nanoseconds{0}, most);
}

Result<void> Context::check(const std::string& what) const {
  if (stopped())
    return fail({.kind = ErrorKind::cancelled, .message = "interrupted while " + what});
  if (expired()) return fail({.kind = ErrorKind::timeout, .message = "timed out while " + what});
  return {};
}

}  // namespace cutegen
