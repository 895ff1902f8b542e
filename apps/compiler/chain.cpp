// SPDX-License-Identifier: Apache-2.0
#include "compiler/chain.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/file.h"
#include "compiler/files.h"

namespace cutegen::compiler {
namespace {

// A chain leaves a server behind if at least kLeastStep ns and 1/kShare of all CPU time were spent
// since the last one. A program that differs just before the next server cannot save that time.
constexpr int64_t kLeastStep = 80'000'000;
constexpr int64_t kShare = 6;

int pause_fd = -1;

// The head's signal handler for the pause socket: 'p' stops the head until 'r' or the end of the
// socket.
void on_pause(int) {
  const int before = errno;
  char c = 0;
  for (pollfd ready{.fd = pause_fd, .events = POLLIN, .revents = 0}; ::poll(&ready, 1, 0) == 1;) {
    if (::read(pause_fd, &c, 1) != 1) break;
    while (c == 'p') {
      const ssize_t n = ::read(pause_fd, &c, 1);
      if (n == 0 || (n < 0 && errno != EINTR)) break;
    }
    if (c == 'p') break;  // the client has closed the socket
  }
  errno = before;
}

void heed_pauses(UniqueFd socket) {
  pause_fd = socket.release();
  struct sigaction action{};
  action.sa_handler = on_pause;
  action.sa_flags = SA_RESTART;
  ::sigaction(SIGIO, &action, nullptr);
  ::fcntl(pause_fd, F_SETOWN, ::getpid());
  ::fcntl(pause_fd, F_SETFL, O_ASYNC);
  on_pause(SIGIO);  // handle what has already arrived
}

void heed_no_pauses() {
  ::signal(SIGIO, SIG_IGN);
  ::close(pause_fd);
}

Context soon() {
  return Context().with_timeout(std::chrono::seconds(10));
}

}  // namespace

Result<Chain> Chain::receive(wire::Channel control) {
  CG_TRY(wire::Frame frame, control.receive(Context().with_timeout(std::chrono::minutes(1))));
  if (frame.fds.size() != 1) return world_error("a chain needs one descriptor, the pause socket");
  Chain out;
  CG_TRY(out.call_, read_json<wire::KeepCall>(frame.body));
  out.control_ = std::move(control);
  heed_pauses(std::move(frame.fds[0]));
  return out;
}

// From here on, this process compiles the candidate, so the limits for candidates apply.
void Chain::begin() {
  sandbox::Limits limits;
  limits.memory_bytes = mapped_bytes() + call_.memory_bytes;
  limits.cpu_seconds = call_.timeout_ms / 1000 + 1;
  limits.open_files = 256;
  (void)sandbox::harden_self(limits, {.no_network = true, .seccomp = true, .deny_open = true});
  began_ns_ = parked_ns_ = processor_ns();
}

FILE* Chain::open(size_t part) {
  if (part >= parts()) return open_text("");
  if (!request_ && part == 0 && next_ == 0) begin();
  if (!request_ && part == next_ && part > 0) park(part);
  if (!request_) next_ = std::max(next_, part + 1);
  if (!request_ || part < at_) return open_text(call_.parts[part]);
  return open_text(part == at_ ? request_->call.source : "");
}

// Leaves a server behind at `part` if that is worthwhile.
void Chain::park(size_t part) {
  const int64_t now = processor_ns(), since = now - parked_ns_;
  const bool last = part + 1 == parts();
  if (!last && since < std::max(kLeastStep, (now - began_ns_) / kShare)) return;
  auto pair = wire::Channel::make_pair();
  if (!pair) return;
  const wire::Parked parked{.part = int64_t(part), .spent = Nanoseconds(now - began_ns_)};
  if (!tell(to_json(parked), &pair->first)) ::_exit(kExitOk);
  pair->first.close();
  parked_ns_ = now;
  if (last && !tell(to_json(wire::Kept{}), nullptr)) ::_exit(kExitOk);
  if (last) return serve(std::move(pair->second), part);
  std::fflush(nullptr);
  if (::fork() != 0) return;  // if fork fails, the client finds the socket closed
  ::prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
  unshare_offsets();
  serve(std::move(pair->second), part);
}

// Returns only in the child of a request.
void Chain::serve(wire::Channel own, size_t part) {
  heed_no_pauses();
  const bool head = part + 1 == parts();
  // Only the head keeps its copy: the end of that socket tells the client that the chain broke.
  if (!head) control_.close();
  Request request = next_request(own, Fork::on_request);
  control_.close();
  request_ = std::move(request);
  at_ = part;
}

bool Chain::tell(const Json& message, const wire::Channel* socket) {
  const int fd = socket ? socket->fd() : -1;
  return control_.send(soon(), message, {&fd, socket ? size_t{1} : size_t{0}}).has_value();
}

}  // namespace cutegen::compiler
