// SPDX-License-Identifier: Apache-2.0
// libFuzzer target: any bytes of a hostile peer: each frame is an object or the channel closes
// itself, and an error that was read can be sent to another process.
#include <sys/socket.h>

#include <cstdint>
#include <cstdlib>

#include "base/fields.h"
#include "wire/channel.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace cutegen;
  constexpr size_t kMostBytes = 65536;  // fits the socket's buffer: one thread writes and reads
  if (size > kMostBytes) return 0;
  auto pair = wire::Channel::make_pair();
  if (!pair) std::abort();
  auto& [peer, ours] = *pair;
  if (size > 0 && ::send(peer.fd(), data, size, MSG_DONTWAIT) != ssize_t(size)) return 0;
  peer.close();
  Context soon = Context().with_timeout(std::chrono::seconds(1));
  while (auto frame = ours.receive(soon)) {
    if (!frame->body.is_object()) std::abort();
    Error error = wire::error_from_json(frame->body);
    if (error.message.empty()) std::abort();
    if (wire::error_from_json(to_json(error)).message != error.message) std::abort();
  }
  if (!wire::is_closed(ours.receive(soon).error())) std::abort();
  return 0;
}
