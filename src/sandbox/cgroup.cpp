// SPDX-License-Identifier: Apache-2.0
#include "sandbox/cgroup.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <thread>

#include "base/text.h"

namespace cutegen::sandbox {
namespace fs = std::filesystem;
namespace {

constexpr size_t kMostText = 1 << 20;

// The files of a real cgroup exist. O_CREAT is for tests, which use a plain folder as a cgroup.
Result<void> put(const fs::path& file, const std::string& text) {
  UniqueFd fd(::open(file.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
  if (!fd || ::write(fd.get(), text.data(), text.size()) != ssize_t(text.size()))
    return errno_error("writing " + file.string());
  return {};
}

bool lists(const fs::path& file, const std::string& word) {
  auto text = read_file(file, kMostText);
  if (!text) return false;
  auto words = split(replace_all(*text, "\n", " "), ' ');
  return std::find(words.begin(), words.end(), word) != words.end();
}

bool has_both(const fs::path& file) {
  return lists(file, "memory") && lists(file, "pids");
}

bool usable(const fs::path& base) {
  if (::access(base.c_str(), W_OK) != 0 || !has_both(base / "cgroup.controllers")) return false;
  if (has_both(base / "cgroup.subtree_control")) return true;
  // The kernel refuses if the group itself has processes. Then the group is not usable.
  return put(base / "cgroup.subtree_control", "+memory +pids") &&
         has_both(base / "cgroup.subtree_control");
}

}  // namespace

Cgroup& Cgroup::operator=(Cgroup&& o) noexcept {
  std::swap(path_, o.path_);
  std::swap(join_, o.join_);
  return *this;
}

Cgroup::~Cgroup() {
  if (path_.empty()) return;
  join_.reset();
  // The kernel may not have removed the last process of the group yet.
  for (int i = 0; i < 50 && ::rmdir(path_.c_str()) != 0 && errno == EBUSY; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
}

Result<Cgroup> Cgroup::make(const fs::path& base, const Limits& limits) {
  static std::atomic<int> count{0};
  Cgroup out;
  fs::path path = base / ("cutegen-" + std::to_string(::getpid()) + "-" + std::to_string(++count));
  if (::mkdir(path.c_str(), 0700) != 0) return errno_error("making the cgroup " + path.string());
  out.path_ = path;
  if (limits.resident_bytes > 0) {
    CG_CHECK(put(path / "memory.max", std::to_string(limits.resident_bytes)));
    // Without this limit the group swaps instead of ending. Not every kernel has the file.
    if (fs::exists(path / "memory.swap.max")) CG_CHECK(put(path / "memory.swap.max", "0"));
  }
  if (limits.processes > 0) CG_CHECK(put(path / "pids.max", std::to_string(limits.processes)));
  out.join_ =
      UniqueFd(::open((path / "cgroup.procs").c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
  if (!out.join_) return errno_error("opening cgroup.procs");
  return out;
}

std::optional<fs::path> own_cgroup(const std::string& groups, const std::string& mounts) {
  std::string mount_point, group;
  for (const std::string& line : split(mounts, '\n')) {
    auto fields = split(line, ' ');
    if (fields.size() > 2 && fields[2] == "cgroup2" && mount_point.empty()) mount_point = fields[1];
  }
  for (const std::string& line : split(groups, '\n'))
    if (line.starts_with("0::/")) group = line.substr(4);
  bool upward = group.find("..") != std::string::npos;
  if (mount_point.empty() || upward) return std::nullopt;
  return fs::path(mount_point) / group;
}

std::optional<fs::path> cgroup_base() {
  std::optional<fs::path> base;
  if (const char* named = std::getenv("CUTEGEN_CGROUP"); named && *named) {
    base = named;
  } else {
    auto groups = read_file("/proc/self/cgroup", kMostText);
    auto mounts = read_file("/proc/self/mounts", kMostText);
    if (groups && mounts) base = own_cgroup(*groups, *mounts);
  }
  if (!base || !usable(*base)) return std::nullopt;
  return base;
}

}  // namespace cutegen::sandbox
