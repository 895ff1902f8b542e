// SPDX-License-Identifier: Apache-2.0
// Cgroup: a control group (version 2) for one child, if the machine lets us create one.
//
// Unlike rlimits, a cgroup limits the memory and the number of all of the child's processes
// together, and it binds root, too.
// Contract: cgroup_base() is the folder that $CUTEGEN_CGROUP names, else the group of this process.
// It is nullopt unless cutegen may write to the folder and its children can have the controllers
// memory and pids. The destructor removes the group; its processes must have ended.
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
  // A process that writes "0" here joins the group; -1 without a group.
  int join_fd() const { return join_.get(); }

 private:
  std::filesystem::path path_;
  UniqueFd join_;
};

std::optional<std::filesystem::path> cgroup_base();
// The folder of the version 2 group, from the text of /proc/self/cgroup and /proc/self/mounts.
std::optional<std::filesystem::path> own_cgroup(const std::string& groups,
                                                const std::string& mounts);

}  // namespace cutegen::sandbox
