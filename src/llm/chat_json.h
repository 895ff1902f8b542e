// SPDX-License-Identifier: Apache-2.0
// Chat values as JSON, for recordings, relays and the journal.
//
// Contract: to_json omits empty fields. read_json refuses unknown fields and names their place.
// request_hash covers everything except the label; equal requests have equal hashes.
//
// Example:
//   Json j = to_json(request);
//   CG_TRY(ChatRequest same, read_json<ChatRequest>(j, "x.json"));
#pragma once

#include "base/fields.h"
#include "llm/chat.h"

namespace cutegen::llm {

using cutegen::to_json;
using cutegen::to_string;

Names<Stop> enum_names(Stop);
void fields(Fields& v, Message& message);
void fields(Fields& v, ChatRequest& request);
void fields(Fields& v, Usage& usage);
void fields(Fields& v, ChatReply& reply);

std::string request_hash(const ChatRequest& request);
// The first difference of two JSON values, with both values shortened. Long texts show the part
// around the differing byte.
struct Difference {
  std::string place;  // a JSON pointer; "/messages/0/text: byte 7" in texts
  std::string recorded, now;
};
std::optional<Difference> find_difference(const Json& recorded, const Json& now);
// The same as text; empty if equal.
std::string first_difference(const Json& recorded, const Json& now);

}  // namespace cutegen::llm
