// SPDX-License-Identifier: Apache-2.0
#include "toolchain/tool_spares.h"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <utility>

#include "base/log.h"

namespace cutegen::toolchain {
namespace {

constexpr int kMostStartFailures = 2;
// How long to wait for a spare that is still starting, because a new process would take as long.
constexpr auto kAlmostThere = std::chrono::milliseconds(300);

// Whether the tool reports within `most` that it waits at the gate.
bool waits_at_gate(int gate, std::chrono::milliseconds most) {
  pollfd polled{.fd = gate, .events = POLLIN, .revents = 0};
  if (::poll(&polled, 1, int(most.count())) <= 0) return false;
  char byte = 0;
  return ::recv(gate, &byte, 1, MSG_DONTWAIT) == 1;
}

}  // namespace

ToolSpares::ToolSpares(ToolCall call, Gate gate, size_t count)
    : call_(std::move(call)), gate_(std::move(gate)), count_(count) {
  auto library = sister_program("cutegen-gate.so");
  if (!library) {
    log_info("no spares of {}: {}", call_.argv.front(), library.error().message);
    return;
  }
  library_ = library->string();
  call_.environment = {"LD_PRELOAD=" + library_,
                       "CUTEGEN_GATE_OPENING=" + std::to_string(gate_.opening)};
  call_.readable.push_back(library_);
  thread_ = std::thread([this] { keep_stocked(); });
}

ToolSpares::~ToolSpares() {
  {
    std::lock_guard hold(lock_);
    stop_ = true;
  }
  wake_.notify_all();
  if (thread_.joinable()) thread_.join();
}

Result<ToolSpares::Spare> ToolSpares::start() const {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
    return errno_error("making a gate");
  UniqueFd ours(ends[0]), theirs(ends[1]);
  ToolCall call = call_;
  call.input = gate_.filler;
  call.gate = theirs.get();
  CG_TRY(ToolProcess process, start_tool(call));
  return Spare{.process = std::move(process), .gate = std::move(ours)};
}

void ToolSpares::keep_stocked() {
  std::unique_lock hold(lock_);
  for (;;) {
    wake_.wait(hold, [this] {
      return stop_ || (spares_.size() < count_ && failures_ < kMostStartFailures);
    });
    if (stop_) return;
    hold.unlock();
    auto spare = start();
    hold.lock();
    if (spare)
      spares_.push_back(std::move(*spare));
    else
      ++failures_;
  }
}

bool ToolSpares::take(Spare& out) {
  std::unique_lock hold(lock_);
  if (spares_.empty()) return false;
  out = std::move(spares_.front());
  spares_.pop_front();
  hold.unlock();
  wake_.notify_all();
  const bool waits = waits_at_gate(out.gate.get(), kAlmostThere);
  hold.lock();
  failures_ = waits ? 0 : failures_ + 1;
  return waits;
}

Result<ToolRun> ToolSpares::run(const Context& ctx, std::string_view input) {
  Spare spare;
  if (take(spare)) {
    CG_CHECK(replace_input(spare.process, input));
    if (::send(spare.gate.get(), "g", 1, MSG_NOSIGNAL) == 1) {
      ++served_;
      return finish_tool(ctx, std::move(spare.process), call_);
    }
  }
  spare = {};
  ToolCall fresh = call_;
  fresh.environment.clear();
  fresh.input = input;
  return run_tool(ctx, fresh);
}

}  // namespace cutegen::toolchain
