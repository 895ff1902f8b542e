// SPDX-License-Identifier: Apache-2.0
// Replay: answers questions from a recording of earlier calls, and reports the first question that
// differs from the recording.
//
// Contract: Recording converts a run's events (call_started, call_ended, call_refused) to
// exchanges, in the order of the questions. An exchange has no reply if its call was refused,
// failed or broke off, or if its end was not recorded. ReplayModel answers each question with the
// first unused answer that was recorded for the same question. If a question was not recorded, but
// the recording has unused answers, chat() returns a user error that names the first difference.
// If `then` is set, ReplayModel passes a question to this model when all answers are used, or when
// the recorded run got no answer to the question. With a MeteredModel as `then`, a resumed run
// continues a dialogue without paying again. As the inner model of a MeteredModel, a ReplayModel
// answers the questions of a whole run.
//
// Example: Recording r; for (auto& e : events) CG_CHECK(r.apply(e.type, e.data));
//          ReplayModel model("replay:last", r.exchanges());
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "core/event_type.h"
#include "llm/chat_json.h"

namespace cutegen::llm {

struct Exchange {
  ChatRequest request;
  std::optional<ChatReply> reply;
  // The reason if the call would have exceeded the budget; `reply` is then empty.
  std::string refused;
  std::optional<double> most_usd;
};

class Recording {
 public:
  Result<void> apply(EventType type, const Json& data);
  const std::vector<Exchange>& exchanges() const { return exchanges_; }

 private:
  std::vector<Exchange> exchanges_;
  std::map<int64_t, size_t> positions_;  // maps a call number to its index in exchanges_
};

class ReplayModel final : public ChatModel {
 public:
  ReplayModel(std::string name, std::vector<Exchange> exchanges,
              std::unique_ptr<ChatModel> then = nullptr);
  Result<ChatReply> chat(const Context& ctx, const ChatRequest& request) override;
  const std::string& name() const override { return name_; }
  // Asks `then`, if there is one. Otherwise, returns whether a recorded question offered tools.
  bool has_tools() const override;
  std::optional<double> most_usd(const ChatRequest& request) const override;
  // Returns the number of unused recorded answers.
  size_t left() const;
  // Returns how the question that chat() refused differs from the question that was recorded at its
  // place.
  std::optional<Difference> difference() const;

 private:
  struct Entry {
    Exchange exchange;
    std::string hash;
    bool taken = false;
    bool answered() const { return exchange.reply || !exchange.refused.empty(); }
  };
  Entry* find(const std::string& hash);
  bool may_go_on(const std::string& hash) const;
  Error divergence(const ChatRequest& request);

  std::string name_;
  std::vector<Entry> entries_;
  std::unique_ptr<ChatModel> then_;
  std::optional<Difference> difference_;
  mutable std::mutex mutex_;
};

}  // namespace cutegen::llm
