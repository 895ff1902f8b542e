// SPDX-License-Identifier: Apache-2.0
#include "sandbox/launch.h"

#include <fcntl.h>
#include <linux/capability.h>
#include <linux/mount.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#ifndef CLOSE_RANGE_CLOEXEC
#define CLOSE_RANGE_CLOEXEC (1U << 2)
#endif

namespace cutegen::sandbox {
namespace {

void note(Plan& plan, Step step, int error) {
  plan.shared->errors[step] = error;
}

int write_text(const char* path, const std::string& text) {
  int fd = ::open(path, O_WRONLY | O_CLOEXEC);
  if (fd < 0) return errno;
  ssize_t n = ::write(fd, text.data(), text.size());
  int error = n == ssize_t(text.size()) ? 0 : errno;
  ::close(fd);
  return error;
}

int set_ids(const Plan& plan) {
  if (!(plan.clone_flags & CLONE_NEWUSER)) return 0;
  int error = write_text("/proc/self/setgroups", "deny");  // a short literal: no allocation
  if (!error) error = write_text("/proc/self/uid_map", plan.id_map);
  if (!error) error = write_text("/proc/self/gid_map", plan.group_map);
  return error;
}

int set_read_only(int at, const char* path, unsigned flags) {
  mount_attr attributes{};
  attributes.attr_set = MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID;
  long r =
      ::syscall(SYS_mount_setattr, at, path, AT_RECURSIVE | flags, &attributes, sizeof attributes);
  return r == 0 ? 0 : errno;
}

// Opens a read-only mount handle for a path that must stay visible below the private /tmp.
int clone_readable(const Readable& r) {
  long tree = ::syscall(SYS_open_tree, AT_FDCWD, r.path.c_str(),
                        OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE);
  if (tree < 0) return -1;
  if (set_read_only(int(tree), "", AT_EMPTY_PATH) == 0) return int(tree);
  ::close(int(tree));
  return -1;
}

int attach_readable(const Readable& r, int tree) {
  for (const std::string& folder : r.parents)
    if (::mkdir(folder.c_str(), 0755) != 0 && errno != EEXIST) return errno;
  if (r.is_folder) {
    if (::mkdir(r.path.c_str(), 0755) != 0 && errno != EEXIST) return errno;
  } else {
    int file = ::open(r.path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
    if (file < 0) return errno;
    ::close(file);
  }
  long done =
      ::syscall(SYS_move_mount, tree, "", AT_FDCWD, r.path.c_str(), MOVE_MOUNT_F_EMPTY_PATH);
  return done == 0 ? 0 : errno;
}

// NVRTC keeps its heap in /tmp: 0.3 GB for CuTe's headers, and several times more for a matrix
// product.
int private_tmpfs(const char* path) {
  unsigned long flags = MS_NOSUID | MS_NODEV;
  return ::mount("tmpfs", path, "tmpfs", flags, "size=4g,mode=1777") == 0 ? 0 : errno;
}

// Makes the whole file system read-only, and /tmp and /dev/shm empty, private and writable.
void set_mount_view(Plan& plan) {
  constexpr size_t kMostReadable = 64;
  ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr);
  // Mount a fresh /proc, which shows this namespace only, before the read-only remount. If the
  // kernel refuses (a masked /proc in a container), the old one stays, read-only like the rest.
  if (::mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, nullptr) != 0)
    note(plan, kStepProc, errno);
  if (!plan.process_limit.empty())
    note(plan, kStepProcessLimit, write_text("/proc/sys/kernel/pid_max", plan.process_limit));
  int trees[kMostReadable];
  size_t count = std::min(plan.readable.size(), kMostReadable);
  for (size_t i = 0; i < count; ++i) trees[i] = clone_readable(plan.readable[i]);
  note(plan, kStepReadOnly, set_read_only(AT_FDCWD, "/", 0));
  int error = private_tmpfs("/tmp");
  if (!error) error = private_tmpfs("/dev/shm");
  note(plan, kStepTmp, error);
  for (size_t i = 0; i < count && !error; ++i) {
    int failed = trees[i] < 0 ? EACCES : attach_readable(plan.readable[i], trees[i]);
    if (failed) note(plan, kStepReadable, failed);
    if (trees[i] >= 0) ::close(trees[i]);
  }
}

// Enables the loopback, the only interface of a new network. If this fails, a program that needs
// the loopback fails by itself.
void raise_loopback() {
  int fd = ::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return;
  ifreq request{};
  std::memcpy(request.ifr_name, "lo", 3);
  request.ifr_flags = IFF_UP | IFF_RUNNING;
  ::ioctl(fd, SIOCSIFFLAGS, &request);
  ::close(fd);
}

int drop_capabilities() {
  ::prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
  for (int cap = 0; cap < 64; ++cap) ::prctl(PR_CAPBSET_DROP, cap, 0, 0, 0);
  __user_cap_header_struct header{.version = _LINUX_CAPABILITY_VERSION_3, .pid = 0};
  __user_cap_data_struct none[_LINUX_CAPABILITY_U32S_3]{};
  return ::syscall(SYS_capset, &header, none) == 0 ? 0 : errno;
}

// Moves the listed descriptors to their numbers and marks all others close-on-exec.
int place_descriptors(const Plan& plan) {
  constexpr size_t kMost = 32;
  int moved[kMost], top = 2;
  if (plan.fds.size() > kMost) return E2BIG;
  for (const auto& [ours, theirs] : plan.fds) top = std::max(top, theirs);
  for (size_t i = 0; i < plan.fds.size(); ++i) {
    moved[i] = ::fcntl(plan.fds[i].first, F_DUPFD_CLOEXEC, top + 1);
    if (moved[i] < 0) return errno;
  }
  int setup = ::fcntl(plan.setup, F_DUPFD_CLOEXEC, top + 1);
  int errors = plan.capture_stderr ? ::fcntl(plan.stderr_write, F_DUPFD_CLOEXEC, top + 1) : -1;
  int null = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  if (null < 0 || setup < 0) return errno;
  ::syscall(SYS_close_range, 3U, ~0U, CLOSE_RANGE_CLOEXEC);
  ::dup2(null, STDIN_FILENO);
  if (errors >= 0) {
    ::dup2(errors, STDOUT_FILENO);
    ::dup2(errors, STDERR_FILENO);
  }
  for (size_t i = 0; i < plan.fds.size(); ++i)
    if (::dup2(moved[i], plan.fds[i].second) < 0) return errno;
  return 0;
}

void reset_signals() {
  struct sigaction usual{};
  usual.sa_handler = SIG_DFL;
  for (int signal = 1; signal < NSIG; ++signal) ::sigaction(signal, &usual, nullptr);
  sigset_t none;
  sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
}

[[noreturn]] void run_program(Plan& plan, pid_t supervisor) {
  auto must = [&](Step step, int error) {
    note(plan, step, error);
    if (error) ::_exit(127);
  };
  ::setpgid(0, 0);
  // Join the cgroup before descriptors move. "0" means the writing process.
  if (plan.cgroup >= 0) note(plan, kStepCgroup, ::write(plan.cgroup, "0", 1) == 1 ? 0 : errno);
  must(kStepDescriptors, place_descriptors(plan));
  must(kStepFolder, ::chdir(plan.cwd.c_str()) == 0 ? 0 : errno);
  note(plan, kStepRlimit, apply_limits(plan.limits));
  if (plan.drop_capabilities) note(plan, kStepCapabilities, drop_capabilities());
  ::prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
  if (::getppid() != supervisor) ::_exit(127);  // the supervisor died before the line above
  reset_signals();
  if (!plan.filter.empty()) note(plan, kStepSeccomp, install_filter(plan.filter));
  ::execve(plan.program.c_str(), plan.argv.data(), plan.env.data());
  note(plan, kStepExec, errno);
  ::_exit(127);
}

// Closes all descriptors above stderr except `keep`, so that the program's peers notice its end.
void close_all_but(std::array<int, 3> keep) {
  std::sort(keep.begin(), keep.end());
  unsigned next = 3;
  for (int fd : keep) {
    if (fd < int(next)) continue;
    if (unsigned(fd) > next) ::syscall(SYS_close_range, next, unsigned(fd - 1), 0);
    next = unsigned(fd) + 1;
  }
  ::syscall(SYS_close_range, next, ~0U, 0);
}

// Copies the content of the pipe into the ring. Returns false at the end of the pipe.
bool drain(int fd, SharedPage& shared) {
  for (;;) {
    uint64_t at = shared.written;
    size_t offset = at % kErrorBytes;
    shared.draining = 1;
    ssize_t n = ::read(fd, shared.ring + offset, kErrorBytes - offset);
    if (n > 0) shared.written = at + uint64_t(n);
    shared.draining = 0;
    if (n == 0) return false;
    if (n < 0 && errno != EINTR) return errno == EAGAIN;
  }
}

// Reaps all ended children; true once the program is one of them.
bool reap(pid_t program, SharedPage& shared) {
  for (;;) {
    int status = 0;
    rusage usage{};
    pid_t pid = ::wait4(-1, &status, WNOHANG, &usage);
    if (pid <= 0) return pid < 0 && errno == ECHILD;
    if (pid != program) continue;
    shared.status = status;
    shared.max_rss_kb = usage.ru_maxrss;
    return true;
  }
}

// When the program ends, this process inherits its children and kills them. Each round kills one
// more generation.
void end_orphans() {
  for (int round = 0; round < 64; ++round) {
    int fd = ::open("/proc/thread-self/children", O_RDONLY | O_CLOEXEC);
    char text[4096];
    ssize_t n = fd < 0 ? 0 : ::read(fd, text, sizeof text);
    if (fd >= 0) ::close(fd);
    if (n <= 0) return;
    pid_t pid = 0;
    for (ssize_t i = 0; i < n; ++i) {
      if (text[i] >= '0' && text[i] <= '9') {
        pid = pid * 10 + (text[i] - '0');
      } else if (pid > 0) {
        ::kill(pid, SIGKILL);
        ::wait4(pid, nullptr, 0, nullptr);
        pid = 0;
      }
    }
  }
}

void watch(const Plan& plan, pid_t program, int pidfd) {
  SharedPage& shared = *plan.shared;
  bool open = plan.stderr_read >= 0;
  for (;;) {
    pollfd p[3] = {{.fd = plan.lifeline, .events = 0, .revents = 0},
                   {.fd = pidfd, .events = POLLIN, .revents = 0},
                   {.fd = open ? plan.stderr_read : -1, .events = POLLIN, .revents = 0}};
    ::poll(p, 3, 200);  // wake up regularly to reap orphans that became our children
    if (open && p[2].revents) open = drain(plan.stderr_read, shared);
    if (p[0].revents & (POLLHUP | POLLERR)) ::kill(-program, SIGKILL);
    if (!reap(program, shared)) continue;
    ::kill(-program, SIGKILL);
    end_orphans();
    if (open) drain(plan.stderr_read, shared);
    return;
  }
}

}  // namespace

