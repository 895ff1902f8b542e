// SPDX-License-Identifier: Apache-2.0
// EvaluatorProcess: the child process cutegen-evaluator. It answers one request at a time.
//
// Contract: start() ends the previous process, starts a new one and waits for its hello. If the
// Context ends during ask(), the object stops the process, because nobody will read the reply.
//
// Example: CG_CHECK(process.start(ctx, options)); CG_TRY(Json reply, process.ask(ctx, type, body));
#pragma once

#include <functional>
#include <string>

#include "eval/api/client.h"
#include "sandbox/sandbox.h"
#include "wire/channel.h"

namespace cutegen::eval {

class EvaluatorProcess {
 public:
  Result<void> start(const Context& ctx, const EvaluatorOptions& options);
  // Returns the reply to one request. Progress frames that precede it go to `progress`.
  Result<Json> ask(const Context& ctx, const std::string& type, const Json& body,
                   const std::function<void(const std::string&)>& progress = {});
  // Whether the process is running (false before start() and after stop()).
  bool connected() const { return bool(channel_); }
  bool running() { return connected() && child_.running(); }
  // After the process closed its channel: waits until it ends, and says how it ended.
  std::string how_it_ends(const Context& ctx);
  void stop();
  int pid() const { return pid_; }

 private:
  Result<Json> exchange(const Context& ctx, const std::string& type, const Json& body,
                        const std::function<void(const std::string&)>& progress);

  sandbox::Child child_;
  wire::Channel channel_;
  int pid_ = -1;
};

}  // namespace cutegen::eval
