// SPDX-License-Identifier: Apache-2.0
// The seccomp filter denies system calls that neither the compile server nor the runner needs.
#include <fcntl.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <seccomp.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

#include "sandbox/filter.h"
#include "sandbox/launch.h"

namespace cutegen::sandbox {
namespace {

// Names, because the build machine's headers may be older than the kernel. The filter skips names
// that libseccomp does not know; on older kernels, such a call fails with ENOSYS.
constexpr const char* kNever[] = {"ptrace",
                                  "process_vm_readv",
                                  "process_vm_writev",
                                  "process_madvise",
                                  "kcmp",
                                  "pidfd_getfd",
                                  "mount",
                                  "umount2",
                                  "pivot_root",
                                  "chroot",
                                  "move_mount",
                                  "open_tree",
                                  "fsopen",
                                  "fsconfig",
                                  "fsmount",
                                  "fspick",
                                  "mount_setattr",
                                  "unshare",
                                  "setns",
                                  "bpf",
                                  "keyctl",
                                  "add_key",
                                  "request_key",
                                  "perf_event_open",
                                  "io_uring_setup",
                                  "io_uring_enter",
                                  "io_uring_register",
                                  "userfaultfd",
                                  "kexec_load",
                                  "kexec_file_load",
                                  "init_module",
                                  "finit_module",
                                  "delete_module",
                                  "reboot",
                                  "swapon",
                                  "swapoff",
                                  "acct",
                                  "quotactl",
                                  "settimeofday",
                                  "clock_settime",
                                  "clock_adjtime",
                                  "adjtimex",
                                  "sethostname",
                                  "setdomainname",
                                  "iopl",
                                  "ioperm",
                                  "syslog",
                                  "name_to_handle_at",
                                  "vhangup",
                                  "open_by_handle_at",
                                  "mknod",
                                  "mknodat",
                                  "lookup_dcookie",
                                  "fanotify_init",
                                  "modify_ldt"};
constexpr const char* kNetwork[] = {"socket", "connect", "bind", "listen", "accept", "accept4"};
constexpr const char* kExec[] = {"execve", "execveat"};
constexpr const char* kFork[] = {"fork", "vfork", "clone"};
constexpr const char* kChange[] = {
    "creat",       "truncate",     "rename", "renameat", "renameat2", "link",     "linkat",
    "symlink",     "symlinkat",    "unlink", "unlinkat", "mkdir",     "mkdirat",  "rmdir",
    "chmod",       "fchmodat",     "chown",  "lchown",   "fchownat",  "setxattr", "lsetxattr",
    "removexattr", "lremovexattr", "utime",  "utimes",   "utimensat", "futimesat"};

class Builder {
 public:
  Builder() : context_(seccomp_init(SCMP_ACT_ALLOW)) {}
  ~Builder() {
    if (context_) seccomp_release(context_);
  }
  Builder(const Builder&) = delete;

  template <size_t N>
  void deny(const char* const (&names)[N]) {
    for (const char* name : names) deny(name, EPERM);
  }
  void deny(const char* name, int error) {
    int number = seccomp_syscall_resolve_name(name);
    if (number >= 0) check(seccomp_rule_add(context_, SCMP_ACT_ERRNO(error), number, 0));
  }
  // Denies the call if (argument & mask) == value.
  void deny_if(const char* name, unsigned argument, uint64_t mask, uint64_t value) {
    int number = seccomp_syscall_resolve_name(name);
    if (number < 0) return;
    check(seccomp_rule_add(context_, SCMP_ACT_ERRNO(EPERM), number, 1,
                           SCMP_CMP(argument, SCMP_CMP_MASKED_EQ, mask, value)));
  }
  // The BPF program; empty if libseccomp refused a rule.
  std::vector<sock_filter> program() {
    std::vector<sock_filter> out;
    int fd = ok_ && context_ ? ::memfd_create("seccomp", MFD_CLOEXEC) : -1;
    if (fd < 0) return out;
    if (seccomp_export_bpf(context_, fd) == 0) {
      auto bytes = size_t(::lseek(fd, 0, SEEK_END));
      out.resize(bytes / sizeof(sock_filter));
      if (::pread(fd, out.data(), bytes, 0) != ssize_t(bytes)) out.clear();
    }
    ::close(fd);
    return out;
  }

 private:
  void check(int result) { ok_ = ok_ && result == 0; }
  scmp_filter_ctx context_;
  bool ok_ = true;
};

void deny_writing(Builder& b) {
  b.deny(kChange);
  b.deny("openat2", ENOSYS);  // seccomp cannot read its flags; the C library falls back
  for (uint64_t flag :
       {uint64_t{O_WRONLY}, uint64_t{O_RDWR}, uint64_t{O_CREAT}, uint64_t{O_TRUNC}}) {
    b.deny_if("open", 1, flag, flag);
    b.deny_if("openat", 2, flag, flag);
  }
}

}  // namespace

std::vector<sock_filter> seccomp_program(const Isolation& isolation, bool deny_exec) {
  Builder b;
  b.deny(kNever);
  // seccomp cannot read the flags of clone3. Without it the C library uses clone.
  b.deny("clone3", ENOSYS);
  if (isolation.deny_fork) {
    b.deny(kFork);
  } else {
    for (uint64_t flag : {CLONE_NEWUSER, CLONE_NEWNS, CLONE_NEWPID, CLONE_NEWNET, CLONE_NEWIPC,
                          CLONE_NEWUTS, CLONE_NEWCGROUP})
      b.deny_if("clone", 0, flag, flag);
  }
  if (isolation.no_network) b.deny(kNetwork);
  if (isolation.deny_open) deny_writing(b);
  if (deny_exec) b.deny(kExec);
  return b.program();
}

Result<std::string> filter_bytes(const Isolation& isolation) {
  auto program = seccomp_program(isolation, false);
  if (program.empty()) return world_error("libseccomp cannot build the filter");
  return std::string(reinterpret_cast<const char*>(program.data()),
                     program.size() * sizeof(sock_filter));
}

int install_filter(std::vector<sock_filter>& filter) {
  if (filter.empty()) return EINVAL;
  sock_fprog program{.len = uint16_t(filter.size()), .filter = filter.data()};
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return errno;
  if (::syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) != 0) return errno;
  return 0;
}

}  // namespace cutegen::sandbox
