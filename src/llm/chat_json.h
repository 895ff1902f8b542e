// SPDX-License-Identifier: Apache-2.0
// Chat values as JSON, for recordings, relays and the journal.
//
// Contract: to_json omits empty fields. from_json refuses unknown fields and names their place.
// request_hash covers everything except the label; equal requests have equal hashes.
//
// Example:
//   Json j = to_json(request);
//   CG_TRY(ChatRequest same, chat_request_from_json(j, "x.json"));
#pragma once

#include "llm/chat.h"

namespace cutegen::llm {

const char* to_string(Stop stop);
Json to_json(const Message& message);
Json to_json(const ChatRequest& request);
Json to_json(const Usage& usage);
Json to_json(const ChatReply& reply);
Result<ChatRequest> chat_request_from_json(const Json& json, const std::string& where);
Result<Usage> usage_from_json(const Json& json, const std::string& where);
Result<ChatReply> chat_reply_from_json(const Json& json, const std::string& where);

std::string request_hash(const ChatRequest& request);
// The first difference of two JSON values, with both values shortened. Long texts show the part
// around the differing byte.
struct Difference {
  std::string place;  // a JSON pointer; "/messages/0/text: byte 7" in texts
  std::string recorded, now;
};
std::optional<Difference> find_difference(const Json& recorded, const Json& now);
// The same in words; empty if equal.
std::string first_difference(const Json& recorded, const Json& now);

}  // namespace cutegen::llm
