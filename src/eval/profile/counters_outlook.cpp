// SPDX-License-Identifier: Apache-2.0
#include "eval/profile/counters_outlook.h"

#include <unistd.h>

#include "base/file.h"
#include "base/text.h"
#include "toolchain/ncu.h"

namespace cutegen::eval {
namespace {

constexpr const char* kInstead = "; profiles use the simulator's";

// The driver reports this as "RmProfilingAdminOnly: 1".
bool administrators_only(const std::filesystem::path& settings) {
  auto text = read_file(settings, size_t{1} << 20);
  if (!text) return false;
  for (const std::string& line : split(*text, '\n'))
    if (line.starts_with("RmProfilingAdminOnly:")) return line.ends_with("1");
  return false;
}

}  // namespace

std::string counters_outlook(const Context& ctx, bool require_sandbox,
                             const std::filesystem::path& driver_settings) {
  if (require_sandbox) return std::string("none: --require-sandbox excludes ncu") + kInstead;
  auto tool = toolchain::find_ncu(ctx);
  if (!tool) return "none: " + sanitize(tool.error().message, 200) + kInstead;
  std::string ncu = "ncu " + tool->version;
  if (!administrators_only(driver_settings)) return ncu;
  if (::geteuid() == 0) return ncu + ", as root, because the driver requires it";
  return "none: the driver lets only the administrator read them (cutegen doctor prints the "
         "remedy)" +
         std::string(kInstead);
}

}  // namespace cutegen::eval
