// SPDX-License-Identifier: Apache-2.0
// Starts child processes in a sandbox, and reports which protections are in effect.
//
// Contract: spawn() passes to the child only the descriptors and environment variables that the
// SpawnSpec lists. SpawnSpec::isolation requests namespaces and seccomp, and SpawnSpec::limits
// requests rlimits. Child::grade() says which of the requested protections are in effect. If a
// protection is missing, spawn() fails only if SpawnSpec::required is set. To create the
// namespaces, cutegen prefers bubblewrap (bubblewrap.h) unless it runs as root. If cutegen may
// create a cgroup (cgroup.h), spawn() puts the child into it. If the parent process dies, a
// supervisor process kills the child and all processes that the child started.
//
// With namespaces, the child sees a read-only file system (the mount view), with a private,
// writable and empty /tmp and /dev/shm. The child still sees its program's folder, cwd, share_dir()
// and the paths in `readable`, even if they are below /tmp. The parent captures the child's stderr,
// and its stdout unless SpawnSpec::fds contains stdout.
//
// harden_self() restricts the calling process with no_new_privs, a seccomp filter that denies exec,
// and rlimits. The forked children of the compile server call harden_self().
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
  // 0 means no limit; but for file_bytes, -1 means no limit, and 0 forbids writing to files.
  int64_t cpu_seconds = 0, file_bytes = -1, open_files = 0, processes = 0;
  int64_t resident_bytes = 0;  // limits the memory of all processes together; needs a cgroup
};

struct Isolation {
  bool namespaces = false;  // new user, mount, pid, ipc and uts namespaces
  bool no_network = false;  // a new network namespace without interfaces
  bool seccomp = false;     // deny ptrace, mount, bpf, ...; with no_network, also sockets
  bool deny_fork = false;   // needs seccomp: deny new processes and threads
  bool deny_open = false;   // needs seccomp: deny opening files for writing
  bool loopback = false;    // needs no_network: enable the loopback interface
  // If true and cutegen runs as root, the child keeps root's capabilities for reading GPU counters.
  // A child with root's capabilities has no user namespace and a grade of at most `partial`.
  bool keep_capabilities = false;
};

struct Grade {
  // Maps each protection to whether it is in effect. The keys are "namespaces", "network",
  // "seccomp" and "rlimits" if requested, "bubblewrap" and "cgroup" if used, and "capabilities"
  // (with the value false) if root keeps its capabilities.
  std::map<std::string, bool> held;
  Protection label = Protection::none;  // `full`: all requested protections are in effect
  std::string missing;                  // why a protection is missing
};

// Selects who creates the namespaces. `automatic` follows $CUTEGEN_SANDBOX ("own" or "bubblewrap"),
// or else selects `own` for root and `bubblewrap` (if bubblewrap works) for other users.
enum class Driver { automatic, own, bubblewrap };

struct SpawnSpec {
  std::vector<std::string> argv;
  std::vector<std::string> env;          // the whole environment, as "NAME=value"
  std::string cwd;                       // if empty: / with namespaces, else the caller's folder
  std::vector<std::string> readable;     // paths below /tmp that stay visible to the child
  std::vector<std::pair<int, int>> fds;  // descriptors: (caller's, child's); stdin is /dev/null
  bool capture_stderr = true;            // if false, the child inherits the caller's stderr
  Limits limits;
  Isolation isolation;
  bool required = false;  // return an error unless `isolation` is fully in effect
  Driver driver = Driver::automatic;
};

struct ExitStatus {
  bool exited = false;
  int code = 0, signal = 0;
  int64_t max_rss_bytes = 0;
  std::string text() const;  // describes the end: "exit code 3" or "killed by SIGSEGV"
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
// Returns the protection that spawn() achieves on this machine; the first call runs a test child.
Grade probe();
// Returns the caller's environment without secrets and loader variables: only PATH, HOME, LANG,
// TMPDIR, CUDA_* and a few more.
std::vector<std::string> scrubbed_environment();

}  // namespace cutegen::sandbox
