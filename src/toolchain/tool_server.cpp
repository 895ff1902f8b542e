// SPDX-License-Identifier: Apache-2.0
#include "toolchain/tool_server.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include <array>
#include <cstring>

#include "base/log.h"
#include "base/text.h"
#include "sandbox/filter.h"

namespace cutegen::toolchain {
namespace {

constexpr int kMostFailures = 2;
constexpr auto kStopCheck = std::chrono::milliseconds(20);
constexpr size_t kMostLog = size_t{64} << 10;

// Waits until the socket has something to read; false at the end of the context.
bool readable(const Context& ctx, int socket) {
  while (!ctx.done()) {
    pollfd polled{.fd = socket, .events = POLLIN, .revents = 0};
    auto most = ctx.stop().stop_possible() ? Nanoseconds(kStopCheck) : std::chrono::hours(1);
    auto wait = std::chrono::ceil<std::chrono::milliseconds>(ctx.remaining(most));
    if (::poll(&polled, 1, int(wait.count())) > 0) return true;
  }
  return false;
}

bool send_input(int socket, const std::string& filter, std::array<int, 3> files) {
  iovec part{.iov_base = const_cast<char*>(filter.data()), .iov_len = filter.size()};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof files)] = {};
  msghdr message{};
  message.msg_iov = &part, message.msg_iovlen = 1;
  message.msg_control = control, message.msg_controllen = sizeof control;
  cmsghdr* rights = CMSG_FIRSTHDR(&message);
  rights->cmsg_level = SOL_SOCKET, rights->cmsg_type = SCM_RIGHTS;
  rights->cmsg_len = CMSG_LEN(sizeof files);
  std::memcpy(CMSG_DATA(rights), files.data(), sizeof files);
  return ::sendmsg(socket, &message, MSG_NOSIGNAL) == ssize_t(filter.size());
}

sandbox::ExitStatus exit_status(int status) {
  sandbox::ExitStatus out;
  out.exited = WIFEXITED(status);
  out.code = out.exited ? WEXITSTATUS(status) : 0;
  out.signal = out.exited ? 0 : WTERMSIG(status);
  return out;
}

}  // namespace

ToolServer::ToolServer(ToolCall call, Gate gate) : call_(std::move(call)), gate_(std::move(gate)) {
  auto library = sister_program("cutegen-gate.so");
  auto filter = sandbox::filter_bytes({.no_network = true, .seccomp = true, .deny_fork = true});
  if (!library || !filter) {
    log_info("no server of {}: {}", call_.argv.front(),
             library ? filter.error().message : library.error().message);
    return;
  }
  filter_ = std::move(*filter);
  call_.environment = {"LD_PRELOAD=" + library->string(),
                       "CUTEGEN_GATE_OPENING=" + std::to_string(gate_.opening),
                       "CUTEGEN_GATE_FORKS=1"};
  call_.readable.push_back(library->string());
}

void ToolServer::start() {
  std::lock_guard hold(lock_);
  start_locked();
}

void ToolServer::start_locked() {
  if (process_ || filter_.empty() || failures_ >= kMostFailures) return;
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) return;
  UniqueFd ours(ends[0]), theirs(ends[1]);
  ToolCall call = call_;
  call.input = gate_.filler;
  call.gate = theirs.get();
  call.forks = true;
  auto tool = start_tool(call);
  // Without the filter in its forks, an input could start processes that outlive its run.
  if (tool && tool->child.grade().held.contains("seccomp") &&
      tool->child.grade().held.at("seccomp"))
    process_ = Process{.tool = std::move(*tool), .gate = std::move(ours)};
  else
    ++failures_;
}

// Empty if the input needs a fresh process.
std::optional<ToolRun> ToolServer::ask(const Context& ctx, std::string_view input) {
  if (!process_->waits) {
    char byte = 0;
    process_->waits = readable(ctx.with_timeout(call_.timeout), process_->gate.get()) &&
                      ::recv(process_->gate.get(), &byte, 1, 0) == 1;
    failures_ = process_->waits ? 0 : failures_ + 1;
    if (!process_->waits) return std::nullopt;
  }
  auto in = tool_file("input", input), out = tool_file("output", {}), log = tool_file("log", {});
  if (!in || !out || !log) return std::nullopt;
  if (!send_input(process_->gate.get(), filter_, {in->get(), out->get(), log->get()}))
    return std::nullopt;
  ToolRun run;
  if (!readable(ctx.with_timeout(call_.timeout), process_->gate.get())) {
    run.timed_out = true;
    process_.reset();  // ends the fork, too
    return run;
  }
  int status = 0;
  if (::recv(process_->gate.get(), &status, sizeof status, 0) != sizeof status) return std::nullopt;
  run = tool_run_of(exit_status(status));
  run.grade = process_->tool.child.grade();
  auto text = tool_text(log->get(), call_.output_bytes);
  if (text)
    run.log = sanitize(text->substr(text->size() - std::min(text->size(), kMostLog)), kMostLog);
  if (run.ok) {
    auto output = tool_text(out->get(), call_.output_bytes);
    if (!output) return std::nullopt;
    run.output = std::move(*output);
  }
  ++served_;
  return run;
}

Result<ToolRun> ToolServer::run(const Context& ctx, std::string_view input) {
  {
    std::lock_guard hold(lock_);
    start_locked();
    auto run = process_ ? ask(ctx, input) : std::nullopt;
    CG_CHECK(ctx.check("reading machine code"));
    if (run) return std::move(*run);
    process_.reset();
  }
  ToolCall fresh = call_;
  fresh.environment.clear();
  fresh.input = input;
  return run_tool(ctx, fresh);
}

}  // namespace cutegen::toolchain
