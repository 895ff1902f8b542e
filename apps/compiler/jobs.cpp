// SPDX-License-Identifier: Apache-2.0
#include "compiler/jobs.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <deque>
#include <fstream>
#include <optional>
#include <thread>
#include <vector>

#include "base/file.h"

namespace cutegen::compiler {
namespace {

constexpr size_t kMostChildren = 16;
constexpr size_t kLargeBytes = size_t{8} << 20;  // smaller mappings are not worth a system call

// A child forked ahead of its request, with its own copy of the parsed headers' pages (copying
// takes about 0.1 s). With enough cores there are two spares, because a program often has two
// modules.
struct Spare {
  pid_t pid = 0;
  UniqueFd pidfd;
  wire::Channel channel;
};

using Spares = std::deque<Spare>;

size_t wanted_spares() {
  return std::thread::hardware_concurrency() >= 8 ? 2 : 1;
}

struct Job {
  pid_t pid;
  UniqueFd pidfd;
  wire::Channel reply;
  std::chrono::milliseconds limit{0};  // of processor time
  Clock::time_point began = Clock::now();
  Clock::time_point deadline = began + limit;
  bool timed_out = false;
};

// The processor time that a child has used.
std::chrono::nanoseconds used_by(pid_t pid) {
  clockid_t clock{};
  timespec at{};
  if (::clock_getcpuclockid(pid, &clock) != 0 || ::clock_gettime(clock, &at) != 0) return {};
  return std::chrono::seconds(at.tv_sec) + std::chrono::nanoseconds(at.tv_nsec);
}

// Whether a job has used up its limit. If the machine is busy and the job has used less processor
// time than its limit, moves the deadline.
bool is_late(Job& job) {
  const auto now = Clock::now();
  if (job.timed_out || now < job.deadline) return false;
  const auto left = job.limit - used_by(job.pid);
  if (left <= std::chrono::nanoseconds(0) || now >= job.began + wire::kMostWait * job.limit)
    return true;
  job.deadline = std::min(now + std::chrono::ceil<Clock::duration>(left),
                          job.began + wire::kMostWait * job.limit);
  return false;
}

Context short_while() {
  return Context().with_timeout(std::chrono::seconds(10));
}

Result<Request> read_request(wire::Frame frame) {
  if (frame.fds.size() != 1) return world_error("a request needs one descriptor, the reply socket");
  Request out;
  out.reply = wire::Channel(std::move(frame.fds[0]));
  CG_TRY(out.call, read_json<wire::CompileCall>(frame.body));
  return out;
}

// Copies the resident pages of [begin, begin + bytes) now, which avoids page faults later. Linux
// before 5.14 lacks MADV_POPULATE_WRITE, so the page faults remain.
void own_pages(char* begin, size_t bytes) {
  const auto page = size_t(::sysconf(_SC_PAGESIZE));
  std::vector<unsigned char> resident(bytes / page);
  if (::mincore(begin, bytes, resident.data()) != 0) return;
  for (size_t i = 0; i < resident.size();) {
    size_t first = i;
    while (i < resident.size() && (resident[i] & 1)) ++i;
    if (i > first && ::madvise(begin + first * page, (i - first) * page, MADV_POPULATE_WRITE) != 0)
      return;
    if (i == first) ++i;
  }
}

// A compilation writes to half of the parsed headers' pages, which are shared after the fork. NVRTC
// maps them in thousands of adjacent pieces, so this copies adjacent pieces together.
void own_large_mappings() {
  std::ifstream maps("/proc/self/maps");
  uintptr_t first = 0, last = 0;
  auto take = [&] {
    if (last - first >= kLargeBytes)
      own_pages(reinterpret_cast<char*>(first), last - first);  // NOLINT(performance-no-int-to-ptr)
  };
  for (std::string line; std::getline(maps, line);) {
    uintptr_t begin = 0, end = 0;
    char access[5]{};
    bool read = std::sscanf(line.c_str(), "%lx-%lx %4s", &begin, &end, access) == 3;
    if (!read || std::string_view(access) != "rw-p") continue;
    if (begin != last) {
      take();
      first = begin;
    }
    last = end;
  }
  take();
}

void harden(Request& request) {
  sandbox::Limits limits;
  // Adds the memory already in use, because a child inherits the parsed headers.
  limits.memory_bytes = mapped_bytes() + request.call.memory_bytes;
  limits.cpu_seconds = request.call.timeout_ms / 1000 + 1;
  limits.open_files = 256;
  sandbox::Isolation all{.no_network = true, .seccomp = true, .deny_fork = true, .deny_open = true};
  request.grade = sandbox::harden_self(limits, all);
}

void report_death(Job& job, const siginfo_t& info) {
  bool exited = info.si_code == CLD_EXITED;
  if (exited && info.si_status == 0) return;  // the child has sent its own reply
  sandbox::ExitStatus status{
      .exited = exited, .code = exited ? info.si_status : 0, .signal = exited ? 0 : info.si_status};
  // Sending fails if the client is gone; then nobody needs the report.
  const bool used_up = !exited && info.si_status == SIGXCPU;
  const wire::CompileDied death{.died = status.text(), .timed_out = job.timed_out || used_up};
  (void)job.reply.send(short_while(), to_json(death));
}

bool ended(Job& job) {
  siginfo_t info{};
  int r = ::waitid(P_PIDFD, id_t(job.pidfd.get()), &info, WEXITED | WNOHANG);
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
  return int(wait.count());
}

void stop_job(Job& job) {
  ::syscall(SYS_pidfd_send_signal, job.pidfd.get(), SIGKILL, nullptr, 0);
}

// Waits for any event; true if a request is ready.
bool wait_for_events(wire::Channel& control, bool ready, std::vector<Job>& jobs) {
  std::vector<pollfd> polled;
  polled.push_back({.fd = ready ? control.fd() : -1, .events = POLLIN, .revents = 0});
  for (const Job& j : jobs) {
    polled.push_back({.fd = j.pidfd.get(), .events = POLLIN, .revents = 0});
    polled.push_back(
        {.fd = j.reply.fd(), .events = 0, .revents = 0});  // watch only for the end of the socket
  }
  ::poll(polled.data(), polled.size(), next_timeout(jobs));
  for (size_t i = 0; i < jobs.size(); ++i) {
    const bool late = is_late(jobs[i]);
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
  ::_exit(0);  // not exit(): NVRTC is inside a call
}

// Runs in the spare; ends the process if the server is gone.
Request wait_for_own_request(wire::Channel& channel) {
  own_large_mappings();
  auto frame = channel.receive(Context());
  if (!frame) ::_exit(kExitOk);
  auto request = read_request(std::move(*frame));
  if (!request) ::_exit(kExitInternal);  // cannot happen: the server has parsed it
  channel.close();
  harden(*request);
  return std::move(*request);
}

// Forks one more spare. In the child, waits for its request and returns it. If fork fails, the
// server tries again at the next event.
std::optional<Request> fork_spare(wire::Channel& control, Spares& spares, std::vector<Job>& jobs) {
  auto pair = wire::Channel::make_pair();
  if (!pair) return {};
  std::fflush(nullptr);
  pid_t pid = ::fork();
  if (pid == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
    unshare_offsets();
    jobs.clear();
    spares.clear();
    control.close();
    pair->first.close();
    return wait_for_own_request(pair->second);
  }
  if (pid < 0) return {};
  long pidfd = ::syscall(SYS_pidfd_open, pid, 0);
  spares.push_back({.pid = pid, .pidfd = UniqueFd(int(pidfd)), .channel = std::move(pair->first)});
  return {};
}

// Hands the frame to the oldest spare, which becomes a job. False if the client speaks another
// protocol.
bool hand_over(wire::Frame frame, Spares& spares, std::vector<Job>& jobs) {
  if (frame.fds.size() != 1) return false;
  Spare spare = std::move(spares.front());
  spares.pop_front();
  int reply = frame.fds[0].get();
  bool sent = spare.channel.send(short_while(), frame.body, {&reply, 1}).has_value();
  auto request = read_request(std::move(frame));
  if (!request) return false;
  jobs.push_back({.pid = spare.pid,
                  .pidfd = std::move(spare.pidfd),
                  .reply = std::move(request->reply),
                  .limit = std::chrono::milliseconds(request->call.timeout_ms)});
  if (!sent) stop_job(jobs.back());  // the spare is dying; the loop reports that as the job's death
  return true;
}

// Forks the child of one request and stores the request in `own` there. Returns false (in the
// server) if the client speaks another protocol.
bool fork_job(wire::Channel& control, wire::Frame frame, std::vector<Job>& jobs,
              std::optional<Request>& own) {
  auto request = read_request(std::move(frame));
  if (!request) return false;
  std::fflush(nullptr);
  pid_t pid = ::fork();
  if (pid == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
    unshare_offsets();
    jobs.clear();
    control.close();
    harden(*request);
    own = std::move(*request);
    return true;
  }
  if (pid < 0) return true;  // the reply socket closes, and the client sees that
  long pidfd = ::syscall(SYS_pidfd_open, pid, 0);
  jobs.push_back({.pid = pid,
                  .pidfd = UniqueFd(int(pidfd)),
                  .reply = std::move(request->reply),
                  .limit = std::chrono::milliseconds(request->call.timeout_ms)});
  return true;
}

Request serve_on_request(wire::Channel& control) {
  std::vector<Job> jobs;
  std::optional<Request> own;
  for (;;) {
    if (!wait_for_events(control, jobs.size() < kMostChildren, jobs)) continue;
    auto frame = control.receive(short_while());
    if (!frame && frame.error().kind == ErrorKind::timeout) continue;
    if (!frame || !fork_job(control, std::move(*frame), jobs, own)) leave(jobs);
    if (own) return std::move(*own);
  }
}

}  // namespace

int64_t mapped_bytes() {
  char text[64]{};
  UniqueFd statm(::open("/proc/self/statm", O_RDONLY | O_CLOEXEC));
  if (::read(statm.get(), text, sizeof text - 1) <= 0) return 0;
  int64_t pages = std::strtoll(text, nullptr, 10);
  return pages * ::sysconf(_SC_PAGESIZE);
}

int64_t processor_ns() {
  timespec t{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return int64_t{t.tv_sec} * 1'000'000'000 + t.tv_nsec;
}

Request next_request(wire::Channel& control, Fork when) {
  if (when == Fork::on_request) return serve_on_request(control);
  std::vector<Job> jobs;
  Spares spares;
  for (;;) {
    for (size_t n = spares.size(); n < wanted_spares() && jobs.size() + n < kMostChildren; ++n) {
      if (auto request = fork_spare(control, spares, jobs)) return std::move(*request);
      if (spares.size() == n) break;
    }
    if (!wait_for_events(control, !spares.empty(), jobs)) continue;
    auto frame = control.receive(short_while());
    if (!frame && frame.error().kind == ErrorKind::timeout) continue;
    if (!frame || !hand_over(std::move(*frame), spares, jobs)) leave(jobs);
  }
}

}  // namespace cutegen::compiler
