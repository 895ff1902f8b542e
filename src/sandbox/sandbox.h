// SPDX-License-Identifier: Apache-2.0
// Starts child processes in a sandbox, and reports which protections are in effect.
//
// Contract: spawn passes only the listed descriptors and environment variables to the child.
// `isolation` requests namespaces and seccomp, and `limits` requests rlimits. Child::grade says
// which of them are in effect. A missing protection is an error only if spec.required is set.
// cutegen creates the namespaces itself, or through bubblewrap (bubblewrap.h), which it prefers
// unless it runs as root. It adds a cgroup if it may create one (cgroup.h). If the parent dies, a
// supervisor process kills the child and all processes that the child started. With namespaces, the
// child sees a read-only file system (the mount view), with a private, writable and empty /tmp and
// /dev/shm. The program's folder, cwd, share_dir() and `readable` stay visible even below /tmp.
// cutegen captures the child's stderr, and its stdout unless `fds` contains it. harden_self
// restricts the calling process with no_new_privs, seccomp without exec, and rlimits. The forked
// children of the compile server call it.
//
// Example:
//   SpawnSpec s{.argv = {runner, "--fd", "3"}, .fds = {{socket, 3}}}; CG_TRY(Child c, spawn(s));
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/context.h"
#include "base/file.h"
#include "base/protection.h"

namespace cutegen::sandbox {

struct Limits {
  int64_t memory_bytes = 0;  // RLIMIT_AS; 0: unlimited, as CUDA processes need
  // 0 sets no limit. For file_bytes, -1 sets no limit, and 0 forbids writing to files.
  int64_t cpu_seconds = 0, file_bytes = -1, open_files = 0, processes = 0;
  int64_t resident_bytes = 0;  // total memory of all processes; needs a cgroup
};

struct Isolation {
  bool namespaces = false;  // new user, mount, pid, ipc and uts namespaces
  bool no_network = false;  // a new network namespace without interfaces
  bool seccomp = false;     // deny ptrace, mount, bpf, ...; with no_network, also sockets
  bool deny_fork = false;   // needs seccomp: deny new processes and threads
  bool deny_open = false;   // needs seccomp: deny opening files for writing
  bool loopback = false;    // needs no_network: enable the loopback interface
  // If cutegen runs as root, the child keeps root's capabilities, because reading a GPU's counters
  // may need them. The child then has no user namespace, and the grade is at most `partial`.
  bool keep_capabilities = false;
};

struct Grade {
  // Whether each protection is in effect. Keys: "namespaces", "network", "seccomp" and "rlimits" if
  // requested; "bubblewrap" and "cgroup" if used; "capabilities" with the value false if root keeps
  // them.
  std::map<std::string, bool> held;
  Protection label = Protection::none;  // full: all requested protections are in effect
  std::string missing;                  // why a protection is missing
};

// Selects who creates the namespaces: cutegen (own) or bubblewrap. automatic: as $CUTEGEN_SANDBOX
// says ("own" or "bubblewrap"); otherwise own for root and bubblewrap for other users, if it works.
enum class Driver { automatic, own, bubblewrap };

struct SpawnSpec {
  std::vector<std::string> argv;
  std::vector<std::string> env;          // the whole environment, as "NAME=value"
  std::string cwd;                       // empty: / with namespaces, else the caller's folder
  std::vector<std::string> readable;     // paths below /tmp that stay visible to the child
  std::vector<std::pair<int, int>> fds;  // (caller's number, child's number); stdin is /dev/null
  bool capture_stderr = true;            // false: the child inherits the caller's stderr
  Limits limits;
  Isolation isolation;
  bool required = false;  // return an error unless all of `isolation` is in effect
  Driver driver = Driver::automatic;
};

struct ExitStatus {
  bool exited = false;
  int code = 0, signal = 0;
  int64_t max_rss_bytes = 0;
  std::string text() const;  // describes the end: "exit code 3", "killed by SIGSEGV"
};

class Child {
 public:
  Child();
  ~Child();  // kills and reaps
  Child(Child&&) noexcept;
  Child& operator=(Child&&) noexcept;
  pid_t pid() const;
  bool running();
  Result<ExitStatus> wait(const Context& ctx);
  void kill();                     // kills the child's process group and reaps the child
  std::string error_text() const;  // the last 64 KiB of captured stderr, sanitised
  const Grade& grade() const;

 private:
  friend Result<Child> spawn(const SpawnSpec&);
  struct State;
  std::unique_ptr<State> state_;
};

Result<Child> spawn(const SpawnSpec& spec);
// Applies `limits` and the seccomp filter of `isolation` to the calling process.
Grade harden_self(const Limits& limits, const Isolation& isolation);
// Returns the protection that spawn achieves on this machine. The first call runs a test child.
Grade probe();
// Returns the caller's environment without secrets and loader variables: only PATH, HOME, LANG,
// TMPDIR, CUDA_* and a few more.
std::vector<std::string> scrubbed_environment();

}  // namespace cutegen::sandbox
