// SPDX-License-Identifier: Apache-2.0
#include "llm/sse.h"

#include <gtest/gtest.h>

#include <vector>

namespace cutegen::llm {
namespace {

struct Heard {
  std::vector<std::string> events;  // "name|data"
  std::optional<Error> error;
};

Heard hear(const std::string& bytes, size_t piece, size_t limit = 1 << 20) {
  SseParser sse(limit);
  Heard heard;
  auto sink = [&](const SseEvent& e) -> Result<void> {
    heard.events.push_back(e.name + "|" + e.data);
    return {};
  };
  for (size_t i = 0; i < bytes.size(); i += piece)
    if (auto fed = sse.feed(std::string_view(bytes).substr(i, piece), sink); !fed) {
      heard.error = fed.error();
      return heard;
    }
  if (auto end = sse.finish(sink); !end) heard.error = end.error();
  return heard;
}

TEST(Sse, IsTheSameInPiecesOfEverySize) {
  const std::string text =
      "\xEF\xBB\xBF: a comment\r\n"
      "event: one\r\ndata: first\r\ndata:  second\r\n\r\n"
      "data: lone cr\r\rid: 7\ndata\nretry: 5\ndata: x: y\n\n"
      "event: unheard\n\n"
      "data: \xE6\xBC\xA2\n\n"
      "data: the last has no blank line";
  const std::vector<std::string> wanted{"one|first\n second", "|lone cr", "|\nx: y",
                                        "|\xE6\xBC\xA2", "|the last has no blank line"};
  for (size_t piece = 1; piece <= text.size(); ++piece) {
    Heard heard = hear(text, piece);
    EXPECT_FALSE(heard.error);
    EXPECT_EQ(heard.events, wanted) << piece;
  }
}

TEST(Sse, BoundsAnEvent) {
  EXPECT_TRUE(hear("data: " + std::string(200, 'x') + "\n\n", 7, 100).error);
  EXPECT_TRUE(hear(std::string(200, 'x'), 200, 100).error) << "a line without an end";
  std::string many;
  for (int i = 0; i < 50; ++i) many += "data: abcd\n";
  EXPECT_TRUE(hear(many, 11, 100).error) << "an event without an end";
  std::string events;
  for (int i = 0; i < 50; ++i) events += "data: abcd\n\n";
  EXPECT_EQ(hear(events, 13, 100).events.size(), 50u) << "but any number of events";
}

TEST(Sse, HandsTheSinksErrorOn) {
  SseParser sse;
  auto fed = sse.feed("data: a\n\ndata: b\n\n",
                      [](const SseEvent&) -> Result<void> { return world_error("no more"); });
  ASSERT_FALSE(fed);
  EXPECT_EQ(fed.error().message, "no more");
}

}  // namespace
}  // namespace cutegen::llm
