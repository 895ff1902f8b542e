// SPDX-License-Identifier: Apache-2.0
#include "wire/channel.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>

#include "base/fields.h"
#include "base/text.h"

namespace cutegen::wire {
namespace {

constexpr size_t kHeaderBytes = 4;
constexpr size_t kStepBytes = size_t{1} << 20;  // memory grows only with bytes that arrive
constexpr auto kStopCheck = std::chrono::milliseconds(20);

tl::unexpected<Error> closed() {
  return world_error(kClosedMessage);
}

bool peer_is_gone(int error) {
  return error == EPIPE || error == ECONNRESET || error == ENOTCONN || error == EBADF;
}

// Waits until `fd` is ready for `events`. Polls often if somebody can stop the context.
Result<void> wait_ready(const Context& ctx, int fd, short events, const char* what) {
  for (;;) {
    CG_CHECK(ctx.check(what));
    Nanoseconds most = ctx.stop().stop_possible() ? Nanoseconds(kStopCheck) : std::chrono::hours(1);
    auto wait = std::chrono::ceil<std::chrono::milliseconds>(ctx.remaining(most));
    pollfd p{.fd = fd, .events = events, .revents = 0};
    int n = ::poll(&p, 1, int(wait.count()));
    if (n < 0 && errno != EINTR) return errno_error("poll on a channel");
    if (n > 0 && (p.revents & POLLNVAL)) return closed();
    if (n > 0) return {};
  }
}

// Moves the descriptors of a received message out of its control data.
std::vector<UniqueFd> take_fds(msghdr& message) {
  std::vector<UniqueFd> out;
  for (cmsghdr* c = CMSG_FIRSTHDR(&message); c; c = CMSG_NXTHDR(&message, c)) {
    if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS) continue;
    size_t count = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (size_t i = 0; i < count; ++i) {
      int fd = -1;
      std::memcpy(&fd, CMSG_DATA(c) + i * sizeof(int), sizeof fd);
      out.emplace_back(fd);
    }
  }
  return out;
}

struct Header {
  std::array<unsigned char, kHeaderBytes> bytes{};
  size_t length() const {
    return size_t{bytes[0]} | size_t{bytes[1]} << 8 | size_t{bytes[2]} << 16 |
           size_t{bytes[3]} << 24;
  }
  static Header of(size_t n) {
    Header h;
    for (size_t i = 0; i < kHeaderBytes; ++i) h.bytes[i] = uint8_t(n >> (8 * i));
    return h;
  }
};

// Reads the header and the descriptors that travel with its first byte. Sets `started` once it has
// read a byte, because stopping after that would leave the stream out of step.
Result<std::pair<Header, std::vector<UniqueFd>>> receive_header(const Context& ctx, int socket,
                                                                bool& started) {
  Header header;
  std::vector<UniqueFd> fds;
  size_t done = 0;
  while (done < kHeaderBytes) {
    alignas(cmsghdr) char control[CMSG_SPACE(kMaxFds * sizeof(int))];
    iovec part{.iov_base = header.bytes.data() + done, .iov_len = kHeaderBytes - done};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    ssize_t n = ::recvmsg(socket, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
      CG_CHECK(wait_ready(ctx, socket, POLLIN, "waiting for a message"));
      continue;
    }
    if (n < 0) return peer_is_gone(errno) ? closed() : errno_error("receiving a message");
    auto got = take_fds(message);
    if (n == 0) return closed();
    started = true;
    std::move(got.begin(), got.end(), std::back_inserter(fds));
    if ((message.msg_flags & MSG_CTRUNC) || fds.size() > kMaxFds)
      return world_error("a message has more than " + std::to_string(kMaxFds) +
                         " descriptors, or this process has no room for them");
    done += size_t(n);
  }
  return std::pair{header, std::move(fds)};
}

Result<std::string> receive_body(const Context& ctx, int socket, size_t length) {
  std::string text;
  while (text.size() < length) {
    size_t at = text.size();
    text.resize(std::min(length, at + kStepBytes));
    ssize_t n = ::recv(socket, text.data() + at, text.size() - at, MSG_DONTWAIT);
    int error = errno;
    text.resize(at + size_t(std::max<ssize_t>(n, 0)));
    if (n > 0 || (n < 0 && error == EINTR)) continue;
    if (n == 0) return closed();
    if (error != EAGAIN && error != EWOULDBLOCK) {
      errno = error;
      return peer_is_gone(error) ? closed() : errno_error("receiving a message");
    }
    CG_CHECK(wait_ready(ctx, socket, POLLIN, "receiving a message"));
  }
  return text;
}

// Sends header, body and descriptors. `started` is as in receive_header.
Result<void> send_all(const Context& ctx, int socket, Header header, std::string_view body,
                      std::span<const int> fds, bool& started) {
  alignas(cmsghdr) char control[CMSG_SPACE(kMaxFds * sizeof(int))]{};
  size_t done = 0, total = kHeaderBytes + body.size();
  while (done < total) {
    iovec parts[2];
    int count = 0;
    if (done < kHeaderBytes)
      parts[count++] = {.iov_base = header.bytes.data() + done, .iov_len = kHeaderBytes - done};
    size_t skip = done < kHeaderBytes ? 0 : done - kHeaderBytes;
    if (skip < body.size())
      parts[count++] = {.iov_base = const_cast<char*>(body.data()) + skip,
                        .iov_len = body.size() - skip};
    msghdr message{};
    message.msg_iov = parts;
    message.msg_iovlen = size_t(count);
    if (!started && !fds.empty()) {
      message.msg_control = control;
      message.msg_controllen = CMSG_SPACE(fds.size_bytes());
      cmsghdr* c = CMSG_FIRSTHDR(&message);
      c->cmsg_level = SOL_SOCKET;
      c->cmsg_type = SCM_RIGHTS;
      c->cmsg_len = CMSG_LEN(fds.size_bytes());
      std::memcpy(CMSG_DATA(c), fds.data(), fds.size_bytes());
    }
    ssize_t n = ::sendmsg(socket, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
      CG_CHECK(wait_ready(ctx, socket, POLLOUT, "sending a message"));
      continue;
    }
    if (n < 0) return peer_is_gone(errno) ? closed() : errno_error("sending a message");
    started = true;
    done += size_t(n);
  }
  return {};
}

}  // namespace

