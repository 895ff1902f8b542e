// SPDX-License-Identifier: Apache-2.0
#include "store/run_lock.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cctype>
#include <ctime>

#include "base/hash.h"
#include "base/text.h"

namespace cutegen::store {
namespace {

std::filesystem::path lock_path(const std::filesystem::path& dir, const std::string& run) {
  return dir / "locks" / (run + ".lock");
}

// Uses locks of open file descriptions. They exclude two stores of one process, too, and held() can
// probe without taking the lock.
struct flock whole_file(short type) {
  struct flock lock{};
  lock.l_type = type;
  lock.l_whence = SEEK_SET;
  return lock;
}

std::string time_text(const char* format) {
  std::time_t now = std::time(nullptr);
  std::tm parts{};
  ::gmtime_r(&now, &parts);
  std::array<char, 32> text{};
  size_t n = std::strftime(text.data(), text.size(), format, &parts);
  return {text.data(), n};
}

std::string written_pid(int fd) {
  std::array<char, 16> text{};
  ssize_t n = ::pread(fd, text.data(), text.size() - 1, 0);
  return n > 0 ? std::string(trim({text.data(), size_t(n)})) : std::string("unknown");
}

}  // namespace

Result<RunLock> RunLock::take(const std::filesystem::path& dir, const std::string& run) {
  if (!is_run_id(run)) return user_error("'" + run + "' is not a run id");
  CG_CHECK(private_dir(dir / "locks"));
  UniqueFd fd(::open(lock_path(dir, run).c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!fd) return errno_error("cannot open the lock of run " + run);
  struct flock lock = whole_file(F_WRLCK);
  if (::fcntl(fd.get(), F_OFD_SETLK, &lock) != 0) {
    if (errno != EAGAIN && errno != EACCES) return errno_error("cannot lock run " + run);
    return user_error("run " + run + " is being written by process " + written_pid(fd.get()), {},
                      "wait for it, or stop that process first");
  }
  std::string pid = std::to_string(::getpid()) + "\n";
  if (::ftruncate(fd.get(), 0) != 0 || ::pwrite(fd.get(), pid.data(), pid.size(), 0) < 0)
    return errno_error("cannot write the lock of run " + run);
  return RunLock(std::move(fd));
}

bool RunLock::held(const std::filesystem::path& dir, const std::string& run) {
  if (!is_run_id(run)) return false;
  UniqueFd fd(::open(lock_path(dir, run).c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW));
  if (!fd) return false;
  struct flock lock = whole_file(F_WRLCK);
  return ::fcntl(fd.get(), F_OFD_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
}

bool is_run_id(const std::string& text) {
  if (text.size() != 15 || text[8] != '-') return false;
  for (size_t i = 0; i < text.size(); ++i) {
    auto c = uint8_t(text[i]);
    if (i != 8 && !std::isdigit(c) && !(i > 8 && std::islower(c))) return false;
  }
  return true;
}

std::string new_run_id() {
  // People type ids by hand, so an id has no vowels and no digits that look like letters.
  constexpr std::string_view kLetters = "bcdfghjkmnpqrstvwxz23456789";
  std::array<std::byte, 6> bytes{};
  random_bytes(bytes);
  std::string id = time_text("%Y%m%d") + "-";
  for (std::byte b : bytes) id += kLetters[std::to_integer<size_t>(b) % kLetters.size()];
  return id;
}

std::string utc_now() {
  return time_text("%Y-%m-%dT%H:%M:%SZ");
}

}  // namespace cutegen::store
