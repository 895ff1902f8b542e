// SPDX-License-Identifier: Apache-2.0
#include "llm/faults.h"

#include <curl/curl.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <ctime>

#include "base/text.h"
#include "llm/api_json.h"

namespace cutegen::llm {
namespace {

constexpr size_t kMostMessage = 300;
constexpr double kMostWaitSeconds = 86'400;

struct Said {
  std::string message, words;  // words: type, code and param in lower case, to match
  std::string param;
  int code = 0;  // a status, if the code is a number
};

std::string lower(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) {
    return c >= 'A' && c <= 'Z' ? char(c - 'A' + 'a') : char(c);
  });
  return text;
}

Said said_by(const Refused& refused) {
  Json error = refused.error;
  if (error.is_null())
    if (auto body = parse_json(refused.body, "error"); body) error = error_of_body(*body);
  Said said;
  if (error.is_string()) said.message = error.get<std::string>();
  if (error.is_object()) {
    said.message = text_at(error, "message");
    said.param = text_at(error, "param");
    said.words = lower(text_at(error, "type") + " " + text_at(error, "code") + " " +
                       text_at(error, "status"));
    if (const Json& code = at(error, "code"); code.is_number_integer())
      said.code = int(std::clamp<int64_t>(code.get<int64_t>(), 0, 999));
  }
  if (error.is_null()) said.message = refused.body;
  said.message = std::string(trim(sanitize(said.message, kMostMessage)));
  std::replace(said.message.begin(), said.message.end(), '\n', ' ');
  return said;
}

bool has(const std::string& text, std::initializer_list<const char*> parts) {
  return std::any_of(parts.begin(), parts.end(),
                     [&](const char* part) { return text.find(part) != std::string::npos; });
}

// Maps a server's word for a refused parameter to the name in Shape::refused, specific words first.
struct Known {
  const char* said;
  const char* parameter;
};
constexpr Known kParameters[] = {
    {.said = "temperature", .parameter = "temperature"},
    {.said = "reasoning_effort", .parameter = "effort"},
    {.said = "reasoning.effort", .parameter = "effort"},
    {.said = "output_config.effort", .parameter = "effort"},
    {.said = "output_config.format", .parameter = "schema"},
    {.said = "output_config", .parameter = "schema"},
    {.said = "output_format", .parameter = "schema"},
    {.said = "response_format", .parameter = "schema"},
    {.said = "json_schema", .parameter = "schema"},
    {.said = "text.format", .parameter = "schema"},
    {.said = "max_completion_tokens", .parameter = "max_tokens_field"},
    {.said = "'max_tokens' is not supported", .parameter = "max_tokens_field"},
    {.said = "stream_options", .parameter = "stream_options"},
    {.said = "prompt_cache_key", .parameter = "prompt_cache_key"},
    {.said = "cache_control", .parameter = "cache_control"},
    {.said = "encrypted content", .parameter = "include"},
    {.said = "encrypted_content", .parameter = "include"},
    {.said = "thinking", .parameter = "thinking"},
    {.said = "effort", .parameter = "effort"},
    {.said = "tool_choice", .parameter = "tool_choice"},
};

std::string refused_parameter(const Said& said) {
  std::string message = lower(said.message), param = lower(said.param);
  for (const std::string& text : {param, message})
    for (const Known& known : kParameters)
      if (!text.empty() && text.find(known.said) != std::string::npos) return known.parameter;
  return {};
}

Fault fatal(ErrorKind kind, std::string message, std::string remedy) {
  return {
      .kind = FaultKind::fatal,
      .error = {
          .kind = kind, .message = std::move(message), .where = {}, .remedy = std::move(remedy)}};
}

// Recognises a permanent refusal by the words of the error.
std::optional<Fault> by_words(const Said& said, const std::string& from, const std::string& tail) {
  std::string message = lower(said.message);
  if (has(said.words, {"insufficient_quota", "billing", "credit", "payment"}) ||
      has(message, {"exceeded your current quota", "credit balance is too low",
                    "insufficient balance", "insufficient credits"}))
    return fatal(ErrorKind::user, from + " refuses: the quota or credit is used up" + tail,
                 "check your account there, then resume the run");
  if (has(said.words, {"context_length", "request_too_large"}) ||
      has(message, {"context length", "context window", "prompt is too long", "maximum context",
                    "exceed_context_size"}))
    return fatal(ErrorKind::user, "the prompt is too long for the model at " + from + tail,
                 "use a model with a larger context");
  if (has(message, {"does not support tools", "not support tool use", "tool-call-parser",
                    "does not support function calling", "tools param requires"}))
    return fatal(ErrorKind::user, "the model at " + from + " cannot call tools" + tail,
                 "start the server with tool calling, or give --tools off");
  if (has(said.words, {"content_policy", "content_filter", "invalid_prompt", "cyber_policy"}))
    return Fault{.kind = FaultKind::refusal,
                 .error = {.kind = ErrorKind::user, .message = said.message}};
  return std::nullopt;
}

