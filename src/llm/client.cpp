// SPDX-License-Identifier: Apache-2.0
#include "llm/client.h"

#include <algorithm>
#include <condition_variable>
#include <cstring>

#include "base/hash.h"
#include "base/log.h"
#include "base/text.h"
#include "llm/api_json.h"
#include "llm/tokens.h"

namespace cutegen::llm {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kMostOwnWait{8'000};
constexpr double kMostJitter = 0.25;

double random_share() {
  uint32_t value = 0;
  random_bytes(std::as_writable_bytes(std::span(&value, 1)));
  return static_cast<double>(value) / 4294967296.0;
}

Result<void> check_request(const ChatRequest& request) {
  if (request.messages.empty() || request.messages.back().speaker != Speaker::user)
    return fail({ErrorKind::internal, "a request must end with a user's message"});
  return {};
}

std::string beginning(const std::string& text) {
  return sanitize(text.substr(0, 200), 200);
}

}  // namespace

std::optional<milliseconds> retry_wait(int n, std::optional<milliseconds> asked,
                                       const ModelConfig& config) {
  if (asked) {
    if (*asked > config.longest_wait) return std::nullopt;
    return *asked;
  }
  milliseconds wait = config.first_wait;
  for (int i = 0; i < n && wait < kMostOwnWait; ++i) wait *= 2;
  wait = std::min(wait, kMostOwnWait);
  return milliseconds(
      static_cast<int64_t>(static_cast<double>(wait.count()) * (1 - kMostJitter * random_share())));
}

Result<void> wait_for(const Context& ctx, Nanoseconds time, const std::string& what) {
  std::mutex mutex;
  std::condition_variable_any bell;
  std::unique_lock lock(mutex);
  bell.wait_for(lock, ctx.stop(), ctx.remaining(time), [] { return false; });
  return ctx.check(what);
}

HttpModel::HttpModel(HttpModelOptions options)
    : options_(std::move(options)), api_(api_of(options_.provider.api)) {
  shape_.model = options_.model;
  shape_.provider = options_.provider;
  if (!options_.price) return;
  shape_.temperature = options_.price->temperature;
  shape_.thinking = options_.price->thinking;
  shape_.max_output_tokens = options_.price->max_output_tokens;
}

std::optional<double> HttpModel::most_usd(const ChatRequest& request) const {
  if (options_.is_free) return 0;
  if (!options_.price) return std::nullopt;
  return options_.price->most(most_tokens(request), request.max_output_tokens);
}

Result<ChatReply> HttpModel::chat(const Context& ctx, const ChatRequest& request) {
  CG_CHECK(check_request(request));
  for (int retries = 0;;) {
    CG_CHECK(ctx.check("asking " + options_.name));
    const Shape used = shape();
    Attempt a = attempt(ctx, request, used);
    if (a.reply) return std::move(*a.reply);
    if (a.fault.kind == FaultKind::parameter && leave_out(a.fault.parameter, used)) continue;
    if (a.fault.kind != FaultKind::retry) return fail(a.fault.error);
    auto wait = retry_wait(retries, a.fault.wait, options_.config);
    if (!wait || retries == options_.config.retries) {
      Error error = a.fault.error;
      error.message +=
          wait ? "; tried " + std::to_string(retries + 1) + " times"
               : "; it asks to wait for " + std::to_string(a.fault.wait->count() / 1000) + " s";
      return fail(error);
    }
    ++retries;
    log_info("{}; cutegen tries again in {} ms", a.fault.error.message, wait->count());
    CG_CHECK(wait_for(ctx, *wait, "waiting to ask " + options_.name + " again"));
  }
}

HttpModel::Attempt HttpModel::attempt(const Context& ctx, const ChatRequest& request,
                                      const Shape& shape) {
  HttpRequest http;
  http.url = options_.url + api_.path();
  http.headers = api_.headers(options_.key);
  http.headers.emplace_back("Content-Type: application/json");
  http.headers.emplace_back("Accept: text/event-stream, application/json");
  http.body = dump_json(api_.encode(request, shape));
  http.idle = options_.config.idle;
  SseParser sse;
  auto assembler = api_.assembler();
  auto take = [&](const SseEvent& event) { return assembler->take(event); };
  HttpOutcome outcome = http_.post(ctx, http, [&](std::string_view bytes) -> Result<bool> {
    CG_CHECK(sse.feed(bytes, take));
    return assembler->ended();
  });
  if (outcome.streamed) {
    if (auto last = sse.finish(take); !last && !outcome.error) outcome.error = last.error();
    return read_stream(request, outcome, *assembler);
  }
  return read_body(request, outcome);
}

HttpModel::Attempt HttpModel::failed(Fault fault) const {
  fault.error.message = without_key(fault.error.message);
  return {std::nullopt, std::move(fault)};
}

HttpModel::Attempt HttpModel::read_stream(const ChatRequest& request, const HttpOutcome& outcome,
                                          const Assembler& assembler) const {
  if (outcome.error && outcome.error->kind != ErrorKind::world)
    return failed({FaultKind::fatal, *outcome.error});
  Json so_far = assembler.response();
  if (Json error = assembler.error(); !error.is_null()) {
    Fault fault = read_fault({200, outcome.headers, {}, error}, options_.provider.name);
    auto reply = api_.decode(so_far);
    bool began = reply && (!reply->message.text.empty() || reply->usage.total() > 0);
    if (began && fault.kind == FaultKind::retry) return cut(request, so_far, fault.error.message);
    if (fault.kind == FaultKind::refusal) return refused(request, fault);
    return failed(fault);
  }
  if (!assembler.complete())
    return cut(request, so_far,
               outcome.error ? outcome.error->message : "the stream ended in the middle");
  auto reply = api_.decode(so_far);
  if (!reply) return cut(request, so_far, reply.error().message);
  return {finished(request, std::move(*reply)), {}};
}

HttpModel::Attempt HttpModel::read_body(const ChatRequest& request,
                                        const HttpOutcome& outcome) const {
  if (outcome.error && outcome.error->kind != ErrorKind::world)
    return failed({FaultKind::fatal, *outcome.error});
  if (outcome.status == 0)
    return failed({FaultKind::retry,
                   {ErrorKind::world,
                    "cannot reach " + std::string(options_.provider.name) + " at " + options_.url +
                        ": " + (outcome.error ? outcome.error->message : "no answer"),
                    {},
                    "check the network and --model-url"}});
  if (outcome.status != 200) {
    Fault fault =
        read_fault({outcome.status, outcome.headers, outcome.body, {}}, options_.provider.name);
    return fault.kind == FaultKind::refusal ? refused(request, fault) : failed(fault);
  }
  auto body = parse_json(outcome.body, "answer");
  if (outcome.error || !body)
    return cut(request, Json::object(),
               outcome.error ? outcome.error->message
                             : "the answer is not JSON: " + beginning(outcome.body));
  if (Json error = error_of_body(*body); !error.is_null() && !body->contains("choices")) {
    Fault fault = read_fault({200, outcome.headers, {}, error}, options_.provider.name);
    return fault.kind == FaultKind::refusal ? refused(request, fault) : failed(fault);
  }
  auto reply = api_.decode(*body);
  if (!reply) return cut(request, Json::object(), reply.error().message);
  return {finished(request, std::move(*reply)), {}};
}

// The provider refused the question before the model saw it.
HttpModel::Attempt HttpModel::refused(const ChatRequest& request, const Fault& fault) const {
  ChatReply reply;
  reply.message.speaker = Speaker::assistant;
  reply.stop = Stop::refusal;
  reply.detail = without_key(fault.error.message);
  reply.model = options_.model;
  reply.usage.input = estimate_tokens(request);
  reply.usage.estimated = true;
  return {finished(request, std::move(reply)), {}};
}

HttpModel::Attempt HttpModel::cut(const ChatRequest& request, const Json& so_far,
                                  std::string why) const {
  ChatReply reply;
  if (auto decoded = api_.decode(so_far)) reply = std::move(*decoded);
  reply.message.speaker = Speaker::assistant;
  int64_t written = estimate_tokens(reply.message);
  if (!reply.message.opaque.is_null()) written += estimate_tokens(dump_json(reply.message.opaque));
  reply.message.opaque = {};  // never return incomplete reasoning
  reply.message.calls.clear();
  reply.stop = Stop::cut;
  reply.detail = sanitize(without_key(std::move(why)), 300);
  if (reply.usage.all_input() == 0) reply.usage.input = estimate_tokens(request);
  // A broken stream reports the usage of its beginning only.
  reply.usage.output = std::max(reply.usage.output, written);
  reply.usage.estimated = true;
  return {finished(request, std::move(reply)), {}};
}

ChatReply HttpModel::finished(const ChatRequest& request, ChatReply reply) const {
  if (reply.usage.total() == 0) {
    reply.usage.input = estimate_tokens(request);
    reply.usage.output = estimate_tokens(reply.message);
    reply.usage.estimated = true;
  }
  if (reply.model.empty()) reply.model = options_.model;
  reply.message.text = without_key(std::move(reply.message.text));
  take_out_key(reply.message.opaque);
  for (ToolCall& call : reply.message.calls) {
    take_out_key(call.arguments);
    call.malformed = without_key(std::move(call.malformed));
  }
  if (options_.is_free)
    reply.cost_usd = 0;
  else if (!reply.cost_usd && options_.price)
    reply.cost_usd = options_.price->cost(reply.usage);
  return reply;
}

Shape HttpModel::shape() {
  std::lock_guard lock(mutex_);
  return shape_;
}

bool HttpModel::leave_out(const std::string& parameter, const Shape& used) {
  if (!used.takes(parameter)) return false;
  std::lock_guard lock(mutex_);
  if (shape_.refused.insert(parameter).second)
    log_info("'{}' does not accept {}; cutegen asks without it", options_.name, parameter);
  return true;
}

std::string HttpModel::without_key(std::string text) const {
  if (options_.key.empty()) return text;
  return replace_all(std::move(text), options_.key, "[key]");
}

void HttpModel::take_out_key(Json& json) const {
  if (json.is_string()) json = without_key(json.get<std::string>());
  if (json.is_structured())
    for (Json& inner : json) take_out_key(inner);
}

}  // namespace cutegen::llm
