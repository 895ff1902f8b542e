// SPDX-License-Identifier: Apache-2.0
#include "llm/replay.h"

#include <algorithm>

#include "base/text.h"
#include "llm/ledger.h"

namespace cutegen::llm {
namespace {

constexpr size_t kShownLabel = 80;

int64_t call_number(const Json& data) {
  auto it = data.find("call");
  return it != data.end() && it->is_number_integer() ? it->get<int64_t>() : 0;
}

}  // namespace

Result<void> Recording::apply(EventType type, const Json& data) {
  if (type != EventType::call_started && type != EventType::call_ended &&
      type != EventType::call_refused)
    return {};
  ObjectReader r(data, to_string(type));
  if (type == EventType::call_ended) {
    auto position = positions_.find(call_number(data));
    if (position == positions_.end() || !r.has("reply")) return {};
    CG_TRY(Json reply, r.object("reply"));
    CG_TRY(ChatReply read, read_json<ChatReply>(reply, r.place("reply")));
    Exchange& exchange = exchanges_[position->second];
    if (read.stop == Stop::cut) return {};
    exchange.reply = std::move(read);
    return {};
  }
  Exchange exchange;
  CG_TRY(Json request, r.object("request"));
  CG_TRY(exchange.request, read_json<ChatRequest>(request, r.place("request")));
  if (type == EventType::call_refused) {
    CG_TRY(exchange.refused, r.string("reason"));
  } else {
    positions_[call_number(data)] = exchanges_.size();
    if (r.has("reserved_usd")) {
      CG_TRY(exchange.most_usd, r.number("reserved_usd"));
    }
  }
  exchanges_.push_back(std::move(exchange));
  return {};
}

ReplayModel::ReplayModel(std::string name, std::vector<Exchange> exchanges,
                         std::unique_ptr<ChatModel> then)
    : name_(std::move(name)), then_(std::move(then)) {
  for (Exchange& exchange : exchanges) {
    std::string hash = request_hash(exchange.request);
    entries_.push_back({.exchange = std::move(exchange), .hash = std::move(hash)});
  }
}

// Finds the first unused entry that has this question and an answer.
ReplayModel::Entry* ReplayModel::find(const std::string& hash) {
  for (Entry& entry : entries_)
    if (!entry.taken && entry.hash == hash && entry.answered()) return &entry;
  return nullptr;
}

// Whether an unrecorded question may continue the run: no recorded answer is left, or the recorded
// run asked it too and got no answer.
bool ReplayModel::may_go_on(const std::string& hash) const {
  return std::none_of(entries_.begin(), entries_.end(),
                      [](const Entry& e) { return !e.taken && e.answered(); }) ||
         std::any_of(entries_.begin(), entries_.end(),
                     [&](const Entry& e) { return !e.answered() && e.hash == hash; });
}

Result<ChatReply> ReplayModel::chat(const Context& ctx, const ChatRequest& request) {
  CG_CHECK(ctx.check("replaying"));
  {
    std::lock_guard lock(mutex_);
    const std::string hash = request_hash(request);
    if (Entry* entry = find(hash)) {
      entry->taken = true;
      if (!entry->exchange.reply) return fail(budget_end(entry->exchange.refused));
      return *entry->exchange.reply;
    }
    if (!may_go_on(hash)) return fail(divergence(request));
  }
  if (then_) return then_->chat(ctx, request);
  return user_error("the recording has no answer to '" + sanitize(request.label, kShownLabel) +
                        "': it ends there",
                    name_, "replay a finished run, or continue with a model");
}

Error ReplayModel::divergence(const ChatRequest& request) {
  auto next = std::find_if(entries_.begin(), entries_.end(),
                           [](const Entry& e) { return !e.taken && e.answered(); });
  CG_ASSERT(next != entries_.end());
  Json recorded = to_json(next->exchange.request), now = to_json(request);
  recorded.erase("label");
  now.erase("label");
  difference_ = find_difference(recorded, now);
  return {.kind = ErrorKind::user,
          .message = "question " + std::to_string(next - entries_.begin() + 1) + " ('" +
                     sanitize(request.label, kShownLabel) + "') is not the recorded one ('" +
                     sanitize(next->exchange.request.label, kShownLabel) +
                     "'); first difference at " + first_difference(recorded, now),
          .where = name_,
          .remedy = "replay with the version and settings that recorded the run"};
}

std::optional<double> ReplayModel::most_usd(const ChatRequest& request) const {
  std::string hash = request_hash(request);
  {
    std::lock_guard lock(mutex_);
    for (const Entry& entry : entries_)
      if (!entry.taken && entry.hash == hash && entry.answered())
        return entry.exchange.most_usd.value_or(0);
  }
  return then_ ? then_->most_usd(request) : 0;
}

bool ReplayModel::has_tools() const {
  if (then_) return then_->has_tools();
  return std::any_of(entries_.begin(), entries_.end(),
                     [](const Entry& e) { return !e.exchange.request.tools.empty(); });
}

std::optional<Difference> ReplayModel::difference() const {
  std::lock_guard lock(mutex_);
  return difference_;
}

size_t ReplayModel::left() const {
  std::lock_guard lock(mutex_);
  return size_t(std::count_if(entries_.begin(), entries_.end(),
                              [](const Entry& e) { return !e.taken && e.answered(); }));
}

}  // namespace cutegen::llm
