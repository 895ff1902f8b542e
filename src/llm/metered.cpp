// SPDX-License-Identifier: Apache-2.0
#include "llm/metered.h"

#include "base/log.h"
#include "llm/chat_json.h"

namespace cutegen::llm {
namespace {

// Whether cutegen gave up the call although the provider may have answered it and may charge for
// it.
bool in_doubt(const Error& error) {
  return error.kind == ErrorKind::cancelled || error.kind == ErrorKind::timeout;
}

}  // namespace

Result<ChatReply> MeteredModel::chat(const Context& ctx, const ChatRequest& request) {
  for (int attempt = 0;; ++attempt) {
    CG_TRY(ChatReply reply, call_once(ctx, request));
    if (reply.stop != Stop::cut) return reply;
    if (attempt == kCutRetries)
      return world_error("the answers of '" + name() + "' broke off " +
                             std::to_string(attempt + 1) + " times in a row, last: " + reply.detail,
                         "check the network, then resume the run");
    log_info("the answer of '{}' broke off ({}); cutegen asks again", name(), reply.detail);
  }
}

Result<ChatReply> MeteredModel::call_once(const Context& ctx, const ChatRequest& request) {
  CG_CHECK(ctx.check("asking " + name()));
  auto opened = ledger_.open_call(inner_, request);
  if (!opened) {
    if (is_budget_end(opened.error()))
      CG_CHECK(sink_.record(EventType::call_refused, {{"label", request.label},
                                                      {"request", to_json(request)},
                                                      {"request_hash", request_hash(request)},
                                                      {"reason", opened.error().message}}));
    return fail(opened.error());
  }
  int64_t call = opened->at("call").get<int64_t>();
  if (auto recorded = sink_.record(EventType::call_started, *opened); !recorded) {
    ledger_.drop_call(call);
    return fail(recorded.error());
  }
  auto before = Clock::now();
  auto reply = inner_.chat(ctx, request);
  if (!reply && in_doubt(reply.error())) return reply;
  Json data{{"call", call}, {"request_hash", opened->at("request_hash")}};
  if (reply)
    data["reply"] = to_json(*reply);
  else
    data["error"] = to_json(reply.error());
  data["elapsed_ms"] =
      std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - before).count();
  ledger_.apply(EventType::call_ended, data);
  CG_CHECK(sink_.record(EventType::call_ended, data));
  return reply;
}

}  // namespace cutegen::llm
