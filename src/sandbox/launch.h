// SPDX-License-Identifier: Apache-2.0
// The code that spawn() runs between clone and exec, in two processes.
//
// The caller clones the supervisor process, which is process 1 of a new pid namespace, if there is
// one. The supervisor mounts the child's file system, starts the program and copies its stderr to
// the shared page. When the program ends or the caller dies (a pipe, the lifeline, closes), the
// supervisor kills all remaining processes. The program's process applies limits, drops
// capabilities, installs the seccomp filter and calls exec.
// Contract: run_supervisor runs in a clone of a program with threads, so it must not allocate
// memory or take locks. It uses only system calls. The caller prepares all data in the Plan.
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

// The steps before exec that can fail. The shared page has the errno of each step.
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

// Memory shared by the caller, the supervisor and, until exec, the program.
struct SharedPage {
  std::atomic<int> ended;  // not 0: status and max_rss_kb are valid
  int status;
  long max_rss_kb;
  std::atomic<pid_t> program;  // pid of the program in the supervisor's pid namespace
  std::atomic<int> errors[kStepCount];
  std::atomic<uint64_t> written;  // stderr bytes so far; the ring has the last kErrorBytes
  std::atomic<int> draining;      // 1 while the supervisor copies stderr to the ring
  char ring[kErrorBytes];
};

struct RlimitValue {
  int resource;
  rlimit value;
};

// A folder or file below /tmp that stays visible although the child has a private /tmp.
struct Readable {
  std::string path;
  bool is_folder = false;
  std::vector<std::string> parents;  // parent folders to create before, the outermost first
};

struct Plan {
  std::vector<char*> argv, env;
  std::string program, cwd;
  std::vector<std::pair<int, int>> fds;
  bool capture_stderr = true;
  std::vector<RlimitValue> limits;
  std::vector<sock_filter> filter;
  bool drop_capabilities = false;
  int clone_flags = 0;      // the namespaces to create
  bool filtered = false;    // `filter` is set, because libseccomp works
  bool bubblewrap = false;  // argv starts bwrap, which creates the namespaces
  int cgroup = -1;          // descriptor of cgroup.procs of the group to join
  bool mount_view = false;
  bool loopback = false;
  std::string id_map, group_map;  // contents for /proc/self/uid_map and gid_map
  std::string process_limit;      // content for pid_max of the namespace; empty: no limit
  std::vector<Readable> readable;
  SharedPage* shared = nullptr;
  int lifeline = -1, setup = -1, stderr_read = -1, stderr_write = -1;
};

// Forks into new namespaces without calling the C library's fork handlers. Sets *pidfd in the
// parent.
pid_t raw_clone(int flags, int* pidfd);
[[noreturn]] void run_supervisor(Plan& plan);

// Returns the seccomp program for an isolation. Empty if libseccomp refuses a rule.
std::vector<sock_filter> seccomp_program(const Isolation& isolation, bool deny_exec);
// Returns 0 or an errno. Uses only system calls.
int install_filter(std::vector<sock_filter>& filter);
std::vector<RlimitValue> limit_values(const Limits& limits);
int apply_limits(const std::vector<RlimitValue>& limits);

}  // namespace cutegen::sandbox
