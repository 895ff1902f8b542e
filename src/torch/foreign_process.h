// SPDX-License-Identifier: Apache-2.0
// ForeignProcess: the sandboxed Python child of a ForeignWorker, and its exchanges of messages.
//
// Contract: spawn() starts a child in the sandbox. ask() checks the form of every reply, because
// the solution may have written it. ask() stops a child that hangs, dies or breaks the protocol,
// and its reply says so. The destructor removes the child's folder.
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

// On a GPU, the child installs the filter itself after the driver has started.
inline constexpr sandbox::Isolation kForeignIsolation{
    .namespaces = true, .no_network = true, .seccomp = true};

class ForeignProcess {
 public:
  // The options must outlive this object.
  ForeignProcess(const ForeignOptions& options, std::string python, std::filesystem::path script);
  ~ForeignProcess();
  ForeignProcess(const ForeignProcess&) = delete;

  Result<void> spawn();
  // Returns the child's reply to the first message. The Error says how to start the child.
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
