// SPDX-License-Identifier: Apache-2.0
#include "eval/api/evaluator_process.h"

#include <algorithm>
#include <cstdlib>
#include <string_view>

extern char** environ;

namespace cutegen::eval {

using protocol::MessageType;

namespace {

// The evaluator is trusted, but the processes that it starts must not inherit secrets.
std::vector<std::string> evaluator_environment() {
  std::vector<std::string> out = sandbox::scrubbed_environment();
  for (char** e = environ; e && *e; ++e) {
    std::string_view entry(*e), name = entry.substr(0, entry.find('='));
    bool ours = name.starts_with("CUTEGEN_") || name.starts_with("XDG_");
    bool secret = name.find("KEY") != name.npos || name.find("TOKEN") != name.npos ||
                  name.find("SECRET") != name.npos || name.find("PASSW") != name.npos ||
                  name.find("CREDENTIAL") != name.npos;
    if (ours && !secret && std::find(out.begin(), out.end(), entry) == out.end())
      out.emplace_back(entry);
  }
  return out;
}

}  // namespace

Result<void> EvaluatorProcess::start(const Context& ctx, const EvaluatorOptions& options) {
  channel_.close();
  child_ = sandbox::Child();
  CG_TRY(auto program, sister_program("cutegen-evaluator"));
  CG_TRY(auto pair, wire::Channel::make_pair());
  sandbox::SpawnSpec spec;
  spec.argv = {program.string()};
  spec.env = evaluator_environment();
  spec.cwd = std::filesystem::current_path().string();
  spec.fds = {{pair.second.fd(), 3}};
  spec.capture_stderr = false;
  CG_TRY(child_, sandbox::spawn(spec));
  channel_ = std::move(pair.first);
  pair.second.close();
  CG_TRY(auto reply, ask<protocol::HelloReply>(ctx, MessageType::hello, protocol::Hello{options}));
  pid_ = reply.pid;
  return {};
}

Result<Json> EvaluatorProcess::send_and_receive(const Context& ctx, MessageType type,
                                                const Json& message,
                                                const ReplyListeners& listeners) {
  auto reply = exchange(ctx, type, message, listeners);
  bool ended = !reply && (reply.error().kind == ErrorKind::cancelled ||
                          reply.error().kind == ErrorKind::timeout);
  if (ended && ctx.done()) stop();  // nobody would read the result
  return reply;
}

Result<Json> EvaluatorProcess::exchange(const Context& ctx, MessageType type, const Json& message,
                                        const ReplyListeners& listeners) {
  CG_CHECK(channel_.send(ctx, message));
  for (;;) {
    CG_TRY(wire::Frame frame, channel_.receive(ctx));
    if (auto e = frame.body.find("error"); e != frame.body.end())
      return fail(wire::error_from_json(*e));
    CG_TRY(const MessageType got, protocol::type_of(frame.body));
    if (got == MessageType::progress) {
      auto line = protocol::body_of<protocol::ProgressText>(frame.body);
      if (listeners.progress && line) listeners.progress(line->text);
      continue;
    }
    if (got == MessageType::suite_news) {
      CG_TRY(auto message, protocol::body_of<protocol::NewsMessage>(frame.body));
      if (listeners.news) listeners.news(message.news);
      continue;
    }
    if (got != type) return world_error("the evaluator answered another request");
    return std::move(frame.body);
  }
}

void EvaluatorProcess::stop() {
  channel_.close();
  child_ = sandbox::Child();
}

std::string EvaluatorProcess::how_it_ends(const Context& ctx) {
  auto status = child_.wait(ctx.with_timeout(std::chrono::seconds(2)));
  return status ? status->text() : status.error().message;
}

}  // namespace cutegen::eval
