// SPDX-License-Identifier: Apache-2.0
#include "toolchain/compile_memory.h"

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>

#include "base/text.h"

namespace cutegen::toolchain {
namespace {

constexpr const char* kVariable = "CUTEGEN_COMPILE_MEMORY";
constexpr int64_t kMiB = int64_t{1} << 20;
constexpr int64_t kLeast = 512 * kMiB, kMostByDefault = 8192 * kMiB;
constexpr int64_t kMostMiB = int64_t{1} << 24;  // 16 TiB

}  // namespace

Result<int64_t> compile_memory(const std::string& text) {
  if (text.empty()) {
    const int64_t all = int64_t{::sysconf(_SC_PHYS_PAGES)} * ::sysconf(_SC_PAGESIZE);
    const int64_t quarter = std::min(all / 4, kMostByDefault);
    return quarter < kLeast ? 0 : quarter;
  }
  int64_t value = 0;
  const char* end = text.data() + text.size();
  auto [stop, error] = std::from_chars(text.data(), end, value);
  const std::string unit(stop, end);
  const bool known = unit.empty() || unit == "M" || unit == "G";
  const int64_t scale = unit == "G" ? 1024 * kMiB : unit == "M" ? kMiB : 1;
  if (error != std::errc() || !known || value < 0 || value > kMostMiB * kMiB / scale)
    return user_error("'" + sanitize(text, 40) + "' is not a size of memory", "--compile-memory",
                      "give 4G, 512M, or 0 for none");
  value *= scale;
  return value < kLeast ? 0 : value;
}

Result<void> grant_compile_memory(const std::string& text, int evaluators) {
  CG_TRY(int64_t bytes, compile_memory(text));
  ::setenv(kVariable, std::to_string(bytes / std::max(evaluators, 1)).c_str(), 1);
  return {};
}

int64_t granted_compile_memory() {
  const char* granted = std::getenv(kVariable);
  return granted && *granted ? compile_memory(granted).value_or(0) : 0;
}

}  // namespace cutegen::toolchain
