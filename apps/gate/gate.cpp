// SPDX-License-Identifier: Apache-2.0
// cutegen-gate.so: LD_PRELOAD loads it into a tool (ptxas, nvdisasm) that starts ahead of its
// input.
//
// It replaces the C library's fopen. When the tool opens its input for the N-th time (N from
// CUTEGEN_GATE_OPENING), it reports that at descriptor 5 and waits there for a byte. If the other
// end closes, the tool exits. All other calls pass through. It uses only functions that even old C
// libraries have, because the tool runs with the host's C library. See toolchain/tool_spares.h.
#include <fcntl.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace {

constexpr const char* kInput = "/proc/self/fd/3";
constexpr int kGate = 5;

int gated_opening() {
  const char* set = getenv("CUTEGEN_GATE_OPENING");
  return set ? int(strtol(set, nullptr, 10)) : 0;
}

void wait_at_the_gate() {
  char byte = 'r';
  if (write(kGate, &byte, 1) != 1 || read(kGate, &byte, 1) != 1) _exit(3);
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
