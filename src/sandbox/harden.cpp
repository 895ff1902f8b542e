// SPDX-License-Identifier: Apache-2.0
// Restricts the calling process, and reports what protection this machine offers.
#include <cstdlib>
#include <cstring>
#include <mutex>

#include "base/text.h"
#include "sandbox/launch.h"

extern char** environ;

namespace cutegen::sandbox {

Grade harden_self(const Limits& limits, const Isolation& isolation) {
  Grade g;
  std::vector<std::string> missing;
  auto record = [&](const char* what, int error) {
    g.held[what] = error == 0;
    if (error) missing.push_back(std::string(what) + ": " + std::strerror(error));
  };
  record("rlimits", apply_limits(limit_values(limits)));
  if (isolation.seccomp) {
    auto filter = seccomp_program(isolation, true);
    record("seccomp", install_filter(filter));
    if (isolation.no_network) g.held["network"] = g.held["seccomp"];
  }
  size_t held = 0;
  for (const auto& [what, ok] : g.held) held += ok;
  g.label = held == g.held.size() ? Protection::full
            : held                ? Protection::partial
                                  : Protection::none;
  g.missing = join(missing, "; ");
  return g;
}

Grade probe() {
  static std::once_flag once;
  static Grade grade;
  std::call_once(once, [] {
    SpawnSpec spec{.argv = {"/bin/true"}};
    spec.limits = {.cpu_seconds = 10, .file_bytes = 0, .open_files = 64, .processes = 64};
    spec.isolation = {.namespaces = true, .no_network = true, .seccomp = true};
    auto child = spawn(spec);
    if (!child) {
      grade.missing = child.error().message;
      return;
    }
    grade = child->grade();
    auto status = child->wait(Context().with_timeout(std::chrono::seconds(10)));
    if (!status || status->code != 0 || !status->exited) {
      grade.label = Protection::none;
      grade.missing = "a program that started in the sandbox failed";
    }
  });
  return grade;
}

std::vector<std::string> scrubbed_environment() {
  static const std::vector<std::string> kNames = {"PATH=",
                                                  "HOME=",
                                                  "LANG=",
                                                  "LC_ALL=",
                                                  "LC_CTYPE=",
                                                  "TZ=",
                                                  "TMPDIR=",
                                                  "OMP_NUM_THREADS=",
                                                  "CUTEGEN_SHARE=",
                                                  "CUTEGEN_BIN=",
                                                  "CUTEGEN_LOG=",
                                                  "CUTEGEN_NVRTC=",
                                                  "CUTEGEN_INCLUDE=",
                                                  "CUDA_"};
  std::vector<std::string> out;
  for (char** e = environ; e && *e; ++e) {
    std::string_view entry(*e);
    std::string_view name = entry.substr(0, entry.find('='));
    bool secret = false;
    for (const char* word : {"KEY", "TOKEN", "SECRET", "PASSW", "CREDENTIAL", "INJECTION"})
      secret = secret || name.find(word) != std::string_view::npos;
    if (!secret && starts_with_any(entry, kNames)) out.emplace_back(entry);
  }
  return out;
}

}  // namespace cutegen::sandbox
