// SPDX-License-Identifier: Apache-2.0
// Cgroup: a control group (version 2) for one child process, if cutegen may create control groups.
//
// Unlike rlimits, a cgroup limits the total memory and the number of the child's processes, and its
// limits also apply to root.
//
// Contract: cgroup_base() returns the folder in $CUTEGEN_CGROUP or, if the variable is not set, the
// cgroup of this process. It returns nullopt if cutegen may not write to this folder, or if child
// groups cannot use the controllers memory and pids. The destructor of Cgroup removes the control
// group; all processes in it must have ended before.
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
  static Result<Cgroup> make(const std::filesystem::path& base, const Limits& limits);
  // Returns the descriptor to which a process writes "0" to join the group; -1 without a group.
  int join_fd() const { return join_.get(); }

 private:
  std::filesystem::path path_;
  UniqueFd join_;
};

std::optional<std::filesystem::path> cgroup_base();
// Finds the folder of this process's cgroup (version 2) in the texts of /proc/self/cgroup and
// /proc/self/mounts.
std::optional<std::filesystem::path> own_cgroup(const std::string& groups,
                                                const std::string& mounts);

}  // namespace cutegen::sandbox
