// SPDX-License-Identifier: Apache-2.0
// The code that spawn() runs between clone and exec, in a supervisor process and in the program's
// process.
//
// The process that calls spawn() (the caller) clones the supervisor. If spawn() creates a pid
// namespace, the supervisor is process 1 of this namespace. The supervisor mounts the child's file
// system, starts the program and copies the program's stderr to the shared page. When the program
// ends, or when the caller dies and a pipe (the lifeline) closes, the supervisor kills all
// remaining processes of the sandbox. The program's process applies limits, drops capabilities,
// installs the seccomp filter and calls exec.
//
// Contract: run_supervisor() runs in a clone of a program with threads, so it uses only system
// calls, and must not allocate memory or take locks. The caller puts all data that run_supervisor()
// needs into the Plan.
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

// Names the steps before exec that can fail. SharedPage::errors has the errno of each step.
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

// The caller, the supervisor and (until exec) the program share the memory of a SharedPage.
struct SharedPage {
  std::atomic<int> ended;  // not 0 if status and max_rss_kb are valid
  int status;
  long max_rss_kb;
  std::atomic<pid_t> program;  // pid of the program in the supervisor's pid namespace
  std::atomic<int> errors[kStepCount];
  std::atomic<uint64_t> written;  // stderr bytes so far; `ring` has the last kErrorBytes bytes
  std::atomic<int> draining;      // 1 while the supervisor copies stderr to the ring
  char ring[kErrorBytes];
};

struct RlimitValue {
  int resource;
  rlimit value;
};

// Names a folder or file below /tmp that the child still sees, although its own /tmp is private.
struct Readable {
  std::string path;
  bool is_folder = false;
  std::vector<std::string> parents;  // parent folders to create first, from the outermost
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
  bool filtered = false;    // true if libseccomp works and `filter` is set
  bool bubblewrap = false;  // true if argv starts bwrap, which creates the namespaces
  int cgroup = -1;          // descriptor of cgroup.procs in the cgroup to join
  bool mount_view = false;
  bool loopback = false;
  std::string id_map, group_map;  // contents to write to /proc/self/uid_map and gid_map
  std::string process_limit;      // content to write to the namespace's pid_max; empty: no limit
  std::vector<Readable> readable;
  SharedPage* shared = nullptr;
  int lifeline = -1, setup = -1, stderr_read = -1, stderr_write = -1;
};

// Forks into new namespaces without calling the C library's fork handlers. Sets *pidfd in the
// parent process.
pid_t raw_clone(int flags, int* pidfd);
[[noreturn]] void run_supervisor(Plan& plan);

// Returns the seccomp program for an isolation, or an empty program if libseccomp refuses a rule.
std::vector<sock_filter> seccomp_program(const Isolation& isolation, bool deny_exec);
// Installs a seccomp filter with system calls only, and returns 0 or an errno.
int install_filter(std::vector<sock_filter>& filter);
std::vector<RlimitValue> limit_values(const Limits& limits);
int apply_limits(const std::vector<RlimitValue>& limits);

}  // namespace cutegen::sandbox
