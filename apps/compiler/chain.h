// SPDX-License-Identifier: Apache-2.0
// Chain: compiles a program in parts. After expensive parts, it leaves a copy of the compiler
// process, a server, from which a program with the same beginning can continue.
//
// Contract: NVRTC reads the parts in order, as one translation unit. If enough CPU time was spent
// since the last server, open() forks a server, which has read only the text before the part, and
// reports it to the client. The head (the process that reaches the last part) becomes the server of
// the last part. open() returns in the head, and in the child of each request, whose text replaces
// the remaining parts. Until the head becomes a server, bytes on the `pause` socket stop and resume
// it. Single-threaded.
//
// Messages (wire/compiler_messages.h) on fd 3: the client sends a KeepCall, and receives one Parked
// for each server, and then Kept.
//
// Example: CG_TRY(Chain chain, Chain::receive(control)); nvrtc.compile(...) with chain.open(part).
#pragma once

#include <cstdio>
#include <optional>
#include <string>
#include <vector>

#include "compiler/jobs.h"

namespace cutegen::compiler {

class Chain {
 public:
  static Result<Chain> receive(wire::Channel control);
  size_t parts() const { return call_.parts.size(); }
  FILE* open(size_t part);
  // Set in the child of a request: the request.
  std::optional<Request>& request() { return request_; }

 private:
  void begin();
  void park(size_t part);
  void serve(wire::Channel own, size_t part);
  bool tell(const Json& message, const wire::Channel* socket);

  wire::Channel control_;
  wire::KeepCall call_;
  std::optional<Request> request_;
  size_t at_ = 0;    // the part that the request's text replaces
  size_t next_ = 0;  // the next part
  int64_t began_ns_ = 0, parked_ns_ = 0;
};

}  // namespace cutegen::compiler
