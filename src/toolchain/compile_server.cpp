// SPDX-License-Identifier: Apache-2.0
#include "toolchain/compile_server.h"

#include "base/log.h"
#include "base/text.h"

namespace cutegen::toolchain {
namespace {

constexpr auto kStartTime = std::chrono::seconds(180);
constexpr auto kReplyGrace = std::chrono::seconds(15);

// The child ran candidate code, so a malformed reply is the candidate's failure, not cutegen's.
ServerReply unreadable(const sandbox::Grade& grade) {
  ServerReply out;
  out.grade = grade;
  out.died = "a reply that cannot be read";
  return out;
}

Result<ServerReply> read_reply(const Json& body, const sandbox::Grade& grade_of_server) {
  ServerReply out;
  out.grade = grade_of_server;
  if (wire::is_death(body)) {
    CG_TRY(auto death, read_json<wire::CompileDied>(body));
    out.died = std::move(death.died);
    out.timed_out = death.timed_out;
    return out;
  }
  auto reply = read_json<wire::CompileReply>(body);
  if (!reply) return unreadable(grade_of_server);
  out.compiled = std::move(*reply);
  if (out.compiled.grade == Protection::full) return out;
  if (out.grade.label == Protection::full) out.grade.label = Protection::partial;
  out.grade.missing += (out.grade.missing.empty() ? "" : "; ") + out.compiled.missing;
  return out;
}

}  // namespace

sandbox::SpawnSpec server_spec(const ServerSetup& setup, int socket) {
  sandbox::SpawnSpec spec;
  spec.argv = {setup.paths.compiler_program.string(), "--nvrtc", setup.paths.nvrtc.string()};
  auto add = [&](const char* flag, const std::string& value) {
    spec.argv.emplace_back(flag);
    spec.argv.push_back(value);
  };
  for (const auto& dir : setup.paths.includes) {
    add("--include", dir.string());
    spec.readable.push_back(dir.string());
  }
  spec.readable.push_back(setup.paths.nvrtc.parent_path().string());
  add("--header", setup.prefix);
  for (const std::string& option : setup.options) add("--option", option);
  if (setup.plain) spec.argv.emplace_back("--plain");
  if (setup.keep) spec.argv.emplace_back("--keep");
  spec.limits.resident_bytes = setup.resident_bytes;
  spec.env = {"PATH=/usr/bin:/bin", "LC_ALL=C.UTF-8"};
  spec.cwd = "/";  // source names in PTX are relative to it
  spec.fds = {{socket, 3}};
  spec.isolation = {.namespaces = true, .no_network = true, .seccomp = true};
  spec.required = setup.require_sandbox;
  return spec;
}

Result<std::shared_ptr<CompileServer>> CompileServer::start(const Context& ctx,
                                                            const ServerSetup& setup) {
  CG_TRY(auto pair, wire::Channel::make_pair());
  CG_TRY(auto child, sandbox::spawn(server_spec(setup, pair.second.fd())));
  pair.second.close();
  std::shared_ptr<CompileServer> server(new CompileServer(std::move(child), std::move(pair.first)));
  CG_CHECK(server->wait_ready(ctx));
  return server;
}

Result<void> CompileServer::wait_ready(const Context& ctx) {
  auto frame = channel_.receive(ctx.with_timeout(kStartTime));
  if (!frame) {
    CG_CHECK(ctx.check("starting the compile server"));
    child_.kill();
    return world_error(
        "the compile server did not start: " + sanitize(trim(child_.error_text()), 1000),
        "see 'cutegen doctor'");
  }
  auto ready = read_json<wire::CompilerReady>(frame->body);
  if (!ready)
    return world_error("the program cutegen-compiler uses another protocol: " +
                           sanitize(ready.error().message, 200),
                       "build all programs together");
  prefix_headers_ = std::move(ready->headers);
  if (ready->how == wire::CompileMode::plain && ready->why != wire::kAskedFor)
    log_warning("compiling without a precompiled header (slower): {}", sanitize(ready->why, 500));
  return {};
}

bool CompileServer::alive() {
  std::lock_guard lock(mutex_);
  return child_.running();
}

Result<ServerReply> ask_server(const Context& ctx, wire::Channel& channel, std::mutex& sending,
                               const sandbox::Grade& grade, const std::string& source,
                               const CompileLimits& limits) {
  CG_TRY(auto pair, wire::Channel::make_pair());
  auto timeout_ms = std::chrono::ceil<std::chrono::milliseconds>(limits.timeout).count();
  const wire::CompileCall call{
      .source = source, .memory_bytes = limits.memory_bytes, .timeout_ms = timeout_ms};
  {
    std::lock_guard lock(sending);
    int reply_end = pair.second.fd();
    CG_CHECK(channel.send(ctx, to_json(call), {&reply_end, 1}));
  }
  pair.second.close();
  CG_TRY(auto frame,
         pair.first.receive(ctx.with_timeout(wire::kMostWait * limits.timeout + kReplyGrace)));
  if (auto e = frame.body.find("error"); e != frame.body.end())
    return fail(wire::error_from_json(*e));
  return read_reply(frame.body, grade);
}

Result<ServerReply> CompileServer::compile(const Context& ctx, const std::string& source,
                                           const CompileLimits& limits) {
  return ask_server(ctx, channel_, mutex_, child_.grade(), source, limits);
}

}  // namespace cutegen::toolchain
