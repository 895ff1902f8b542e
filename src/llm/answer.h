// SPDX-License-Identifier: Apache-2.0
// AnswerReader: turns a server's response to one request into a reply or a fault.
//
// Contract: an answer that broke off in the middle is a reply with Stop::cut and its cost. A
// refused question is a reply with Stop::refusal. A reply without usage gets an estimate. The key
// never appears in a reply or a fault. Options and request must outlive the reader.
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
  Fault fault;  // set if there is no reply
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
