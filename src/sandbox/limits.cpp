// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cerrno>

#include "sandbox/launch.h"

namespace cutegen::sandbox {

std::vector<RlimitValue> limit_values(const Limits& limits) {
  std::vector<RlimitValue> out{{.resource = RLIMIT_CORE, .value = {.rlim_cur = 0, .rlim_max = 0}}};
  auto add = [&](int resource, int64_t value, int64_t grace = 0) {
    out.push_back({.resource = resource,
                   .value = {.rlim_cur = rlim_t(value), .rlim_max = rlim_t(value + grace)}});
  };
  if (limits.memory_bytes > 0) add(RLIMIT_AS, limits.memory_bytes);
  if (limits.cpu_seconds > 0) add(RLIMIT_CPU, limits.cpu_seconds, 1);  // SIGXCPU, then SIGKILL
  if (limits.file_bytes >= 0) add(RLIMIT_FSIZE, limits.file_bytes);
  if (limits.open_files > 0) add(RLIMIT_NOFILE, limits.open_files);
  if (limits.processes > 0) add(RLIMIT_NPROC, limits.processes);
  return out;
}

int apply_limits(const std::vector<RlimitValue>& limits) {
  int failed = 0;
  for (const RlimitValue& l : limits) {
    rlimit now{};
    ::getrlimit(__rlimit_resource_t(l.resource), &now);
    // Never raise a limit that is already in force: lowering needs no privilege.
    rlimit wanted{.rlim_cur = std::min(l.value.rlim_cur, now.rlim_max),
                  .rlim_max = std::min(l.value.rlim_max, now.rlim_max)};
    if (::setrlimit(__rlimit_resource_t(l.resource), &wanted) != 0) failed = errno;
  }
  return failed;
}

}  // namespace cutegen::sandbox
