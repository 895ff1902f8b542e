// SPDX-License-Identifier: Apache-2.0
// Channel: sends and receives JSON messages and file descriptors over a Unix stream socket. All
// cutegen processes talk to each other through a Channel.
//
// A frame is a 4-byte little-endian length, then a JSON object in UTF-8 of at most 64 MiB. The
// first byte of a frame carries the message's file descriptors (at most 8).
//
// Contract: send() and receive() end with an error if their Context is cancelled or times out. If
// the peer has closed its socket, send() and receive() return a world error "closed" (see
// is_closed()). The function call() sends a request and waits for the reply. If the reply has the
// form {"error": {kind, message, where, remedy}}, call() returns the error as an Error. A channel
// closes itself if the peer breaks the protocol or if a call ends in the middle of a frame. A
// channel stays usable if receive() times out before the first byte of a frame. At most one thread
// at a time may send on a channel, and at most one may receive.
//
// Example:
//   CG_TRY(Frame f, channel.call(ctx, {{"schema", "cutegen.runner.v1"}, {"type", "load"}}, fds));
#pragma once

#include <span>
#include <utility>
#include <vector>

#include "base/context.h"
#include "base/file.h"
#include "base/json.h"

namespace cutegen::wire {

inline constexpr size_t kMaxFds = 8;
inline constexpr size_t kMaxFrameBytes = size_t{64} << 20;
inline constexpr const char* kClosedMessage = "closed";

struct Frame {
  Json body;
  std::vector<UniqueFd> fds;
};

class Channel {
 public:
  Channel() = default;
  explicit Channel(UniqueFd socket);
  static Result<std::pair<Channel, Channel>> make_pair();

  Result<void> send(const Context& ctx, const Json& body, std::span<const int> fds = {});
  Result<Frame> receive(const Context& ctx);
  Result<Frame> call(const Context& ctx, const Json& body, std::span<const int> fds = {});
  Result<void> send_error(const Context& ctx, const Error& error);
  int fd() const { return socket_.get(); }
  void close() { socket_.reset(); }
  explicit operator bool() const { return bool(socket_); }

 private:
  UniqueFd socket_;
};

bool is_closed(const Error& error);
Error error_from_json(const Json& json);

}  // namespace cutegen::wire
