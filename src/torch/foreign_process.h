// SPDX-License-Identifier: Apache-2.0
// ForeignProcess: the sandboxed Python process that runs a third-party solution for a
// `ForeignWorker`, and the messages to and from this process.
//
// Contract: spawn() starts the child process in the sandbox. The function ask() checks the form of
// every reply, because the solution may have written the reply. If the child hangs, dies or breaks
// the protocol, ask() stops the child and returns a ForeignReply that says what happened. The
// destructor removes the child's folder.
//
// Example: CG_CHECK(process.spawn()); CG_TRY(Json hello, process.greet(ctx, message));
//   CG_TRY(ForeignReply reply, process.ask(ctx, request, limit));
#pragma once

#include <filesystem>
#include <span>
#include <string>

#include "sandbox/sandbox.h"
#include "torch/foreign_worker.h"
#include "wire/channel.h"

namespace cutegen::torch {

// On a GPU, the child itself installs the seccomp filter, after it has started the CUDA driver.
inline constexpr sandbox::Isolation kForeignIsolation{
    .namespaces = true, .no_network = true, .seccomp = true};

class ForeignProcess {
 public:
  // `options` must outlive the ForeignProcess.
  ForeignProcess(const ForeignOptions& options, std::string python, std::filesystem::path script);
  ~ForeignProcess();
  ForeignProcess(const ForeignProcess&) = delete;

  Result<void> spawn();
  // Sends the first message and returns the child's reply. If the child did not start, the Error
  // gives the remedy.
  Result<Json> greet(const Context& ctx, const Json& hello);
  Result<ForeignReply> ask(const Context& ctx, const Json& request, Nanoseconds limit,
                           std::span<const int> descriptors = {});
  void stop();
  const sandbox::Grade& grade() const { return child_.grade(); }

 private:
  Result<ForeignReply> lost(const Context& ctx, const Error& error, Nanoseconds limit);
  ForeignReply gone(ForeignReply::Kind kind, std::string what);
  Error start_error(Error error);

  const ForeignOptions& options_;
  std::string python_;
  std::filesystem::path script_;
  const std::string folder_;
  sandbox::Child child_;
  wire::Channel channel_;
};

}  // namespace cutegen::torch
