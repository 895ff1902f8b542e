// SPDX-License-Identifier: Apache-2.0
#include "llm/tokens.h"

#include <cctype>

namespace cutegen::llm {
namespace {

// A word takes one token per kLettersPerToken bytes, a number one per kDigitsPerToken. A
// punctuation mark takes one token; up to kSameSignsPerToken equal marks in a row take one
// together.
constexpr int64_t kLettersPerToken = 5;
constexpr int64_t kDigitsPerToken = 3;
constexpr int64_t kSameSignsPerToken = 4;
constexpr int64_t kAroundMessage = 8;  // role marks and separators
constexpr int64_t kAroundTool = 24;    // the frame that providers add to a tool

int64_t ceil_div(int64_t a, int64_t b) {
  return (a + b - 1) / b;
}

enum class Kind { letter, digit, blank, sign, foreign };

Kind kind_of(unsigned char c) {
  if (c >= 0x80) return Kind::foreign;
  if (std::isalpha(c) || c == '_') return Kind::letter;
  if (std::isdigit(c)) return Kind::digit;
  return std::isspace(c) ? Kind::blank : Kind::sign;
}

// Estimates the tokens of a run of `n` bytes of one kind.
int64_t tokens_of_run(Kind kind, int64_t n) {
  switch (kind) {
    case Kind::letter:
      return ceil_div(n, kLettersPerToken);
    case Kind::digit:
      return ceil_div(n, kDigitsPerToken);
    case Kind::blank:
      return 1;
    case Kind::sign:
      return ceil_div(n, kSameSignsPerToken);
    case Kind::foreign:
      return ceil_div(n, 2);
  }
  return n;
}

template <class Count>
int64_t count_message(const Message& message, Count&& count) {
  int64_t total = kAroundMessage + count(message.text);
  for (const ToolCall& call : message.calls)
    total +=
        kAroundTool + count(call.name) + count(dump_json(call.arguments)) + count(call.malformed);
  for (const ToolResult& result : message.results) total += kAroundTool + count(result.text);
  return total;
}

template <class Count>
int64_t count_request(const ChatRequest& request, Count&& count) {
  int64_t total = kAroundMessage + count(request.system);
  for (const ToolSpec& tool : request.tools)
    total += kAroundTool + count(tool.name) + count(tool.description) +
             count(dump_json(tool.parameters));
  if (!request.output_schema.is_null()) total += count(dump_json(request.output_schema));
  for (const Message& message : request.messages) total += count_message(message, count);
  return total;
}

}  // namespace

int64_t estimate_tokens(std::string_view text) {
  int64_t total = 0;
  for (size_t i = 0; i < text.size();) {
    Kind kind = kind_of(uint8_t(text[i]));
    size_t end = i + 1;
    while (end < text.size() && kind_of(uint8_t(text[end])) == kind &&
           (kind != Kind::sign || text[end] == text[i]))
      ++end;
    bool joined = text[i] == ' ' && end == i + 1;  // a single blank belongs to the next word
    if (!joined) total += tokens_of_run(kind, int64_t(end - i));
    i = end;
  }
  return total;
}

// Tokenizers work on bytes, so no text has more tokens than bytes. English and code always took at
// least two bytes per token.
int64_t most_tokens(std::string_view text) {
  int64_t halves = 0;
  for (char c : text) halves += uint8_t(c) < 0x80 ? 1 : 2;
  return ceil_div(halves, 2);
}

int64_t estimate_tokens(const Message& message) {
  return count_message(message, [](std::string_view s) { return estimate_tokens(s); });
}

int64_t estimate_tokens(const ChatRequest& request) {
  return count_request(request, [](std::string_view s) { return estimate_tokens(s); });
}

int64_t most_tokens(const ChatRequest& request) {
  int64_t total = count_request(request, [](std::string_view s) { return most_tokens(s); });
  for (const Message& message : request.messages)  // the model reads returned reasoning again
    if (!message.opaque.is_null()) total += most_tokens(dump_json(message.opaque));
  return total;
}

}  // namespace cutegen::llm
