// SPDX-License-Identifier: Apache-2.0
#include "compiler/jobs.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "base/json.h"

namespace cutegen::compiler {
namespace {

constexpr size_t kMostChildren = 16;

struct Job {
  pid_t pid;
  UniqueFd pidfd;
  wire::Channel reply;
  Clock::time_point deadline;
  bool timed_out = false;
};

Context short_while() {
  return Context().with_timeout(std::chrono::seconds(10));
}

Result<Request> read_request(wire::Frame frame) {
  if (frame.fds.size() != 1) return world_error("a request needs one descriptor, the reply socket");
  ObjectReader r(frame.body, "request#");
  Request out;
  out.reply = wire::Channel(std::move(frame.fds[0]));
  CG_TRY(std::string schema, r.string("schema"));
  CG_TRY(std::string type, r.string("type"));
  if (schema != kSchema || type != "compile")
    return world_error("an unknown request: " + schema + " " + type);
  CG_TRY(out.source, r.string("source"));
  CG_TRY(out.memory_bytes, r.integer("memory_bytes"));
  CG_TRY(out.timeout_ms, r.integer("timeout_ms"));
  CG_CHECK(r.finish());
  return out;
}

// Address space in use; the limit counts from here, since a child inherits the parsed headers.
int64_t mapped_bytes() {
  char text[64]{};
  UniqueFd statm(::open("/proc/self/statm", O_RDONLY | O_CLOEXEC));
  if (::read(statm.get(), text, sizeof text - 1) <= 0) return 0;
  int64_t pages = std::strtoll(text, nullptr, 10);
  return pages * ::sysconf(_SC_PAGESIZE);
}

void harden(Request& request) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
  sandbox::Limits limits;
  limits.memory_bytes = mapped_bytes() + request.memory_bytes;
  limits.cpu_seconds = request.timeout_ms / 1000 + 1;
  limits.open_files = 256;
  sandbox::Isolation all{.no_network = true, .seccomp = true, .deny_fork = true, .deny_open = true};
  request.grade = sandbox::harden_self(limits, all);
}

void report_death(Job& job, const siginfo_t& info) {
  bool exited = info.si_code == CLD_EXITED;
  if (exited && info.si_status == 0) return;  // it has sent its own reply
  sandbox::ExitStatus status{exited, exited ? info.si_status : 0, exited ? 0 : info.si_status};
  // The client may be gone: nobody to tell.
  (void)job.reply.send(short_while(), Json{{"died", status.text()}, {"timed_out", job.timed_out}});
}

bool ended(Job& job) {
  siginfo_t info{};
  int r = ::waitid(P_PIDFD, static_cast<id_t>(job.pidfd.get()), &info, WEXITED | WNOHANG);
  if (r != 0 || info.si_pid == 0) return false;
  report_death(job, info);
  return true;
}

int next_timeout(const std::vector<Job>& jobs) {
  auto wait = std::chrono::milliseconds(60'000);
  for (const Job& j : jobs) {
    auto left = std::chrono::ceil<std::chrono::milliseconds>(j.deadline - Clock::now());
    if (!j.timed_out) wait = std::clamp(left, std::chrono::milliseconds(0), wait);
  }
  return static_cast<int>(wait.count());
}

void stop_job(Job& job) {
  ::syscall(SYS_pidfd_send_signal, job.pidfd.get(), SIGKILL, nullptr, 0);
}

// Waits for something to happen; true when a request is there to be read.
bool wait_for_events(wire::Channel& control, std::vector<Job>& jobs) {
  std::vector<pollfd> polled;
  polled.push_back({jobs.size() < kMostChildren ? control.fd() : -1, POLLIN, 0});
  for (const Job& j : jobs) {
    polled.push_back({j.pidfd.get(), POLLIN, 0});
    polled.push_back({j.reply.fd(), 0, 0});  // only its end
  }
  ::poll(polled.data(), polled.size(), next_timeout(jobs));
  for (size_t i = 0; i < jobs.size(); ++i) {
    bool late = Clock::now() >= jobs[i].deadline && !jobs[i].timed_out;
    bool abandoned = polled[2 + 2 * i].revents & (POLLHUP | POLLERR);
    jobs[i].timed_out = jobs[i].timed_out || late;
    if (late || abandoned) stop_job(jobs[i]);
  }
  std::erase_if(jobs, [](Job& j) { return ended(j); });
  return polled[0].revents != 0;
}

[[noreturn]] void leave(std::vector<Job>& jobs) {
  for (Job& j : jobs) stop_job(j);
  std::fflush(nullptr);
  ::_exit(0);  // not exit(): NVRTC is in the middle of a call
}

}  // namespace

Request next_request(wire::Channel& control) {
  std::vector<Job> jobs;
  for (;;) {
    if (!wait_for_events(control, jobs)) continue;
    auto frame = control.receive(short_while());
    if (!frame && frame.error().kind == ErrorKind::timeout) continue;
    if (!frame) leave(jobs);
    auto request = read_request(std::move(*frame));
    if (!request) leave(jobs);  // a client that does not speak our protocol
    std::fflush(nullptr);
    pid_t pid = ::fork();
    if (pid == 0) {
      jobs.clear();
      control.close();
      harden(*request);
      return std::move(*request);
    }
    if (pid < 0) {
      (void)request->reply.send_error(short_while(), errno_error("fork").value());
      continue;
    }
    long pidfd = ::syscall(SYS_pidfd_open, pid, 0);
    auto time = std::chrono::milliseconds(request->timeout_ms);
    jobs.push_back(
        {pid, UniqueFd(static_cast<int>(pidfd)), std::move(request->reply), Clock::now() + time});
  }
}

}  // namespace cutegen::compiler
