// SPDX-License-Identifier: Apache-2.0
// The part of spawn() that runs between clone and exec, in two processes.
//
// The caller clones the supervisor, which is process 1 if there is a new pid namespace. The
// supervisor sets up the mount view, starts the program and drains its stderr into the shared page.
// It ends everything when the program ends or the caller dies (the lifeline closes). The program's
// process applies limits, drops capabilities, installs the seccomp filter and calls exec.
// Contract: run_supervisor runs in a fresh clone of a threaded program. It and all that it calls
// use only system calls: no allocation, no locks. Everything it needs is in the Plan.
#pragma once

#include <linux/filter.h>
#include <sys/resource.h>
#include <sys/types.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "sandbox/sandbox.h"

namespace cutegen::sandbox {

// The steps that can fail on the way to exec. The shared page keeps the errno of each.
enum Step : int {
  kStepCgroup,
  kStepIds,
  kStepProc,
  kStepProcessLimit,
  kStepReadOnly,
  kStepTmp,
  kStepReadable,
  kStepRlimit,
  kStepCapabilities,
  kStepSeccomp,
  kStepDescriptors,
  kStepFolder,
  kStepStart,
  kStepExec,
  kStepCount
};
const char* to_string(Step step);

inline constexpr size_t kErrorBytes = size_t{64} << 10;

// In memory that caller, supervisor and (until exec) program share.
struct SharedPage {
  std::atomic<int> ended;  // if set, status and max_rss_kb are valid
  int status;
  long max_rss_kb;
  std::atomic<pid_t> program;  // pid of the program in the supervisor's pid namespace
  std::atomic<int> errors[kStepCount];
  std::atomic<uint64_t> written;  // bytes of stderr so far; the ring keeps the last kErrorBytes
  std::atomic<int> draining;      // 1 while the supervisor copies from the pipe to the ring
  char ring[kErrorBytes];
};

struct RlimitValue {
  int resource;
  rlimit value;
};

// A folder or file that stays visible under the private /tmp.
struct Readable {
  std::string path;
  bool is_folder = false;
  std::vector<std::string> parents;  // folders to create first, outermost first
};

struct Plan {
  std::vector<char*> argv, env;
  std::string program, cwd;
  std::vector<std::pair<int, int>> fds;
  bool capture_stderr = true;
  std::vector<RlimitValue> limits;
  std::vector<sock_filter> filter;
  bool drop_capabilities = false;
  int clone_flags = 0;      // namespaces of this attempt
  bool filtered = false;    // libseccomp built a filter
  bool bubblewrap = false;  // argv starts bwrap, which creates the namespaces
  int cgroup = -1;          // cgroup.procs of the group to join
  bool mount_view = false;
  bool loopback = false;
  std::string id_map, group_map;  // lines for /proc/self/uid_map and gid_map
  std::string process_limit;      // value for the namespace's pid_max; empty: no limit
  std::vector<Readable> readable;
  SharedPage* shared = nullptr;
  int lifeline = -1, setup = -1, stderr_read = -1, stderr_write = -1;
};

// fork() without the C library's handlers, into new namespaces. Sets *pidfd in the parent.
pid_t raw_clone(int flags, int* pidfd);
[[noreturn]] void run_supervisor(Plan& plan);

// In filter.cpp: the seccomp program for an isolation; empty if libseccomp refuses a rule.
std::vector<sock_filter> seccomp_program(const Isolation& isolation, bool deny_exec);
// Returns 0 or an errno. System calls only.
int install_filter(std::vector<sock_filter>& filter);
std::vector<RlimitValue> limit_values(const Limits& limits);
int apply_limits(const std::vector<RlimitValue>& limits);

}  // namespace cutegen::sandbox
