// SPDX-License-Identifier: Apache-2.0
// The client's side of one cutegen-compiler process: headers parsed once for one (arch, prefix).
//
// Contract: start() returns when the server is ready (or has said why it cannot be). compile() may
// be called from several threads at once; each call has its own reply socket, so children run side
// by side. The death of a child is a reply; the death of the server is the world error "closed".
//
// Example: CG_TRY(auto s, CompileServer::start(ctx, setup)); CG_TRY(auto r, s->compile(ctx, text,
// limits));
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "sandbox/sandbox.h"
#include "toolchain/toolchain.h"
#include "wire/channel.h"

namespace cutegen::toolchain {

struct ServerSetup {
  ToolPaths paths;
  std::vector<std::string> options;  // for NVRTC
  std::string prefix;                // header parsed before every candidate
  bool plain = false;                // without the precompiled header and the fork inside NVRTC
  bool keep = false;                 // keeps one program for those that begin alike (warm_parent.h)
  int64_t resident_bytes = 0;        // memory of all its processes, where that can be limited
  bool require_sandbox = false;
};

struct ServerReply {
  bool ok = false;
  std::string how, status, ptx, log;
  std::vector<std::string> headers, refused;  // opened by this compile alone; asked for in vain
  std::string died;                           // how the child ended, if not well
  bool timed_out = false;
  Nanoseconds spent{0};  // processor time of the child
  sandbox::Grade grade;
};

inline constexpr const char* kServerSchema = "cutegen.compiler.v1";

// What starts the program, with `socket` as its end of the channel.
[[nodiscard]] sandbox::SpawnSpec server_spec(const ServerSetup& setup, int socket);

struct CompileLimits {
  int64_t memory_bytes = 0;
  Nanoseconds timeout{0};
};
// One request over `channel`, which `sending` guards, to a server that was started with `grade`.
[[nodiscard]] Result<ServerReply> ask_server(const Context& ctx, wire::Channel& channel,
                                             std::mutex& sending, const sandbox::Grade& grade,
                                             const std::string& source,
                                             const CompileLimits& limits);

class CompileServer {
 public:
  [[nodiscard]] static Result<std::shared_ptr<CompileServer>> start(const Context& ctx,
                                                                    const ServerSetup& setup);
  [[nodiscard]] Result<ServerReply> compile(const Context& ctx, const std::string& source,
                                            const CompileLimits& limits);
  [[nodiscard]] bool alive();
  // Headers of the prefix: part of every closure.
  [[nodiscard]] const std::vector<std::string>& prefix_headers() const { return prefix_headers_; }
  [[nodiscard]] std::string error_text() const { return child_.error_text(); }

 private:
  CompileServer(sandbox::Child child, wire::Channel channel)
      : child_(std::move(child)), channel_(std::move(channel)) {}
  [[nodiscard]] Result<void> wait_ready(const Context& ctx);

  sandbox::Child child_;
  std::mutex mutex_;  // of child_ and of sending on channel_
  wire::Channel channel_;
  std::vector<std::string> prefix_headers_;
};

}  // namespace cutegen::toolchain
