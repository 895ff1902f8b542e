// SPDX-License-Identifier: Apache-2.0
// Starts a compile server and sends requests to it. The server is a cutegen-compiler process that
// has parsed a prefix of headers for one GPU architecture. It forks a child for each request.
//
// Contract: start() returns when the server is ready, or an error with the reason why it is not.
// Several threads may call compile() at once: each call has its own reply socket, and the children
// run in parallel. If a child dies, ServerReply::died says how. If the server itself dies,
// compile() returns an Error of kind `world` (the environment failed) with the message "closed".
//
// Example:
//   CG_TRY(auto s, CompileServer::start(ctx, setup));
//   CG_TRY(auto r, s->compile(ctx, text, limits));
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "sandbox/sandbox.h"
#include "toolchain/toolchain.h"
#include "wire/channel.h"
#include "wire/compiler_messages.h"

namespace cutegen::toolchain {

struct ServerSetup {
  ToolPaths paths;
  std::vector<std::string> options;  // for NVRTC
  std::string prefix;                // the header that the server parses before every candidate
  bool plain = false;                // whether to compile without a precompiled header and forks
  // If true, the server keeps one parsed program for other programs with the same beginning
  // (warm_parent.h).
  bool keep = false;
  int64_t resident_bytes = 0;  // memory limit of all its processes, if a cgroup can enforce it
  bool require_sandbox = false;
};

struct ServerReply {
  wire::CompileReply compiled;  // the child's reply, if the child did not die
  std::string died;             // how the child died; empty if it did not die
  bool timed_out = false;
  sandbox::Grade grade;  // the protection of the server and its child
};

// Describes how to start the server. `socket` is the server's end of the channel.
sandbox::SpawnSpec server_spec(const ServerSetup& setup, int socket);

struct CompileLimits {
  int64_t memory_bytes = 0;
  Nanoseconds timeout{0};
};
// Sends one request over `channel` and waits for the reply. The mutex `sending` guards the channel.
// `grade` is the server's protection.
Result<ServerReply> ask_server(const Context& ctx, wire::Channel& channel, std::mutex& sending,
                               const sandbox::Grade& grade, const std::string& source,
                               const CompileLimits& limits);

class CompileServer {
 public:
  static Result<std::shared_ptr<CompileServer>> start(const Context& ctx, const ServerSetup& setup);
  Result<ServerReply> compile(const Context& ctx, const std::string& source,
                              const CompileLimits& limits);
  bool alive();
  // The headers that the prefix includes. They are part of every program's include closure.
  const std::vector<std::string>& prefix_headers() const { return prefix_headers_; }
  std::string error_text() const { return child_.error_text(); }

 private:
  CompileServer(sandbox::Child child, wire::Channel channel)
      : child_(std::move(child)), channel_(std::move(channel)) {}
  Result<void> wait_ready(const Context& ctx);

  sandbox::Child child_;
  std::mutex mutex_;  // guards child_ and sends on channel_
  wire::Channel channel_;
  std::vector<std::string> prefix_headers_;
};

}  // namespace cutegen::toolchain
