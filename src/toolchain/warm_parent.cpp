// SPDX-License-Identifier: Apache-2.0
#include "toolchain/warm_parent.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>

#include "toolchain/tree_memory.h"

namespace cutegen::toolchain {
namespace {

constexpr auto kSendTime = std::chrono::seconds(10);

// The line that begins a piece, so that it reports the same places and messages as the whole text.
std::string line_directive(int line, const std::string& name) {
  return "#line " + std::to_string(line) + " \"" + name + "\"\n";
}

std::vector<std::string> parts_of(const std::string& text, const std::vector<Cut>& cuts,
                                  const std::string& name) {
  std::vector<std::string> out;
  size_t begin = 0;
  std::string head;
  for (const Cut& cut : cuts) {
    out.push_back(head + text.substr(begin, cut.offset - begin));
    head = line_directive(cut.line, name);
    begin = cut.offset;
  }
  out.push_back(head + text.substr(begin));
  return out;
}

}  // namespace

WarmParent::WarmParent(sandbox::Child child, wire::Channel channel, std::string text,
                       std::string name)
    : child_(std::move(child)),
      channel_(std::move(channel)),
      text_(std::move(text)),
      name_(std::move(name)) {}

Result<std::shared_ptr<WarmParent>> WarmParent::start(const ServerSetup& setup,
                                                      const std::string& text, const Cuts& cuts,
                                                      const std::string& name,
                                                      const CompileLimits& limits) {
  CG_ASSERT(cuts.plain && !cuts.at.empty() && setup.keep);
  CG_TRY(auto pair, wire::Channel::make_pair());
  CG_TRY(auto pause, wire::Channel::make_pair());
  CG_TRY(auto child, sandbox::spawn(server_spec(setup, pair.second.fd())));
  pair.second.close();
  std::shared_ptr<WarmParent> out(
      new WarmParent(std::move(child), std::move(pair.first), text, name));
  out->cuts_ = cuts.at;
  auto timeout_ms = std::chrono::ceil<std::chrono::milliseconds>(limits.timeout).count();
  const wire::KeepCall keep{.parts = parts_of(text, cuts.at, name),
                            .memory_bytes = limits.memory_bytes,
                            .timeout_ms = timeout_ms};
  const int theirs = pause.second.fd();
  CG_CHECK(out->channel_.send(Context().with_timeout(kSendTime), to_json(keep), {&theirs, 1}));
  out->pause_ = std::move(pause.first);
  return out;
}

void WarmParent::note(wire::Frame frame) {
  complete_ = complete_ || wire::is_kept(frame.body);
  auto parked = read_json<wire::Parked>(frame.body);
  if (!parked || frame.fds.size() != 1) return;
  if (parked->part <= 0 || size_t(parked->part) > cuts_.size()) return;
  places_.push_back({.cut = cuts_[size_t(parked->part) - 1],
                     .spent = parked->spent,
                     .server = std::make_shared<wire::Channel>(std::move(frame.fds[0]))});
}

bool WarmParent::look() {
  std::lock_guard lock(mutex_);
  while (!complete_ && !broken_) {
    pollfd there{.fd = channel_.fd(), .events = POLLIN, .revents = 0};
    if (::poll(&there, 1, 0) != 1) break;
    auto frame = channel_.receive(Context().with_timeout(kSendTime));
    broken_ = !frame;
    if (frame) note(std::move(*frame));
  }
  return !broken_;
}

bool WarmParent::complete() const {
  std::lock_guard lock(mutex_);
  return complete_;
}

std::optional<WarmParent::Place> WarmParent::best(const std::string& text) {
  if (!look()) return std::nullopt;
  const auto differ = std::mismatch(text.begin(), text.end(), text_.begin(), text_.end()).first;
  const size_t alike = size_t(differ - text.begin());
  std::lock_guard lock(mutex_);
  for (auto place = places_.rbegin(); place != places_.rend(); ++place)
    if (place->cut.offset <= alike) return *place;
  return std::nullopt;
}

Result<ServerReply> WarmParent::compile(const Context& ctx, const Place& from,
                                        const std::string& text, const CompileLimits& limits) {
  const std::string rest = line_directive(from.cut.line, name_) + text.substr(from.cut.offset);
  return ask_server(ctx, *from.server, sending_, child_.grade(), rest, limits);
}

void WarmParent::hold(bool stop) {
  std::lock_guard lock(mutex_);
  if (held_ == stop || complete_ || broken_) return;
  held_ = stop;
  const char word = stop ? 'p' : 'r';
  broken_ = ::send(pause_.fd(), &word, 1, MSG_NOSIGNAL) != 1;
}

int64_t WarmParent::memory() const {
  return tree_memory(child_.pid());
}

}  // namespace cutegen::toolchain
