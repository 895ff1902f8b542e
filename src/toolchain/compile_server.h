// SPDX-License-Identifier: Apache-2.0
// Starts a compile server and sends requests to it. A compile server is a cutegen-compiler process
// that has parsed a prefix of headers for one GPU architecture. The server forks a child for each
// request.
//
// Contract: start() returns when the server is ready, or returns an error that says why the server
// did not start. Several threads may call compile() at once: each call has its own reply socket,
// and the children run in parallel. If a child dies, ServerReply::died says how. If the server
// itself dies, compile() returns an Error of kind `world` (the environment failed) with the message
// "closed".
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
  std::string prefix;                // header that the server parses before all candidates
  bool plain = false;                // compile without a precompiled header and without forks
  // If true, the server keeps one parsed program for other programs with the same beginning
  // (warm_parent.h).
  bool keep = false;
  int64_t resident_bytes = 0;  // memory limit of all processes of the server, by cgroup
  bool require_sandbox = false;
};

struct ServerReply {
  wire::CompileReply compiled;  // the child's reply, unless the child died
  std::string died;             // how the child died; empty: it did not die
  bool timed_out = false;
  sandbox::Grade grade;  // sandbox protection of server and child
};

// Returns how the sandbox must start the server. `socket` is the server's end of the channel.
sandbox::SpawnSpec server_spec(const ServerSetup& setup, int socket);

struct CompileLimits {
  int64_t memory_bytes = 0;
  Nanoseconds timeout{0};
};
// Sends one request over `channel` and waits for the reply. The mutex `sending` guards the channel.
// `grade` is the sandbox protection of the server.
Result<ServerReply> ask_server(const Context& ctx, wire::Channel& channel, std::mutex& sending,
                               const sandbox::Grade& grade, const std::string& source,
                               const CompileLimits& limits);

class CompileServer {
 public:
  static Result<std::shared_ptr<CompileServer>> start(const Context& ctx, const ServerSetup& setup);
  Result<ServerReply> compile(const Context& ctx, const std::string& source,
                              const CompileLimits& limits);
  bool alive();
  // Returns the headers that the prefix includes, which all programs of this server thus include.
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
