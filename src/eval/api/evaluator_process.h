// SPDX-License-Identifier: Apache-2.0
// EvaluatorProcess: starts the child process cutegen-evaluator and exchanges messages with it. The
// child answers one request at a time.
//
// Contract: start() ends the previous child, starts a new one and waits for its first message. If
// the Context is cancelled or times out during ask(), ask() stops the child, because no caller will
// read the reply.
//
// Example: CG_CHECK(process.start(ctx, options));
//   CG_TRY(auto reply, process.ask<protocol::EmptyReply>(ctx, type, request));
#pragma once

#include <functional>
#include <string>

#include "eval/api/protocol.h"
#include "sandbox/sandbox.h"
#include "wire/channel.h"

namespace cutegen::eval {

// Callbacks for messages that arrive before the reply to a request.
struct ReplyListeners {
  std::function<void(const std::string&)> progress = {};
  OnSuiteNews news = {};
};

class EvaluatorProcess {
 public:
  Result<void> start(const Context& ctx, const EvaluatorOptions& options);
  // Sends a request and returns the reply.
  template <class Reply, class Request>
  Result<Reply> ask(const Context& ctx, protocol::MessageType type, Request request,
                    const ReplyListeners& listeners = {}) {
    CG_TRY(Json reply,
           send_and_receive(ctx, type, protocol::message(type, std::move(request)), listeners));
    return protocol::body_of<Reply>(reply);
  }
  // True between start() and stop().
  bool connected() const { return bool(channel_); }
  bool running() { return connected() && child_.running(); }
  // Waits for the process's end and describes it ("killed by SIGSEGV"). Call how_it_ends() after
  // the process has closed its channel.
  std::string how_it_ends(const Context& ctx);
  void stop();
  int pid() const { return pid_; }

 private:
  Result<Json> send_and_receive(const Context& ctx, protocol::MessageType type, const Json& message,
                                const ReplyListeners& listeners);
  Result<Json> exchange(const Context& ctx, protocol::MessageType type, const Json& message,
                        const ReplyListeners& listeners);

  sandbox::Child child_;
  wire::Channel channel_;
  int pid_ = -1;
};

}  // namespace cutegen::eval
