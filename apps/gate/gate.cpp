// SPDX-License-Identifier: Apache-2.0
// cutegen-gate.so: LD_PRELOAD loads it into a tool (ptxas, nvdisasm) that starts ahead of its
// input.
//
// It replaces the C library's fopen. When the tool opens its input for the N-th time (N from
// CUTEGEN_GATE_OPENING), it reports that at descriptor 5 and waits there for a byte. With
// CUTEGEN_GATE_FORKS it waits for inputs instead: each comes with its descriptors 3, 4 and 2 and a
// seccomp filter, and a fork of the tool reads it. If the other end closes, the tool exits. All
// other calls pass through. It uses only functions that even old C libraries have, because the tool
// runs with the host's C library. See toolchain/tool_spares.h and tool_server.h.
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace {

constexpr const char* kInput = "/proc/self/fd/3";
constexpr int kGate = 5, kFiles = 3;
constexpr size_t kMostInstructions = 4096;  // of a seccomp filter, as in the kernel

int gated_opening() {
  const char* set = getenv("CUTEGEN_GATE_OPENING");
  return set ? int(strtol(set, nullptr, 10)) : 0;
}

void report_waiting() {
  const char byte = 'r';
  if (write(kGate, &byte, 1) != 1) _exit(3);
}

struct Request {  // no initialisers: its only object is static
  sock_filter filter[kMostInstructions];
  size_t instructions;
  int files[kFiles];  // input, output, messages
};

// False if the other end has closed, or sends anything else than a request.
bool receive(Request& request) {
  iovec part{.iov_base = request.filter, .iov_len = sizeof request.filter};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof request.files)];
  msghdr message{};
  message.msg_iov = &part, message.msg_iovlen = 1;
  message.msg_control = control, message.msg_controllen = sizeof control;
  ssize_t size = 0;
  do size = recvmsg(kGate, &message, 0);
  while (size < 0 && errno == EINTR);
  const cmsghdr* files = CMSG_FIRSTHDR(&message);
  if (size <= 0 || !files || files->cmsg_len != CMSG_LEN(sizeof request.files)) return false;
  memcpy(request.files, CMSG_DATA(files), sizeof request.files);
  request.instructions = size_t(size) / sizeof(sock_filter);
  return true;
}

// Leaves the fork only the files of its input, and forbids it to fork again.
void take_input(Request& request) {
  close(kGate);
  const int places[kFiles] = {3, 4, STDERR_FILENO};
  for (int i = 0; i < kFiles; ++i)
    if (dup2(request.files[i], places[i]) < 0) _exit(3);
  if (dup2(places[1], STDOUT_FILENO) < 0) _exit(3);
  for (int file : request.files) close(file);
  sock_fprog program{.len = static_cast<unsigned short>(request.instructions),
                     .filter = request.filter};
  if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0) != 0) _exit(3);
}

// Returns in each fork.
void fork_for_each_input() {
  static Request request;              // too large for a stack
  prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);  // no fork may write to this process through /proc
  report_waiting();
  while (receive(request)) {
    const pid_t child = fork();
    if (child == 0) return take_input(request);
    for (int file : request.files) close(file);
    int status = 0;
    if (child < 0 || waitpid(child, &status, 0) != child) break;
    if (write(kGate, &status, sizeof status) != sizeof status) break;
  }
  _exit(3);
}

void wait_at_the_gate() {
  char byte = 0;
  if (getenv("CUTEGEN_GATE_FORKS")) return fork_for_each_input();
  report_waiting();
  if (read(kGate, &byte, 1) != 1) _exit(3);
}

int flags_of(const char* mode) {
  const bool both = strchr(mode, '+') != nullptr;
  if (mode[0] == 'r') return both ? O_RDWR : O_RDONLY;
  return O_CREAT | (mode[0] == 'w' ? O_TRUNC : O_APPEND) | (both ? O_RDWR : O_WRONLY);
}

}  // namespace

extern "C" __attribute__((visibility("default"))) FILE* fopen(const char* path, const char* mode) {
  static int openings = 0;  // the tools open their input in one thread
  if (strcmp(path, kInput) == 0 && ++openings == gated_opening()) wait_at_the_gate();
  const int fd = open(path, flags_of(mode) | O_CLOEXEC, 0666);
  return fd < 0 ? nullptr : fdopen(fd, mode);
}
