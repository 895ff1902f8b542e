// SPDX-License-Identifier: Apache-2.0
#include "sandbox/remedies.h"

#include <fstream>

namespace cutegen::sandbox {
namespace {

// Reads a number from a file; -1 if there is none.
long setting(const std::filesystem::path& path) {
  std::ifstream in(path);
  long value = -1;
  return in >> value ? value : -1;
}

std::string set(const std::string& name, const std::string& value) {
  const std::string line = name + "=" + value;
  return "sudo sysctl -w " + line + "; permanently: echo " + line +
         " | sudo tee /etc/sysctl.d/60-cutegen.conf";
}

}  // namespace

std::string allow_user_namespaces(const std::filesystem::path& settings) {
  if (setting(settings / "user/max_user_namespaces") == 0)
    return set("user.max_user_namespaces", "10000");
  if (setting(settings / "kernel/unprivileged_userns_clone") == 0)
    return set("kernel.unprivileged_userns_clone", "1");
  if (setting(settings / "kernel/apparmor_restrict_unprivileged_userns") == 1)
    return set("kernel.apparmor_restrict_unprivileged_userns", "0");
  return "sudo apt-get install bubblewrap; in a container: docker run --security-opt "
         "seccomp=unconfined --security-opt systempaths=unconfined";
}

}  // namespace cutegen::sandbox
