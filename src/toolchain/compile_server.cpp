// SPDX-License-Identifier: Apache-2.0
#include "toolchain/compile_server.h"

#include "base/log.h"
#include "base/text.h"

namespace cutegen::toolchain {
namespace {

constexpr auto kStartTime = std::chrono::seconds(180);
constexpr auto kReplyGrace = std::chrono::seconds(15);

Result<ServerReply> read_reply(const Json& body, const sandbox::Grade& grade_of_server) {
  ServerReply out;
  out.grade = grade_of_server;
  ObjectReader r(body, "reply#");
  if (r.has("died")) {
    CG_TRY(out.died, r.string("died"));
    CG_TRY(out.timed_out, r.boolean_or("timed_out", false));
    return out;
  }
  auto read = [&]() -> Result<void> {
    CG_TRY(out.how, r.string("how"));
    CG_TRY(out.status, r.string("status"));
    CG_TRY(out.ptx, r.string("ptx"));
    CG_TRY(out.log, r.string("log"));
    CG_TRY(out.headers, r.strings("headers"));
    CG_TRY(out.refused, r.strings("refused"));
    CG_TRY(out.ok, r.boolean_or("ok", false));
    CG_TRY(int64_t spent_ns, r.integer_or("spent_ns", 0));
    out.spent = Nanoseconds(spent_ns);
    CG_TRY(std::string grade, r.string("grade"));
    CG_TRY(std::string missing, r.string("missing"));
    if (grade == to_string(Protection::full)) return {};
    if (out.grade.label == Protection::full) out.grade.label = Protection::partial;
    out.grade.missing += (out.grade.missing.empty() ? "" : "; ") + missing;
    return {};
  };
  auto done = read();
  // The child ran candidate code, so a malformed reply is the candidate's failure, not cutegen's.
  if (!done) {
    out = ServerReply{};
    out.grade = grade_of_server;
    out.died = "a reply that cannot be read";
  }
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
  ObjectReader r(frame->body, "ready#");
  CG_TRY(std::string schema, r.string("schema"));
  if (schema != kServerSchema)
    return world_error("the program cutegen-compiler uses the protocol " + sanitize(schema, 80) +
                           ", not " + kServerSchema,
                       "build all programs together");
  CG_TRY(std::string how, r.string("how"));
  CG_TRY(std::string why, r.string("why"));
  CG_TRY(prefix_headers_, r.strings("headers"));
  if (how == "plain" && why != "asked for")
    log_warning("compiling without a precompiled header (slower): {}", sanitize(why, 500));
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
  Json request{{"schema", kServerSchema},
               {"type", "compile"},
               {"source", source},
               {"memory_bytes", limits.memory_bytes},
               {"timeout_ms", timeout_ms}};
  {
    std::lock_guard lock(sending);
    int reply_end = pair.second.fd();
    CG_CHECK(channel.send(ctx, request, {&reply_end, 1}));
  }
  pair.second.close();
  CG_TRY(auto frame, pair.first.receive(ctx.with_timeout(limits.timeout + kReplyGrace)));
  if (auto e = frame.body.find("error"); e != frame.body.end())
    return fail(wire::error_from_json(*e));
  return read_reply(frame.body, grade);
}

Result<ServerReply> CompileServer::compile(const Context& ctx, const std::string& source,
                                           const CompileLimits& limits) {
  return ask_server(ctx, channel_, mutex_, child_.grade(), source, limits);
}

}  // namespace cutegen::toolchain
