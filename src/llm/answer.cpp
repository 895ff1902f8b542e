// SPDX-License-Identifier: Apache-2.0
#include "llm/answer.h"

#include <algorithm>

#include "base/text.h"
#include "llm/client.h"
#include "llm/tokens.h"

namespace cutegen::llm {
namespace {

std::string beginning(const std::string& text) {
  return sanitize(text.substr(0, 200), 200);
}

std::string without_key(std::string text, const std::string& key) {
  if (key.empty()) return text;
  return replace_all(std::move(text), key, "[key]");
}

void take_out_key(Json& json, const std::string& key) {
  if (json.is_string()) json = without_key(json.get<std::string>(), key);
  if (json.is_structured())
    for (Json& inner : json) take_out_key(inner, key);
}

}  // namespace

AnswerReader::AnswerReader(const HttpModelOptions& options, const ChatRequest& request)
    : options_(options), api_(api_of(options.provider.api)), request_(request) {}

Attempt AnswerReader::failed(Fault fault) const {
  fault.error.message = without_key(fault.error.message, options_.key);
  return {.reply = std::nullopt, .fault = std::move(fault)};
}

Attempt AnswerReader::stream(const HttpOutcome& outcome, const Assembler& assembler) const {
  if (outcome.error && outcome.error->kind != ErrorKind::world)
    return failed({.kind = FaultKind::fatal, .error = *outcome.error});
  Json so_far = assembler.response();
  if (Json error = assembler.error(); !error.is_null()) {
    Fault fault =
        read_fault({.status = 200, .headers = outcome.headers, .body = {}, .error = error},
                   options_.provider.name);
    auto reply = api_.decode(so_far);
    bool began = reply && (!reply->message.text.empty() || reply->usage.total() > 0);
    if (began && fault.kind == FaultKind::retry) return cut(so_far, fault.error.message);
    if (fault.kind == FaultKind::refusal) return refused(fault);
    return failed(fault);
  }
  if (!assembler.complete())
    return cut(so_far, outcome.error ? outcome.error->message : "the stream ended in the middle");
  auto reply = api_.decode(so_far);
  if (!reply) return cut(so_far, reply.error().message);
  return finished(std::move(*reply));
}

Attempt AnswerReader::body(const HttpOutcome& outcome) const {
  if (outcome.error && outcome.error->kind != ErrorKind::world)
    return failed({.kind = FaultKind::fatal, .error = *outcome.error});
  if (outcome.status == 0)
    return failed({.kind = FaultKind::retry,
                   .error = {.kind = ErrorKind::world,
                             .message = "cannot reach " + std::string(options_.provider.name) +
                                        " at " + options_.url + ": " +
                                        (outcome.error ? outcome.error->message : "no answer"),
                             .where = {},
                             .remedy = "check the network and --model-url"}});
  if (outcome.status != 200) {
    Fault fault = read_fault(
        {.status = outcome.status, .headers = outcome.headers, .body = outcome.body, .error = {}},
        options_.provider.name);
    return fault.kind == FaultKind::refusal ? refused(fault) : failed(fault);
  }
  auto json = parse_json(outcome.body, "answer");
  if (outcome.error || !json)
    return cut(Json::object(), outcome.error
                                   ? outcome.error->message
                                   : "the answer is not JSON: " + beginning(outcome.body));
  if (Json error = error_of_body(*json); !error.is_null() && !json->contains("choices")) {
    Fault fault =
        read_fault({.status = 200, .headers = outcome.headers, .body = {}, .error = error},
                   options_.provider.name);
    return fault.kind == FaultKind::refusal ? refused(fault) : failed(fault);
  }
  auto reply = api_.decode(*json);
  if (!reply) return cut(Json::object(), reply.error().message);
  return finished(std::move(*reply));
}

// The provider refused the question before the model saw it.
Attempt AnswerReader::refused(const Fault& fault) const {
  ChatReply reply;
  reply.message.speaker = Speaker::assistant;
  reply.stop = Stop::refusal;
  reply.detail = without_key(fault.error.message, options_.key);
  reply.model = options_.model;
  reply.usage.input = estimate_tokens(request_);
  reply.usage.estimated = true;
  return finished(std::move(reply));
}

Attempt AnswerReader::cut(const Json& so_far, std::string why) const {
  ChatReply reply;
  if (auto decoded = api_.decode(so_far)) reply = std::move(*decoded);
  reply.message.speaker = Speaker::assistant;
  int64_t written = estimate_tokens(reply.message);
  if (!reply.message.opaque.is_null()) written += estimate_tokens(dump_json(reply.message.opaque));
  reply.message.opaque = {};  // never return incomplete reasoning
  reply.message.calls.clear();
  reply.stop = Stop::cut;
  reply.detail = sanitize(without_key(std::move(why), options_.key), 300);
  if (reply.usage.all_input() == 0) reply.usage.input = estimate_tokens(request_);
  // A broken stream reports usage only for its beginning.
  reply.usage.output = std::max(reply.usage.output, written);
  reply.usage.estimated = true;
  return finished(std::move(reply));
}

Attempt AnswerReader::finished(ChatReply reply) const {
  if (reply.usage.total() == 0) {
    reply.usage.input = estimate_tokens(request_);
    reply.usage.output = estimate_tokens(reply.message);
    reply.usage.estimated = true;
  }
  if (reply.model.empty()) reply.model = options_.model;
  reply.message.text = without_key(std::move(reply.message.text), options_.key);
  take_out_key(reply.message.opaque, options_.key);
  for (ToolCall& call : reply.message.calls) {
    take_out_key(call.arguments, options_.key);
    call.malformed = without_key(std::move(call.malformed), options_.key);
  }
  if (options_.is_free)
    reply.cost_usd = 0;
  else if (!reply.cost_usd && options_.price)
    reply.cost_usd = options_.price->cost(reply.usage);
  return {.reply = std::move(reply), .fault = {}};
}

}  // namespace cutegen::llm
