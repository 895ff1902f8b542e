// SPDX-License-Identifier: Apache-2.0
#include "eval/runner/gpu_slot.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <cstdlib>
#include <map>
#include <mutex>
#include <thread>

namespace cutegen::eval {
namespace {

// The longest time between two attempts to take the lock.
constexpr auto kAskAgain = std::chrono::milliseconds(1);

// Every user can open the file, because every user may take the lock. The file stays empty.
Result<UniqueFd> open_file(const std::string& uuid) {
  std::string name;
  for (char c : uuid)
    if (std::isalnum(uint8_t(c)) || c == '-') name += c;
  const char* folder = std::getenv("CUTEGEN_LOCKS");
  const std::string path =
      std::string(folder && *folder ? folder : "/tmp") + "/cutegen-gpu-" + name + ".lock";
  UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  if (!file)
    file = UniqueFd(::open(path.c_str(), O_RDONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644));
  if (!file) return errno_error("cannot open the lock of the GPU, " + path);
  struct stat info{};
  if (::fstat(file.get(), &info) != 0 || !S_ISREG(info.st_mode))
    return world_error("the lock of the GPU, " + path + ", is not a plain file", "remove it");
  return file;
}

}  // namespace

// Counts the slots that each thread holds. A thread that waited for its own slot would wait for
// ever, so share() asks here first.
class GpuSlot::Holder {
 public:
  explicit Holder(std::string uuid) : key_(std::move(uuid), std::this_thread::get_id()) {
    std::scoped_lock lock(mutex());
    ++counts()[key_];
  }
  ~Holder() {
    std::scoped_lock lock(mutex());
    if (--counts()[key_] == 0) counts().erase(key_);
  }
  Holder(const Holder&) = delete;
  Holder& operator=(const Holder&) = delete;

  static bool is_this_thread(const std::string& uuid) {
    std::scoped_lock lock(mutex());
    return counts().contains({uuid, std::this_thread::get_id()});
  }

 private:
  using Key = std::pair<std::string, std::thread::id>;
  static std::mutex& mutex() {
    static std::mutex out;
    return out;
  }
  static std::map<Key, int>& counts() {
    static std::map<Key, int> out;
    return out;
  }
  const Key key_;
};

Result<UniqueFd> GpuSlot::file(const std::string& uuid) {
  return open_file(uuid);
}

Result<GpuSlot> GpuSlot::acquire(const Context& ctx, const std::string& uuid,
                                 const std::function<void()>& waiting) {
  return take(ctx, uuid, LOCK_EX, waiting);
}

Result<GpuSlot> GpuSlot::share(const Context& ctx, const std::string& uuid) {
  if (Holder::is_this_thread(uuid)) return GpuSlot(UniqueFd(), nullptr);
  return take(ctx, uuid, LOCK_SH, {});
}

// A waiting process holds a second lock, so that no later process can overtake it.
Result<GpuSlot> GpuSlot::take(const Context& ctx, const std::string& uuid, int how,
                              const std::function<void()>& waiting) {
  CG_TRY(UniqueFd door, open_file(uuid + "-next"));
  CG_TRY(UniqueFd lock, open_file(uuid));
  bool told = false;
  for (const auto& [file, kind] : {std::pair(&door, LOCK_EX), std::pair(&lock, how)}) {
    while (::flock(file->get(), kind | LOCK_NB) != 0) {
      if (errno != EWOULDBLOCK && errno != EINTR) return errno_error("locking the GPU");
      CG_CHECK(ctx.check("waiting for the GPU: another cutegen is measuring on it"));
      if (!told && waiting) waiting();
      told = true;
      std::this_thread::sleep_for(kAskAgain);
    }
  }
  return GpuSlot(std::move(lock), std::make_shared<Holder>(uuid));
}

}  // namespace cutegen::eval
