// SPDX-License-Identifier: Apache-2.0
#include "base/file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <system_error>
#include <vector>

#include "base/hash.h"

namespace cutegen {
namespace fs = std::filesystem;

UniqueFd& UniqueFd::operator=(UniqueFd&& o) noexcept {
  if (this != &o) {
    reset();
    fd_ = std::exchange(o.fd_, -1);
  }
  return *this;
}

void UniqueFd::reset() {
  if (fd_ >= 0) ::close(fd_);
  fd_ = -1;
}

Result<std::string> read_file(const fs::path& path, size_t limit) {
  UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!fd)
    return user_error(
        "cannot open '" + path.string() + "': " + std::generic_category().message(errno), {},
        "check the path");
  struct stat info{};
  if (::fstat(fd.get(), &info) != 0) return errno_error("stat " + path.string());
  if (S_ISDIR(info.st_mode))
    return user_error("'" + path.string() + "' is a folder", {}, "give a file");
  if (!S_ISREG(info.st_mode)) return user_error("'" + path.string() + "' is not a regular file");
  if (size_t(info.st_size) > limit)
    return user_error("'" + path.string() + "' has " + std::to_string(info.st_size) +
                      " bytes; the limit is " + std::to_string(limit));
  std::string out(size_t(info.st_size), '\0');
  size_t done = 0;
  while (done < out.size()) {
    ssize_t n = ::read(fd.get(), out.data() + done, out.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return errno_error("read " + path.string());
    if (n == 0) break;
    done += size_t(n);
  }
  out.resize(done);
  return out;
}

Result<void> write_file(const fs::path& path, std::string_view bytes) {
  fs::path temporary = path;
  temporary += "." + random_id().substr(0, 8) + ".tmp";
  UniqueFd fd(::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (!fd) return errno_error("cannot write '" + path.string() + "'");
  while (!bytes.empty()) {
    ssize_t n = ::write(fd.get(), bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) {
      auto error = errno_error("cannot write '" + path.string() + "'");
      ::unlink(temporary.c_str());
      return error;
    }
    bytes.remove_prefix(size_t(n));
  }
  if (::fsync(fd.get()) != 0 || ::rename(temporary.c_str(), path.c_str()) != 0) {
    auto error = errno_error("cannot write '" + path.string() + "'");
    ::unlink(temporary.c_str());
    return error;
  }
  return {};
}

Result<void> private_dir(const fs::path& path) {
  std::error_code error;
  if (fs::is_directory(path, error)) return {};
  if (path.has_parent_path() && !fs::exists(path.parent_path(), error))
    CG_CHECK(private_dir(path.parent_path()));
  if (::mkdir(path.c_str(), 0700) != 0 && errno != EEXIST)
    return errno_error("cannot create '" + path.string() + "'");
  return {};
}

fs::path program_dir() {
  std::error_code error;
  return fs::read_symlink("/proc/self/exe", error).parent_path();
}

Result<fs::path> share_dir() {
  std::error_code error;
  if (const char* set = std::getenv("CUTEGEN_SHARE")) return fs::path(set);
  for (fs::path dir = program_dir(); !dir.empty() && dir != dir.root_path();
       dir = dir.parent_path())
    for (const fs::path& at : {dir, dir / "share"})
      if (fs::is_directory(at / "include" / "cutegen", error)) return at;
  return world_error("cannot find cutegen's own files (include/cutegen)",
                     "set CUTEGEN_SHARE to the folder that holds them");
}

Result<fs::path> sister_program(const std::string& name) {
  std::error_code error;
  std::vector<fs::path> places{program_dir(), program_dir().parent_path() / "bin"};
  if (const char* set = std::getenv("CUTEGEN_BIN")) places.insert(places.begin(), set);
  for (const fs::path& dir : places)
    if (fs::exists(dir / name, error)) return dir / name;
  return world_error("cannot find the program '" + name + "'",
                     "build it, or set CUTEGEN_BIN to the folder that holds it");
}

void unshare_offsets() {
  std::vector<int> inherited;  // collect first, because the loop has the folder open
  std::error_code error;
  for (const auto& entry : fs::directory_iterator("/proc/self/fd", error))
    inherited.push_back(std::atoi(entry.path().filename().c_str()));
  for (int fd : inherited) {
    struct stat status{};
    const int flags = ::fcntl(fd, F_GETFL);
    if (flags < 0 || (flags & O_ACCMODE) != O_RDWR || ::fstat(fd, &status) != 0 ||
        !S_ISREG(status.st_mode) || status.st_nlink != 0)
      continue;
    const std::string path = "/proc/self/fd/" + std::to_string(fd);
    UniqueFd own(::open(path.c_str(), O_RDWR | O_CLOEXEC));
    if (!own || ::lseek(own.get(), ::lseek(fd, 0, SEEK_CUR), SEEK_SET) < 0) continue;
    ::dup3(own.get(), fd, ::fcntl(fd, F_GETFD) & FD_CLOEXEC ? O_CLOEXEC : 0);
  }
}

Result<UniqueFd> make_memfd(const std::string& name, size_t bytes) {
  UniqueFd fd(::memfd_create(name.c_str(), MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!fd) return errno_error("memfd_create");
  if (::ftruncate(fd.get(), off_t(bytes)) != 0) return errno_error("ftruncate memfd");
  ::fcntl(fd.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW);
  return fd;
}

Mapping::~Mapping() {
  if (data_) ::munmap(data_, size_);
}

Mapping::Mapping(Mapping&& o) noexcept
    : data_(std::exchange(o.data_, nullptr)), size_(std::exchange(o.size_, 0)) {}

Mapping& Mapping::operator=(Mapping&& o) noexcept {
  std::swap(data_, o.data_);
  std::swap(size_, o.size_);
  return *this;
}

Result<Mapping> Mapping::map(int fd, size_t bytes, bool writable) {
  struct stat info{};
  if (::fstat(fd, &info) != 0) return errno_error("fstat");
  if (size_t(info.st_size) < bytes)
    return world_error("the shared memory is smaller than the sender announced");
  Mapping out;
  if (bytes == 0) return out;
  void* p = ::mmap(nullptr, bytes, PROT_READ | (writable ? PROT_WRITE : 0), MAP_SHARED, fd, 0);
  if (p == MAP_FAILED) return errno_error("mmap");
  out.data_ = static_cast<std::byte*>(p);
  out.size_ = bytes;
  return out;
}

}  // namespace cutegen
