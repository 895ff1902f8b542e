// SPDX-License-Identifier: Apache-2.0
// Cgroup: a control group (version 2) for one child, where the machine lets us make one.
//
// It holds what rlimits cannot: the memory in use by all processes of the child together, and their
// number, for root too.
// Contract: a folder is ours to use when we may write to it and its children can have the
// controllers memory and pids: the one named by $CUTEGEN_CGROUP, else the group that this process
// is in. The group is removed with the object; its processes must have ended.
//
// Example: if (auto base = cgroup_base()) { CG_TRY(Cgroup g, Cgroup::make(*base, limits)); ... }
#pragma once

#include <filesystem>
#include <optional>

#include "base/file.h"
#include "sandbox/sandbox.h"

namespace cutegen::sandbox {

class Cgroup {
 public:
  Cgroup() = default;
  Cgroup(Cgroup&& o) noexcept : path_(std::exchange(o.path_, {})), join_(std::move(o.join_)) {}
  Cgroup& operator=(Cgroup&& o) noexcept;
  ~Cgroup();
  [[nodiscard]] static Result<Cgroup> make(const std::filesystem::path& base, const Limits& limits);
  // A process that writes "0" here is in the group; -1 without a group.
  [[nodiscard]] int join_fd() const { return join_.get(); }

 private:
  std::filesystem::path path_;
  UniqueFd join_;
};

[[nodiscard]] std::optional<std::filesystem::path> cgroup_base();
// The folder of the version 2 group in the text of /proc/self/cgroup and /proc/self/mounts.
[[nodiscard]] std::optional<std::filesystem::path> own_cgroup(const std::string& groups,
                                                              const std::string& mounts);

}  // namespace cutegen::sandbox