bool is_closed(const Error& error) {
  return error.kind == ErrorKind::world && error.message == kClosedMessage;
}

Channel::Channel(UniqueFd socket) : socket_(std::move(socket)) {}

Result<std::pair<Channel, Channel>> Channel::make_pair() {
  int fds[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) != 0)
    return errno_error("socketpair");
  return std::pair{Channel(UniqueFd(fds[0])), Channel(UniqueFd(fds[1]))};
}

Result<void> Channel::send(const Context& ctx, const Json& body, std::span<const int> fds) {
  CG_ASSERT(body.is_object());
  CG_ASSERT(fds.size() <= kMaxFds);
  if (!socket_) return closed();
  std::string text = dump_json(body);
  if (text.size() > kMaxFrameBytes)
    return world_error("a message of " + std::to_string(text.size()) +
                       " bytes is over the limit of " + std::to_string(kMaxFrameBytes));
  CG_CHECK(ctx.check("sending a message"));
  bool started = false;
  auto sent = send_all(ctx, socket_.get(), Header::of(text.size()), text, fds, started);
  if (!sent && started) close();  // after half a frame the peer cannot find the next one
  return sent;
}

Result<Frame> Channel::receive(const Context& ctx) {
  if (!socket_) return closed();
  bool started = false;
  auto read = [&]() -> Result<Frame> {
    CG_TRY(auto head, receive_header(ctx, socket_.get(), started));
    size_t length = head.first.length();
    if (length > kMaxFrameBytes)
      return world_error("a message announces " + std::to_string(length) + " bytes; the limit is " +
                         std::to_string(kMaxFrameBytes));
    CG_TRY(std::string text, receive_body(ctx, socket_.get(), length));
    auto json = parse_json(text, "message", kMaxFrameBytes);
    if (!json) return world_error("a message is not valid JSON: " + json.error().message);
    if (!json->is_object()) return world_error("a message is not a JSON object");
    return Frame{.body = std::move(*json), .fds = std::move(head.second)};
  };
  auto frame = read();
  if (!frame && started) close();  // out of step, or the peer broke the protocol
  return frame;
}

Result<Frame> Channel::call(const Context& ctx, const Json& body, std::span<const int> fds) {
  CG_CHECK(send(ctx, body, fds));
  CG_TRY(Frame reply, receive(ctx));
  if (auto e = reply.body.find("error"); e != reply.body.end() && e->is_object())
    return fail(error_from_json(*e));
  return reply;
}

Result<void> Channel::send_error(const Context& ctx, const Error& error) {
  return send(ctx, Json{{"error", to_json(error)}});
}

Error error_from_json(const Json& json) {
  constexpr size_t kMostText = 16384;
  auto text = [&](const char* key) {
    auto at = json.is_object() ? json.find(key) : json.end();
    bool usable = json.is_object() && at != json.end() && at->is_string();
    return usable ? sanitize(at->get_ref<const std::string&>(), kMostText) : std::string();
  };
  Error out{.kind = ErrorKind::world,
            .message = text("message"),
            .where = text("where"),
            .remedy = text("remedy")};
  std::string kind = text("kind");
  for (ErrorKind k : {ErrorKind::user, ErrorKind::timeout, ErrorKind::cancelled,
                      ErrorKind::unsupported, ErrorKind::internal})
    if (kind == to_string(k)) out.kind = k;
  if (out.message.empty()) out.message = "the peer reported an error without a message";
  return out;
}

}  // namespace cutegen::wire
