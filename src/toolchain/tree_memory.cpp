// SPDX-License-Identifier: Apache-2.0
#include "toolchain/tree_memory.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <set>
#include <sstream>
#include <string>

namespace cutegen::toolchain {
namespace {

namespace fs = std::filesystem;

// Files in /proc have no size, so this reads them as streams.
std::string text_of(const fs::path& path) {
  std::ifstream file(path);
  std::ostringstream out;
  out << file.rdbuf();
  return out.str();
}

std::map<pid_t, pid_t> parents() {
  std::map<pid_t, pid_t> out;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator("/proc", error)) {
    const int pid = std::atoi(entry.path().filename().c_str());
    if (pid == 0) continue;
    const std::string stat = text_of(entry.path() / "stat");
    const size_t close = stat.rfind(") ");
    if (close != std::string::npos) out[pid] = std::atoi(stat.c_str() + close + 4);
  }
  return out;
}

std::optional<int64_t> proportional(const fs::path& process) {
  const std::string text = text_of(process / "smaps_rollup");
  const size_t at = text.find("\nPss:");
  if (at == std::string::npos) return std::nullopt;
  return std::strtoll(text.c_str() + at + 5, nullptr, 10) * 1024;
}

int64_t resident(const fs::path& process) {
  const std::string text = text_of(process / "statm");
  const size_t blank = text.find(' ');
  if (blank == std::string::npos) return 0;
  return std::strtoll(text.c_str() + blank, nullptr, 10) * ::sysconf(_SC_PAGESIZE);
}

}  // namespace

int64_t tree_memory(pid_t root) {
  const auto all = parents();
  std::set<pid_t> tree{root};
  for (size_t before = 0; before != tree.size();) {
    before = tree.size();
    for (const auto& [pid, parent] : all)
      if (tree.count(parent)) tree.insert(pid);
  }
  int64_t sum = 0, largest = 0;
  for (pid_t pid : tree) {
    const fs::path process = fs::path("/proc") / std::to_string(pid);
    sum += proportional(process).value_or(0);
    largest = std::max(largest, resident(process));
  }
  return sum > 0 ? sum : largest;
}

}  // namespace cutegen::toolchain
