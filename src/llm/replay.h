// SPDX-License-Identifier: Apache-2.0
// Replay: a model that answers from a recording and reports the first question that differs from
// it.
//
// Contract: Recording folds a run's events (call_started, call_ended, call_refused) into exchanges,
// in the order of the questions. A call that never ended, failed or was cut has no reply.
// ReplayModel answers each question with the first unused answer recorded for it. While answers are
// left, an unrecorded question is a user error that names the first difference. When all answers
// are used, further questions go to the model `then`, if it is set. With a MeteredModel as `then`,
// ReplayModel continues an interrupted dialogue without asking (and paying) again. As the model of
// a MeteredModel, it answers the questions of a whole run.
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
  std::string refused;  // why the budget refused it; there is then no reply
  std::optional<double> most_usd;
};

class Recording {
 public:
  Result<void> apply(EventType type, const Json& data);
  const std::vector<Exchange>& exchanges() const { return exchanges_; }

 private:
  std::vector<Exchange> exchanges_;
  std::map<int64_t, size_t> positions_;  // by call number
};

class ReplayModel final : public ChatModel {
 public:
  ReplayModel(std::string name, std::vector<Exchange> exchanges,
              std::unique_ptr<ChatModel> then = nullptr);
  Result<ChatReply> chat(const Context& ctx, const ChatRequest& request) override;
  const std::string& name() const override { return name_; }
  // If there is no `then`: whether the recorded questions had tools.
  bool has_tools() const override;
  std::optional<double> most_usd(const ChatRequest& request) const override;
  // The number of unused answers.
  size_t left() const;
  // How the first question that is not in the recording differs from it, if there was one.
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
