// SPDX-License-Identifier: Apache-2.0
// AnswerReader: converts a model server's response to one request into a reply or a fault.
//
// Contract: an answer that broke off in the middle becomes a reply with Stop::cut and the cost so
// far. A refusal of the provider becomes a reply with Stop::refusal. If the server reports no token
// counts, AnswerReader estimates the counts. AnswerReader removes the API key from replies and
// faults. The options and the request must outlive the AnswerReader.
//
// Example: Attempt a = AnswerReader(options, request).body(outcome); if (a.reply) use(*a.reply);
#pragma once

#include <optional>
#include <string>

#include "llm/api.h"
#include "llm/faults.h"
#include "llm/http.h"

namespace cutegen::llm {

struct HttpModelOptions;

struct Attempt {
  std::optional<ChatReply> reply;
  Fault fault;  // meaningful only if `reply` is empty
};

class AnswerReader {
 public:
  AnswerReader(const HttpModelOptions& options, const ChatRequest& request);
  Attempt stream(const HttpOutcome& outcome, const Assembler& assembler) const;
  Attempt body(const HttpOutcome& outcome) const;

 private:
  Attempt cut(const Json& so_far, std::string why) const;
  Attempt refused(const Fault& fault) const;
  Attempt failed(Fault fault) const;
  Attempt finished(ChatReply reply) const;

  const HttpModelOptions& options_;
  const Api& api_;
  const ChatRequest& request_;
};

}  // namespace cutegen::llm
