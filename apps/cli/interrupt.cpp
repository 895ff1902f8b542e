// SPDX-License-Identifier: Apache-2.0
#include "cli/interrupt.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>

#include "base/result.h"

namespace cutegen::cli {
namespace {

// A signal handler may only use lock-free atomics and write(). A thread reads its byte and requests
// the stop, which takes locks and runs callbacks.
std::atomic<int> signals_seen{0};
std::atomic<int> pipe_in{-1};

void on_signal(int) {
  if (signals_seen.fetch_add(1) > 0) ::_exit(kExitInterrupted);
  int saved = errno;
  [[maybe_unused]] ssize_t n = ::write(pipe_in.load(), "s", 1);
  errno = saved;
}

void handle(int signal, void (*handler)(int)) {
  struct sigaction action{};
  action.sa_handler = handler;
  sigemptyset(&action.sa_mask);
  ::sigaction(signal, &action, nullptr);
}

}  // namespace

Interrupt::Interrupt() {
  int ends[2] = {-1, -1};
  if (::pipe2(ends, O_CLOEXEC) != 0) return;  // no descriptors left: keep default handling
  pipe_in = ends[1];
  listener_ = std::thread([this, out = ends[0]] {
    char byte = 0;
    ssize_t n = -1;
    do {
      n = ::read(out, &byte, 1);
    } while (n < 0 && errno == EINTR);
    if (n == 1 && byte == 's') stop_.request_stop();
    ::close(out);
  });
  handle(SIGINT, on_signal);
  handle(SIGTERM, on_signal);
  handle(SIGPIPE, SIG_IGN);
}

Interrupt::~Interrupt() {
  if (!listener_.joinable()) return;
  handle(SIGINT, SIG_DFL);
  handle(SIGTERM, SIG_DFL);
  ::close(pipe_in.exchange(-1));  // wakes the listener
  listener_.join();
}

}  // namespace cutegen::cli
