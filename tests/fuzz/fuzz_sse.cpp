// SPDX-License-Identifier: Apache-2.0
// libFuzzer target: any bytes as a model's stream: the events are the same for pieces of any size,
// and every API can read them.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include "llm/api.h"

namespace {

using namespace cutegen;
using namespace cutegen::llm;

std::vector<SseEvent> events_of(std::string_view text, size_t piece) {
  std::vector<SseEvent> out;
  auto sink = [&](const SseEvent& event) -> Result<void> {
    out.push_back(event);
    return {};
  };
  SseParser sse;
  for (; !text.empty(); text.remove_prefix(std::min(piece, text.size())))
    if (!sse.feed(text.substr(0, piece), sink)) std::abort();  // far below the limit
  if (!sse.finish(sink)) std::abort();
  return out;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  auto whole = events_of(text, text.size() + 1), pieces = events_of(text, 1 + data[0] % 16);
  if (whole.size() != pieces.size()) std::abort();
  for (size_t i = 0; i < whole.size(); ++i)
    if (whole[i].name != pieces[i].name || whole[i].data != pieces[i].data) std::abort();
  for (ApiKind kind : {ApiKind::openai_chat, ApiKind::openai_responses, ApiKind::anthropic}) {
    const Api& api = api_of(kind);
    auto assembler = api.assembler();
    for (const SseEvent& event : whole)
      if (!assembler->take(event)) break;
    (void)api.decode(assembler->response());
  }
  return 0;
}
