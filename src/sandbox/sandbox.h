// SPDX-License-Identifier: Apache-2.0
// Starts child processes with only what they need, and reports the protection in effect.
//
// Contract: spawn passes only the listed descriptors and environment variables. `isolation` asks
// for namespaces (user, net, pid, ipc, mount view) and seccomp, `limits` for rlimits. Child::grade
// reports what the machine granted; missing protection is an error only if spec.required. cutegen
// creates the namespaces itself, or through bubblewrap if that works better (bubblewrap.h), and
// adds a cgroup if it may create one (cgroup.h). Children die with their parent, together with all
// processes that they started, because the supervisor watches a pipe from the parent. In the mount
// view the whole file system is read-only; /tmp and /dev/shm are private, writable and empty. The
// program's folder, cwd, share_dir() and `readable` stay visible even below /tmp. cutegen also
// captures the child's stdout, unless `fds` lists it. harden_self applies the in-process part (no
// new privileges, seccomp without exec, rlimits) to forked children of the compile server.
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
  int64_t memory_bytes = 0;  // RLIMIT_AS (never for CUDA processes); 0: unlimited
  int64_t cpu_seconds = 0, file_bytes = -1, open_files = 0, processes = 0;  // 0 or -1: unchanged
  int64_t resident_bytes = 0;  // memory of all processes together; needs a cgroup
};

struct Isolation {
  bool namespaces = false;  // own user, mount (read-only view, private /tmp), pid, ipc, uts
  bool no_network = false;  // own empty network namespace
  bool seccomp = false;     // deny ptrace, mount, bpf, keyctl ...; sockets too if no_network
  bool deny_fork = false;   // with seccomp: no new processes or threads
  bool deny_open = false;   // with seccomp: no file may be opened for writing
  bool loopback = false;    // with no_network: bring up the loopback of the empty network
  // Root keeps its capabilities, because the counters of a GPU may need them. There is then no user
  // namespace, and the grade is at most partial.
  bool keep_capabilities = false;
};

struct Grade {
  // "namespaces", "network", "seccomp" and "rlimits", if requested; "bubblewrap" and "cgroup", if
  // in use; "capabilities": false if root keeps them.
  std::map<std::string, bool> held;
  Protection label = Protection::none;  // full: everything requested
  std::string missing;                  // why some protection is missing
};

// Who creates the namespaces. automatic: $CUTEGEN_SANDBOX ("own" or "bubblewrap"), else the one
// that works better.
enum class Driver { automatic, own, bubblewrap };

struct SpawnSpec {
  std::vector<std::string> argv;
  std::vector<std::string> env;          // "NAME=value", the whole environment
  std::string cwd;                       // empty: / in a mount view, else the caller's folder
  std::vector<std::string> readable;     // paths that stay visible even below the private /tmp
  std::vector<std::pair<int, int>> fds;  // (our number, the child's number); stdin is /dev/null
  bool capture_stderr = true;            // else the child inherits it
  Limits limits;
  Isolation isolation;
  bool required = false;  // fail unless the whole isolation is in effect
  Driver driver = Driver::automatic;
};

struct ExitStatus {
  bool exited = false;
  int code = 0, signal = 0;
  int64_t max_rss_bytes = 0;
  std::string text() const;  // "exit code 3", "killed by SIGSEGV"
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
  void kill();                     // sends SIGKILL to the group, then reaps
  std::string error_text() const;  // captured stderr, last 64 KiB, sanitised
  const Grade& grade() const;

 private:
  friend Result<Child> spawn(const SpawnSpec&);
  struct State;
  std::unique_ptr<State> state_;
};

Result<Child> spawn(const SpawnSpec& spec);
// Applies limits and the seccomp part of `isolation` to the calling process.
Grade harden_self(const Limits& limits, const Isolation& isolation);
// The protection that spawn achieves on this machine (runs a probe child once).
Grade probe();
// The caller's environment without keys, tokens and loader variables. It keeps a fixed list: PATH,
// HOME, LANG, TMPDIR, CUDA_* and a few more.
std::vector<std::string> scrubbed_environment();

}  // namespace cutegen::sandbox
