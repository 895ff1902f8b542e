// SPDX-License-Identifier: Apache-2.0
#include "llm/command.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <thread>

#include "base/text.h"

namespace cutegen::llm {
namespace {

constexpr Nanoseconds kCommandPoll = std::chrono::milliseconds(100);
constexpr Nanoseconds kGrace = std::chrono::milliseconds(500);

// Runs between fork and exec, so it makes only system calls.
[[noreturn]] void become(const char* line, int in, int out, pid_t parent) {
  ::setpgid(0, 0);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(127);
  ::dup2(in, STDIN_FILENO);
  ::dup2(out, STDOUT_FILENO);
  ::signal(SIGPIPE, SIG_DFL);
  ::execl("/bin/sh", "sh", "-c", line, static_cast<char*>(nullptr));
  ::_exit(127);
}

std::string how(int status) {
  if (WIFSIGNALED(status)) return "was ended by signal " + std::to_string(WTERMSIG(status));
  return "ended with exit code " + std::to_string(WEXITSTATUS(status));
}

}  // namespace

Result<std::unique_ptr<Command>> Command::start(const std::string& line) {
  if (trim(line).empty())
    return user_error("no command is given", "--proposer", "give a command line");
  // The input is a socket, so that send() returns an error instead of raising SIGPIPE if the
  // program has ended.
  std::array<int, 2> in{}, out{};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, in.data()) != 0)
    return errno_error("socketpair");
  UniqueFd ours_in(in[0]), theirs_in(in[1]);
  if (::pipe2(out.data(), O_CLOEXEC) != 0) return errno_error("pipe");
  UniqueFd ours_out(out[0]), theirs_out(out[1]);
  pid_t parent = ::getpid();
  pid_t pid = ::fork();
  if (pid < 0) return errno_error("fork");
  if (pid == 0) become(line.c_str(), theirs_in.get(), theirs_out.get(), parent);
  ::setpgid(pid, pid);  // parent and child both call it; either may be first
  for (int fd : {ours_in.get(), ours_out.get()}) ::fcntl(fd, F_SETFL, O_NONBLOCK);
  return std::unique_ptr<Command>(new Command(line, pid, std::move(ours_in), std::move(ours_out)));
}

Command::~Command() {
  stop();
}

// Closes the input, which asks the program to end, then kills the rest of its group.
int Command::stop() {
  if (pid_ <= 0) return 0;
  in_.reset();
  int status = 0;
  auto until = Clock::now() + kGrace;
  pid_t done = 0;
  while ((done = ::waitpid(pid_, &status, WNOHANG)) == 0 && Clock::now() < until)
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  ::kill(-pid_, SIGKILL);
  if (done == 0) ::waitpid(pid_, &status, 0);
  pid_ = -1;
  out_.reset();
  return status;
}

tl::unexpected<Error> Command::ended() {
  return user_error("the command '" + sanitize(line_, 200) + "' " + how(stop()), "--proposer",
                    "it must answer every line until its input ends");
}

Result<void> Command::wait_ready(const Context& ctx, int fd, short events) {
  for (;;) {
    CG_CHECK(ctx.check("waiting for '" + sanitize(line_, 200) + "'"));
    pollfd p{.fd = fd, .events = events, .revents = 0};
    auto ms = std::chrono::ceil<std::chrono::milliseconds>(ctx.remaining(kCommandPoll)).count();
    int n = ::poll(&p, 1, int(ms));
    if (n > 0) return {};
    if (n < 0 && errno != EINTR) return errno_error("poll");
  }
}

Result<void> Command::send(const Context& ctx, std::string_view bytes) {
  while (!bytes.empty()) {
    CG_CHECK(wait_ready(ctx, in_.get(), POLLOUT));
    ssize_t n = ::send(in_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (n < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (n < 0) return ended();
    bytes.remove_prefix(size_t(n));
  }
  return {};
}

Result<std::string> Command::receive(const Context& ctx) {
  std::array<char, 1 << 16> chunk;
  for (size_t looked = 0;;) {
    size_t end = buffer_.find('\n', looked);
    if (end != std::string::npos) {
      std::string line(trim(std::string_view(buffer_).substr(0, end)));
      buffer_.erase(0, end + 1);
      looked = 0;
      if (!line.empty()) return line;
      continue;
    }
    looked = buffer_.size();
    if (looked > kMaxLine)
      return user_error(
          "the command wrote a line of more than " + std::to_string(kMaxLine) + " bytes",
          "--proposer", "write one JSON object per line");
    CG_CHECK(wait_ready(ctx, out_.get(), POLLIN));
    ssize_t n = ::read(out_.get(), chunk.data(), chunk.size());
    if (n < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (n <= 0) return ended();
    buffer_.append(chunk.data(), size_t(n));
  }
}

Result<Json> Command::call(const Context& ctx, const Json& question) {
  if (pid_ <= 0) return user_error("the command has ended before", "--proposer", "start it again");
  auto answer = [&]() -> Result<Json> {
    CG_CHECK(send(ctx, dump_json(question) + "\n"));
    CG_TRY(std::string line, receive(ctx));
    CG_TRY(Json json, parse_json(line, "the command's answer", kMaxLine));
    if (!json.is_object())
      return user_error("the command's answer is not a JSON object", "--proposer",
                        "write one JSON object per line");
    return json;
  }();
  if (!answer) stop();  // a late answer would belong to another question
  return answer;
}

}  // namespace cutegen::llm
