// SPDX-License-Identifier: Apache-2.0
// RelayModel: a person or another program acts as the model, through files in a folder.
//
// Contract (docs/models.md explains it to users): question N is NNNN.request.md for people and
// NNNN.request.json for programs. NNNN.program holds the files of the program to change, if there
// is one. The answer is NNNN.answer.md (the reply's text) or NNNN.answer.json ({"text", "calls",
// "refusal"}). If an answer is unusable, NNNN.problem.txt says why and the relay waits for a better
// one. A question that is already in the folder under the same label keeps its number, and an
// existing answer is used, so runs can resume. Files appear complete. Several processes may share a
// folder.
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
  std::chrono::minutes wait{0};            // longest wait for an answer; 0: no limit
  std::chrono::milliseconds poll{200};     // the interval between looks at the folder
  std::chrono::milliseconds settled{400};  // a .md is complete if unchanged for this long
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
  std::map<std::string, std::string> numbers_;  // numbers of questions, by their identity
};

// The reply in NNNN.answer.json.
Result<ChatReply> relay_reply_from_json(const Json& json, const std::string& where);
// NNNN.request.md: the question for people.
std::string relay_page(const ChatRequest& request, const std::string& number);

}  // namespace cutegen::llm
