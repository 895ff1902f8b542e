// SPDX-License-Identifier: Apache-2.0
// Sandbox: start child processes with nothing they do not need, and know what protection held.
//
// Contract: spawn passes only the listed descriptors and environment; `isolation` asks for
// namespaces (user, net, pid, ipc, mount view), seccomp and rlimits; what could be had is in
// Child::grade (never an error unless spec.required). The namespaces are our own, or bubblewrap's
// where it is there and works better (bubblewrap.h); a cgroup is added where one is ours to make
// (cgroup.h). Children die with their parent (a supervisor process watches a pipe from us) and with
// all that they started. The mount view is the whole file system read-only, with an empty private
// /tmp and /dev/shm; the program's own folder, cwd, share_dir() and `readable` stay visible where
// they lie in /tmp. stdout goes with stderr unless listed in fds. harden_self applies the
// in-process part (no new privileges, seccomp without exec, rlimits), for forked children of the
// compile server.
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

namespace cutegen::sandbox {

struct Limits {
  int64_t memory_bytes = 0;  // RLIMIT_AS (never for CUDA processes); 0 = none
  int64_t cpu_seconds = 0, file_bytes = -1, open_files = 0, processes = 0;  // 0 / -1 = unchanged
  int64_t resident_bytes = 0;  // memory in use by all processes together, where a cgroup holds it
};

struct Isolation {
  bool namespaces = false;  // own user, mount (read-only view, private /tmp), pid, ipc, uts
  bool no_network = false;  // own empty network namespace
  bool seccomp = false;     // deny ptrace, mount, bpf, keyctl ...; sockets if no_network
  bool deny_fork = false;   // with seccomp: no new processes or threads
  bool deny_open = false;   // with seccomp: no opening of files for writing
  bool loopback = false;    // with no_network: the empty network's own loopback works
  // Of root: the administrator's rights stay (a GPU's counters may need them), so there is no user
  // namespace and the grade is partial at best.
  bool keep_capabilities = false;
};

struct Grade {
  // "namespaces", "network", "seccomp", "rlimits"; "bubblewrap" and "cgroup" only where they are
  std::map<std::string, bool> held;
  std::string label = "none";  // full: all that was asked; partial; none
  std::string missing;         // why something did not hold
};

// Who makes the namespaces. automatic: $CUTEGEN_SANDBOX ("own" or "bubblewrap"), else the better.
enum class Driver { automatic, own, bubblewrap };

struct SpawnSpec {
  std::vector<std::string> argv;
  std::vector<std::string> env;          // "NAME=value", the whole environment
  std::string cwd;                       // empty: / in a mount view, else the caller's
  std::vector<std::string> readable;     // kept visible though below the private /tmp
  std::vector<std::pair<int, int>> fds;  // (ours, theirs); stdin is /dev/null
  bool capture_stderr = true;            // else inherited
  Limits limits;
  Isolation isolation;
  bool required = false;  // fail when the isolation cannot be had in full
  Driver driver = Driver::automatic;
};

struct ExitStatus {
  bool exited = false;
  int code = 0, signal = 0;
  int64_t max_rss_bytes = 0;
  [[nodiscard]] std::string text() const;  // "exit code 3", "killed by SIGSEGV"
};

class Child {
 public:
  Child();
  ~Child();  // kills and reaps
  Child(Child&&) noexcept;
  Child& operator=(Child&&) noexcept;
  [[nodiscard]] pid_t pid() const;
  [[nodiscard]] bool running();
  [[nodiscard]] Result<ExitStatus> wait(const Context& ctx);
  void kill();                                   // SIGKILL to the group, then reap
  [[nodiscard]] std::string error_text() const;  // captured stderr, last 64 KiB, sanitised
  [[nodiscard]] const Grade& grade() const;

 private:
  friend Result<Child> spawn(const SpawnSpec&);
  struct State;
  std::unique_ptr<State> state_;
};

[[nodiscard]] Result<Child> spawn(const SpawnSpec& spec);
// Applies limits and the seccomp part of `isolation` to the calling process.
[[nodiscard]] Grade harden_self(const Limits& limits, const Isolation& isolation);
// What spawn could hold on this machine (runs a probe child once).
[[nodiscard]] Grade probe();
// The caller's environment without keys, tokens and loader tricks: PATH, HOME, LANG, TMPDIR,
// CUDA_*.
[[nodiscard]] std::vector<std::string> scrubbed_environment();

}  // namespace cutegen::sandbox