pid_t raw_clone(int flags, int* pidfd) {
  *pidfd = -1;
  return pid_t(::syscall(SYS_clone, uint64_t(flags) | CLONE_PIDFD | SIGCHLD, 0, pidfd, 0, 0));
}

const char* to_string(Step step) {
  constexpr const char* kNames[kStepCount] = {"joining a cgroup",
                                              "mapping user ids",
                                              "a private /proc",
                                              "the process limit",
                                              "a read-only file system",
                                              "a private /tmp",
                                              "a visible folder",
                                              "resource limits",
                                              "dropping capabilities",
                                              "seccomp",
                                              "descriptors",
                                              "the working folder",
                                              "starting a process",
                                              "exec"};
  return kNames[step];
}

void run_supervisor(Plan& plan) {
  ::setpgid(0, 0);
  ::prctl(PR_SET_NAME, "cutegen-init", 0, 0, 0);
  ::prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
  int error = set_ids(plan);
  note(plan, kStepIds, error);
  if (error) ::_exit(0);  // the caller retries with fewer namespaces
  if (plan.mount_view) set_mount_view(plan);
  if (plan.clone_flags & CLONE_NEWUTS) (void)::sethostname("sandbox", 7);
  if (plan.loopback && (plan.clone_flags & CLONE_NEWNET)) raise_loopback();
  pid_t self = ::getpid();
  int pidfd = -1;
  pid_t program = raw_clone(0, &pidfd);
  if (program == 0) run_program(plan, self);
  if (program < 0) note(plan, kStepStart, errno);
  plan.shared->program = std::max(program, 0);
  // This process is a copy of the caller's memory, so nobody may read it through /proc.
  ::prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
  int null = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  for (int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) ::dup2(null, fd);
  close_all_but({plan.lifeline, pidfd, plan.stderr_read});  // closes the setup pipe too
  if (program > 0) watch(plan, program, pidfd);
  if (program > 0) plan.shared->ended = 1;
  ::_exit(0);
}

}  // namespace cutegen::sandbox
