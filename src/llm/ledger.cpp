// SPDX-License-Identifier: Apache-2.0
#include "llm/ledger.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/log.h"
#include "core/verdict.h"
#include "llm/chat_json.h"
#include "llm/tokens.h"

namespace cutegen::llm {
namespace {

constexpr const char* kBudget = "budget: ";
constexpr double kRounding = 1e-9;  // dollars; sums of decimal prices are not exact
constexpr double kMsPerMinute = 60'000;

std::optional<double> number(const Json& data, const char* key) {
  auto it = data.find(key);
  if (it == data.end() || !it->is_number()) return std::nullopt;
  return it->get<double>();
}

int64_t integer(const Json& data, const char* key) {
  auto it = data.find(key);
  return it != data.end() && it->is_number_integer() ? it->get<int64_t>() : 0;
}

}  // namespace

Error budget_end(const std::string& why) {
  return {.kind = ErrorKind::user,
          .message = why.starts_with(kBudget) ? why : kBudget + why,
          .where = {},
          .remedy = "give the run a larger budget to continue"};
}

bool is_budget_end(const Error& error) {
  return error.kind == ErrorKind::user && error.message.starts_with(kBudget);
}

Result<Json> Ledger::open_call(const ChatModel& model, const ChatRequest& request) {
  Reserved wanted{.usd = model.most_usd(request),
                  .tokens = most_tokens(request) + request.max_output_tokens};
  std::lock_guard lock(mutex_);
  if (limits_.usd > 0 && !wanted.usd)
    return user_error("cutegen knows no price for the model '" + model.name() +
                          "', so it cannot keep to a budget in dollars",
                      "--budget-usd", "add the model to a price file, or limit tokens instead");
  CG_CHECK(check_fits(wanted));
  int64_t call = last_call_ + 1;
  reserve(call, wanted);
  Json data{{"call", call}, {"label", request.label}, {"model", model.name()}};
  data["request"] = to_json(request);
  data["request_hash"] = request_hash(request);
  if (wanted.usd) data["reserved_usd"] = *wanted.usd;
  data["reserved_tokens"] = wanted.tokens;
  return data;
}

Result<void> Ledger::check_fits(const Reserved& wanted) const {
  Spent now = sum();
  double usd = now.usd + now.open_usd, more = wanted.usd.value_or(0);
  if (limits_.usd > 0 && usd + more > limits_.usd + kRounding)
    return fail(
        budget_end(fmt::format("dollars (${:.4f} of ${:.4f} spent, the next call may cost "
                               "${:.4f})",
                               usd, limits_.usd, more)));
  int64_t tokens = now.usage.total() + now.open_tokens;
  if (limits_.tokens > 0 && tokens + wanted.tokens > limits_.tokens)
    return fail(budget_end(fmt::format("tokens ({} of {} spent, the next call may take {})", tokens,
                                       limits_.tokens, wanted.tokens)));
  if (limits_.minutes > 0 && now.clock_ms >= limits_.minutes * kMsPerMinute)
    return fail(budget_end(
        fmt::format("minutes ({:.1f} of {:.1f})", now.clock_ms / kMsPerMinute, limits_.minutes)));
  return {};
}

void Ledger::reserve(int64_t call, const Reserved& reserved) {
  open_[call] = reserved;
  last_call_ = std::max(last_call_, call);
}

void Ledger::drop_call(int64_t call) {
  std::lock_guard lock(mutex_);
  open_.erase(call);
}

void Ledger::apply(EventType type, const Json& data) {
  if (!data.is_object()) return;
  std::lock_guard lock(mutex_);
  spent_.clock_ms = std::max(spent_.clock_ms, integer(data, "clock_ms"));
  int64_t call = integer(data, "call");
  if (type == EventType::evaluated) {
    auto verdict = data.find("verdict");
    if (verdict == data.end() || status_in(*verdict) != Status::aborted) ++spent_.evaluations;
  } else if (type == EventType::call_started && call > last_call_) {
    reserve(call,
            {.usd = number(data, "reserved_usd"), .tokens = integer(data, "reserved_tokens")});
  } else if (type == EventType::call_ended && open_.count(call)) {
    end_call(call, data);
  }
}

void Ledger::end_call(int64_t call, const Json& data) {
  Reserved reserved = open_[call];
  open_.erase(call);
  auto it = data.find("reply");
  if (it == data.end()) return;  // the call ended in an error, which costs nothing
  ++spent_.calls;
  auto reply = read_json<ChatReply>(*it, "call_ended/reply");
  if (!reply) {  // another version of cutegen recorded the reply: charge the reservation
    log_warning("a recorded reply cannot be read: {}", reply.error().message);
    spent_.usd += reserved.usd.value_or(0);
    spent_.usage.input += reserved.tokens;
    return;
  }
  spent_.usage += reply->usage;
  spent_.usd += reply->cost_usd.value_or(0);
  spent_.unpriced |= !reply->cost_usd;
}

Spent Ledger::sum() const {
  Spent out = spent_;
  for (const auto& [call, reserved] : open_) {
    out.open_usd += reserved.usd.value_or(0);
    out.open_tokens += reserved.tokens;
    ++out.open_calls;
  }
  return out;
}

Spent Ledger::spent() const {
  std::lock_guard lock(mutex_);
  return sum();
}

std::optional<std::string> Ledger::ended() const {
  Spent now = spent();
  if (limits_.usd > 0 && now.usd + now.open_usd >= limits_.usd - kRounding)
    return fmt::format("budget: dollars (${:.4f} of ${:.4f})", now.usd + now.open_usd, limits_.usd);
  int64_t tokens = now.usage.total() + now.open_tokens;
  if (limits_.tokens > 0 && tokens >= limits_.tokens)
    return fmt::format("budget: tokens ({} of {})", tokens, limits_.tokens);
  if (limits_.evaluations > 0 && now.evaluations >= limits_.evaluations)
    return fmt::format("budget: evaluations ({} of {})", now.evaluations, limits_.evaluations);
  if (limits_.minutes > 0 && now.clock_ms >= limits_.minutes * kMsPerMinute)
    return fmt::format("budget: minutes ({:.1f} of {:.1f})", now.clock_ms / kMsPerMinute,
                       limits_.minutes);
  return std::nullopt;
}

Json to_json(const Spent& spent) {
  return {{"usd", spent.usd},
          {"unpriced", spent.unpriced},
          {"calls", spent.calls},
          {"usage", to_json(spent.usage)},
          {"open_calls", spent.open_calls},
          {"open_usd", spent.open_usd},
          {"open_tokens", spent.open_tokens},
          {"evaluations", spent.evaluations},
          {"clock_ms", spent.clock_ms}};
}

}  // namespace cutegen::llm
