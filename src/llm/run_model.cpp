// SPDX-License-Identifier: Apache-2.0
#include "llm/run_model.h"

namespace cutegen::llm {

RunModel::RunModel(std::unique_ptr<ChatModel> client, Limits limits, CallSink& sink)
    : client_(std::move(client)), ledger_(limits), sink_(sink) {}

Result<void> RunModel::fold(EventType type, const Json& data) {
  ledger_.apply(type, data);
  if (type == EventType::answered) unanswered_ = Recording();
  return unanswered_.apply(type, data);
}

ChatModel& RunModel::begin_ask() {
  std::unique_ptr<ChatModel> live;
  if (client_) live = std::make_unique<MeteredModel>(*client_, ledger_, sink_);
  open_ = std::make_unique<ReplayModel>(client_ ? client_->name() : "the recorded run",
                                        unanswered_.exchanges(), std::move(live));
  return *open_;
}

}  // namespace cutegen::llm
