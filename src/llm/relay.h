// SPDX-License-Identifier: Apache-2.0
// RelayModel: lets a person or another program act as the model. The relay's questions and answers
// are files in a folder.
//
// Contract (docs/models.md explains it to users): RelayModel writes question number NNNN to
// NNNN.request.md for people and to NNNN.request.json for programs. If the question is about a
// kernel program, the folder NNNN.program has the kernel program's files. The person or program
// answers in the file NNNN.answer.md (the reply's text) or NNNN.answer.json ({"text", "calls",
// "refusal"}). If RelayModel cannot use an answer, it writes the reason to NNNN.problem.txt and
// waits for a better answer. When a resumed run asks a question with the same label again, the
// question keeps its number, and RelayModel uses an answer that is already in the folder. Each file
// appears with its complete content. Several processes may share a relay folder.
//
// Example: CG_TRY(auto m, RelayModel::open("relay:q", "q", {})); m->chat(ctx, request);
#pragma once

#include <chrono>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "llm/chat.h"

namespace cutegen::llm {

struct RelaySettings {
  std::chrono::minutes wait{0};            // longest wait for an answer; 0 means no limit
  std::chrono::milliseconds poll{200};     // interval at which RelayModel checks the folder
  std::chrono::milliseconds settled{400};  // an answer.md is complete if unchanged for this time
};

class RelayModel final : public ChatModel {
 public:
  static Result<std::unique_ptr<RelayModel>> open(const std::string& name,
                                                  const std::filesystem::path& dir,
                                                  const RelaySettings& settings);
  Result<ChatReply> chat(const Context& ctx, const ChatRequest& request) override;
  const std::string& name() const override { return name_; }
  bool has_tools() const override { return true; }
  std::optional<double> most_usd(const ChatRequest&) const override { return 0; }

 private:
  RelayModel(std::string name, std::filesystem::path dir, const RelaySettings& settings)
      : name_(std::move(name)), dir_(std::move(dir)), settings_(settings) {}
  Result<void> read_folder();
  Result<std::string> place(const ChatRequest& request);
  Result<std::string> claim();
  Result<std::optional<ChatReply>> look(const std::string& number);
  std::optional<std::string> settled_text(const std::string& number);
  void tell_problem(const std::string& number, const std::string& problem) const;

  std::string name_;
  std::filesystem::path dir_;
  RelaySettings settings_;
  std::mutex mutex_;
  std::map<std::string, std::string> numbers_;  // maps a hash of question and label to its number
};

// Reads the content of NNNN.answer.json.
Result<ChatReply> relay_reply_from_json(const Json& json, const std::string& where);
// Returns the content of NNNN.request.md.
std::string relay_page(const ChatRequest& request, const std::string& number);

}  // namespace cutegen::llm
