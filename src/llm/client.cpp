// SPDX-License-Identifier: Apache-2.0
#include "llm/client.h"

#include <algorithm>
#include <condition_variable>
#include <cstring>

#include "base/hash.h"
#include "base/log.h"
#include "llm/tokens.h"

namespace cutegen::llm {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kMostOwnWait{8'000};
constexpr double kMostJitter = 0.25;

double random_share() {
  uint32_t value = 0;
  random_bytes(std::as_writable_bytes(std::span(&value, 1)));
  return double(value) / 4294967296.0;
}

Result<void> check_request(const ChatRequest& request) {
  if (request.messages.empty() || request.messages.back().speaker != Speaker::user)
    return fail(
        {.kind = ErrorKind::internal, .message = "a request must end with a user's message"});
  return {};
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
  return milliseconds(int64_t(double(wait.count()) * (1 - kMostJitter * random_share())));
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

Attempt HttpModel::attempt(const Context& ctx, const ChatRequest& request, const Shape& shape) {
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
    return AnswerReader(options_, request).stream(outcome, *assembler);
  }
  return AnswerReader(options_, request).body(outcome);
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

}  // namespace cutegen::llm