std::optional<Fault> by_status(int status, const Said& said, const std::string& from,
                               const std::string& tail) {
  switch (status) {
    case 401:
    case 403:
      return fatal(ErrorKind::user, from + " does not accept the key" + tail,
                   "check the key and its permissions");
    case 402:
      return fatal(ErrorKind::user, from + " refuses: the quota or credit is used up" + tail,
                   "check your account there, then resume the run");
    case 404:
      return fatal(ErrorKind::user, from + " does not know this model or address" + tail,
                   "check the model's name and --model-url");
    case 413:
      return fatal(ErrorKind::user, "the prompt is too long for the model at " + from + tail,
                   "use a model with a larger context");
    case 400:
    case 422:
      if (std::string parameter = refused_parameter(said); !parameter.empty())
        return Fault{.kind = FaultKind::parameter,
                     .error = {.kind = ErrorKind::user,
                               .message = from + " does not accept a parameter" + tail},
                     .parameter = parameter};
      return fatal(ErrorKind::user, from + " does not accept the request" + tail,
                   "check the model's name; docs/models.md says what servers need");
    default:
      break;
  }
  if (status >= 300 && status < 400)
    return fatal(ErrorKind::user, from + " has moved" + tail,
                 "give the new address by --model-url");
  return std::nullopt;
}

bool is_passing(int status) {
  return status == 408 || status == 409 || status == 425 || status == 429 || status >= 500;
}

// Derives a status from the words, for errors in a stream or with status 200.
int status_of_words(const Said& said) {
  if (said.code >= 300) return said.code;
  if (has(said.words, {"overloaded", "rate_limit", "slow_down", "server_error", "api_error",
                       "timeout", "unavailable"}))
    return 529;
  if (has(said.words, {"authentication", "permission", "invalid_api_key"})) return 401;
  if (has(said.words, {"not_found"})) return 404;
  if (has(said.words, {"invalid_request"})) return 400;
  return 500;
}

}  // namespace

Json error_of_body(const Json& body) {
  if (const Json& error = at(body, "error"); !error.is_null()) return error;
  if (text_at(body, "type") == "error" || text_at(body, "object") == "error") return body;
  for (const char* key : {"detail", "message"})  // servers built on FastAPI, and proxies
    if (!text_at(body, key).empty()) return {{"message", text_at(body, key)}};
  return {};
}

std::optional<std::chrono::milliseconds> asked_wait(const Headers& headers) {
  auto number = [&](const char* name) -> std::optional<double> {
    auto it = headers.find(name);
    if (it == headers.end()) return std::nullopt;
    double value = 0;
    const char* end = it->second.data() + it->second.size();
    auto [stop, error] = std::from_chars(it->second.data(), end, value);
    if (error != std::errc() || stop != end || !std::isfinite(value)) return std::nullopt;
    return std::clamp(value, 0.0, kMostWaitSeconds * 1000);
  };
  auto ms = [](double value) { return std::chrono::milliseconds(int64_t(value)); };
  if (auto value = number("retry-after-ms")) return ms(*value);
  if (auto value = number("retry-after")) return ms(std::min(*value, kMostWaitSeconds) * 1000);
  auto it = headers.find("retry-after");
  if (it == headers.end()) return std::nullopt;
  time_t when = curl_getdate(it->second.c_str(), nullptr);
  if (when < 0) return std::nullopt;
  return ms(std::clamp(std::difftime(when, std::time(nullptr)), 0.0, kMostWaitSeconds) * 1000);
}

Fault read_fault(const Refused& refused, const std::string& provider) {
  Said said = said_by(refused);
  int status = refused.status == 200 ? status_of_words(said) : refused.status;
  std::string number = refused.status == 200 ? "" : " (HTTP " + std::to_string(status) + ")";
  std::string tail = number + (said.message.empty() ? "" : ": " + said.message);
  if (auto fault = by_words(said, provider, tail)) return *fault;
  Fault passing{.kind = FaultKind::retry,
                .error = {.kind = ErrorKind::world,
                          .message = provider + " cannot answer now" + tail,
                          .where = {},
                          .remedy = "wait a while, then resume the run"}};
  passing.wait = asked_wait(refused.headers);
  auto should = refused.headers.find("x-should-retry");
  if (should != refused.headers.end() && should->second == "true") return passing;
  if (auto fault = by_status(status, said, provider, tail)) return *fault;
  bool retry = is_passing(status) && (should == refused.headers.end() || should->second != "false");
  if (!retry) passing.kind = FaultKind::fatal;
  return passing;
}

}  // namespace cutegen::llm
