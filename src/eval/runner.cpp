// SPDX-License-Identifier: Apache-2.0
#include "eval/runner.h"

#include <fmt/format.h>

#include <cstring>

#include "base/file.h"

namespace cutegen {
namespace {

constexpr const char* kSchema = "cutegen.runner.v1";
constexpr auto kStartLimit = std::chrono::seconds(20);
constexpr auto kLoadLimit = std::chrono::seconds(60);

Json buffers_json(const std::vector<RunBuffer>& buffers) {
  Json out = Json::array();
  for (const RunBuffer& b : buffers) {
    Json j{{"name", b.name}, {"bytes", b.bytes}, {"read_only", b.read_only}};
    j["content"] = to_string(b.content);
    if (b.offset >= 0) j["offset"] = b.offset;
    out.push_back(std::move(j));
  }
  return out;
}

}  // namespace

void Runner::stop() {
  channel_.close();
  child_ = sandbox::Child();
  loaded_ = false;
}

Result<void> Runner::start(const Context& ctx) {
  stop();
  CG_TRY(auto program, sister_program("cutegen-runner"));
  CG_TRY(auto pair, wire::Channel::make_pair());
  sandbox::SpawnSpec spec{.argv = {program.string()}, .env = sandbox::scrubbed_environment()};
  spec.fds = {{pair.second.fd(), 3}};
  spec.limits = {.memory_bytes = options_.memory_bytes + large_bytes_,
                 .file_bytes = 0,
                 .open_files = 64,
                 .processes = 512,
                 .resident_bytes = options_.memory_bytes};
  spec.isolation = {.namespaces = true, .no_network = true, .seccomp = true, .deny_open = true};
  spec.required = options_.require_sandbox;
  CG_TRY(child_, sandbox::spawn(spec));
  grade_ = child_.grade();
  channel_ = std::move(pair.first);
  pair.second.close();
  Json open{{"schema", kSchema}, {"type", "open"}, {"device", options_.device}};
  CG_TRY(Answer answer, ask(ctx, open, {}, kStartLimit));
  if (!answer.alive) return world_error("the runner did not start: " + answer.death);
  if (answer.is_error) return fail(answer.error);
  return {};
}

Result<void> Runner::ready(const Context& ctx) {
  if (channel_ && child_.running()) return {};
  return start(ctx);
}

Result<Runner::Answer> Runner::ask(const Context& ctx, const Json& body, std::vector<int> fds,
                                   Nanoseconds limit) {
  Context limited = ctx.with_timeout(limit);
  auto start = Clock::now();
  auto reply = channel_.call(limited, body, fds);
  waited_ += Clock::now() - start;
  Answer answer;
  if (reply) {
    answer.body = std::move(reply->body);
    return answer;
  }
  if (channel_ && reply.error().kind != ErrorKind::timeout &&
      reply.error().kind != ErrorKind::cancelled && !wire::is_closed(reply.error())) {
    answer.is_error = true;
    answer.error = reply.error();
    return answer;
  }
  if (ctx.stopped()) {
    stop();
    return fail(reply.error());
  }
  answer.alive = false;
  answer.hung = reply.error().kind == ErrorKind::timeout;
  if (answer.hung) {
    answer.death = fmt::format("no answer within {} s",
                               std::chrono::duration_cast<std::chrono::seconds>(limit).count());
  } else {
    auto status = child_.wait(Context().with_timeout(std::chrono::seconds(2)));
    answer.death = status ? status->text() : reply.error().message;
  }
  stop();
  return answer;
}

Result<LoadOutcome> Runner::load_once(const Context& ctx) {
  CG_CHECK(ready(ctx));
  size_t total = 0;
  Json sizes = Json::array();
  for (const std::string& text : modules_) {
    sizes.push_back(text.size());
    total += text.size();
  }
  CG_TRY(UniqueFd memory, make_memfd("modules", std::max<size_t>(total, 1)));
  CG_TRY(Mapping mapping, Mapping::map(memory.get(), total, true));
  size_t at = 0;
  for (const std::string& text : modules_) {
    std::memcpy(mapping.data() + at, text.data(), text.size());
    at += text.size();
  }
  Json body{{"schema", kSchema}, {"type", "load"}, {"bytes", std::move(sizes)}};
  CG_TRY(Answer answer, ask(ctx, body, {memory.get()}, kLoadLimit));
  LoadOutcome out;
  if (!answer.alive) {
    out.died = true;
    out.error = {ErrorKind::user,
                 fmt::format("the runner died ({}) while loading this program", answer.death)};
    return out;
  }
  if (answer.is_error) {
    out.error = answer.error;
    return out;
  }
  auto facts = answer.body.find("facts");
  if (facts == answer.body.end() || !facts->is_array() || facts->size() != modules_.size())
    return world_error("the runner's reply to 'load' has no facts");
  for (const Json& f : *facts) {
    CG_TRY(ModuleFacts one, module_facts_from_json(f));
    out.facts.push_back(std::move(one));
  }
  out.ok = loaded_ = true;
  return out;
}

Result<LoadOutcome> Runner::load(const Context& ctx, const std::vector<std::string>& ptx) {
  modules_ = ptx;
  loaded_ = false;
  CG_TRY(LoadOutcome first, load_once(ctx));
  if (!first.died) return first;
  return load_once(ctx);  // alone in a fresh runner, before the program is blamed
}

Result<RunOutcome> Runner::run(const Context& ctx, const RunRequest& request) {
  CG_CHECK(ready(ctx));
  if (!loaded_) {
    CG_TRY(LoadOutcome again, load_once(ctx));
    if (!again.ok) return world_error("modules do not load again: " + again.error.message);
  }
  Json body{{"schema", kSchema},
            {"type", "run"},
            {"buffers", buffers_json(request.buffers)},
            {"plan", to_json(request.steps)},
            {"settings", to_json(request.settings)}};
  std::vector<int> fds{request.memory};
  if (request.ring >= 0) fds.push_back(request.ring);
  CG_TRY(Answer answer, ask(ctx, body, std::move(fds), request.limit));
  RunOutcome out;
  if (!answer.alive) {
    out.kind = answer.hung ? RunOutcome::Kind::hung : RunOutcome::Kind::died;
    out.text = answer.death;
    return out;
  }
  if (answer.is_error) {  // a launch that the device does not take is the program's doing
    bool unsupported = answer.error.kind == ErrorKind::unsupported;
    if (!unsupported && answer.error.kind != ErrorKind::user) return fail(answer.error);
    out.report.status = unsupported ? RunReport::Status::unsupported : RunReport::Status::finding;
    out.report.message = answer.error.text();
    return out;
  }
  auto report = answer.body.find("report");
  if (report == answer.body.end()) return world_error("the runner's reply has no report");
  CG_TRY(out.report, run_report_from_json(*report));
  return out;
}

}  // namespace cutegen
