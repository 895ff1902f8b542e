// SPDX-License-Identifier: Apache-2.0
#include "sandbox/bubblewrap.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <mutex>

#include "base/text.h"

namespace cutegen::sandbox {
namespace {

constexpr int kShellSignal = 128;                // as shells do, bwrap reports a signal as 128 + N
constexpr const char* kTmpBytes = "4294967296";  // NVRTC keeps its heap in /tmp

std::string find_bwrap() {
  const char* path = std::getenv("PATH");
  for (const std::string& dir : split(path ? path : "/usr/bin:/bin", ':')) {
    std::string at = dir + "/bwrap";
    if (dir.starts_with('/') && ::access(at.c_str(), X_OK) == 0) return at;
  }
  return {};
}

// Whether a small program starts with everything that callers may request.
bool works() {
  SpawnSpec spec{.argv = {"/bin/true"}};
  spec.isolation = {.namespaces = true, .no_network = true, .seccomp = true};
  spec.driver = Driver::bubblewrap;
  auto child = spawn(spec);
  if (!child) return false;
  auto status = child->wait(Context().with_timeout(std::chrono::seconds(10)));
  return status && status->exited && status->code == 0;
}

std::string& found() {
  static std::string path = find_bwrap();
  return path;
}

}  // namespace

const std::string& bubblewrap() {
  static const std::string kNone;
  static std::once_flag once;
  static bool good = false;
  std::call_once(once, [] { good = !found().empty() && works(); });
  return good ? found() : kNone;
}

Result<void> apply_bubblewrap(Plan& plan, const Isolation& isolation, BubblewrapStorage& storage) {
  if (found().empty()) return world_error("there is no program 'bwrap' on the PATH");
  auto& a = storage.arguments;
  a = {found(), "--unshare-user", "--unshare-pid", "--unshare-ipc", "--unshare-uts"};
  if (isolation.no_network) a.emplace_back("--unshare-net");
  for (const char* text : {"--hostname", "sandbox", "--die-with-parent",
                           "--cap-drop", "ALL",     "--ro-bind",
                           "/",          "/",       "--dev",
                           "/dev",       "--proc",  "/proc",
                           "--perms",    "1777",    "--size",
                           kTmpBytes,    "--tmpfs", "/tmp",
                           "--perms",    "1777",    "--size",
                           kTmpBytes,    "--tmpfs", "/dev/shm"})
    a.emplace_back(text);
  for (const Readable& r : plan.readable)
    for (const std::string& text : {std::string("--ro-bind"), r.path, r.path}) a.push_back(text);
  a.emplace_back("--chdir");
  a.push_back(plan.cwd);
  if (!plan.filter.empty()) {
    size_t bytes = plan.filter.size() * sizeof(sock_filter);
    CG_TRY(storage.filter, make_memfd("seccomp", bytes));
    if (::pwrite(storage.filter.get(), plan.filter.data(), bytes, 0) != ssize_t(bytes))
      return errno_error("writing the seccomp filter");
    int number = 3;
    for (const auto& [ours, theirs] : plan.fds) number = std::max(number, theirs + 1);
    plan.fds.emplace_back(storage.filter.get(), number);
    a.emplace_back("--seccomp");
    a.push_back(std::to_string(number));
  }
  a.emplace_back("--");
  a.push_back(plan.program);
  for (size_t i = 1; i + 1 < plan.argv.size(); ++i) a.emplace_back(plan.argv[i]);
  plan.argv.clear();
  for (std::string& text : a) plan.argv.push_back(text.data());
  plan.argv.push_back(nullptr);
  plan.program = a.front();
  plan.cwd = "/";
  plan.bubblewrap = true;
  // bwrap needs its capabilities to build the mount view; it then drops them and installs the
  // filter.
  plan.filter.clear();
  plan.drop_capabilities = false;
  return {};
}

ExitStatus unwrapped(ExitStatus status) {
  if (!status.exited || status.code <= kShellSignal || status.code > kShellSignal + 64)
    return status;
  status.signal = status.code - kShellSignal;
  status.exited = false;
  status.code = 0;
  return status;
}

}  // namespace cutegen::sandbox
