// SPDX-License-Identifier: Apache-2.0
// Converts requests and replies to and from JSON, for recordings, relays and the journal.
//
// Contract: to_json() omits empty fields. If read_json() finds an unknown field, it returns an
// error that names the field's place. The function request_hash() hashes all fields of a request
// except `label` and `files`, so two requests that differ only in `label` and `files` have the same
// hash.
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
// Describes the first difference of two JSON values. `recorded` and `now` are shortened; for long
// texts, they contain only the part around the differing byte.
struct Difference {
  std::string place;  // a JSON pointer; within a text also the position: "/messages/0/text: byte 7"
  std::string recorded, now;
};
std::optional<Difference> find_difference(const Json& recorded, const Json& now);
// Returns the first difference of two JSON values as text for a message; empty if they are equal.
std::string first_difference(const Json& recorded, const Json& now);

}  // namespace cutegen::llm
