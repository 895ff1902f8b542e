// SPDX-License-Identifier: Apache-2.0
#include "llm/answer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "llm/client.h"

namespace cutegen::llm {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr const char* kKey = "sk-secret";

// Reads the body of an answer to one question.
Attempt read(int status, const std::string& body) {
  HttpModelOptions options;
  options.provider = *find_provider("openai");
  options.model = "m1", options.url = "http://host", options.key = kKey;
  options.price = PriceEntry{.rates = {.input = 1, .cached = 1, .cache_write = 1, .output = 1}};
  const ChatRequest request{.messages = {{.text = "What is 6 times 7?"}}};
  return AnswerReader(options, request).body({.status = status, .body = body});
}

TEST(AnswerReader, TakesAnAnswerThatIsNoJsonAsCut) {
  const Attempt a = read(200, "<html>proxy of sk-secret");
  ASSERT_TRUE(a.reply);
  EXPECT_EQ(a.reply->stop, Stop::cut);
  EXPECT_THAT(a.reply->detail, HasSubstr("the answer is not JSON: <html>proxy of [key]"));
  EXPECT_TRUE(a.reply->usage.estimated);
  EXPECT_GT(a.reply->usage.input, 0);
  EXPECT_GT(a.reply->cost_usd.value_or(0), 0);
}

TEST(AnswerReader, TakesARefusedQuestionAsAReply) {
  const Attempt a =
      read(400, R"({"error": {"code": "content_filter", "message": "no sk-secret"}})");
  ASSERT_TRUE(a.reply);
  EXPECT_EQ(a.reply->stop, Stop::refusal);
  EXPECT_EQ(a.reply->detail, "no [key]");
  EXPECT_EQ(a.reply->model, "m1");
}

TEST(AnswerReader, NamesTheFaultWithoutTheKey) {
  const Attempt unreachable = read(0, "");
  EXPECT_FALSE(unreachable.reply);
  EXPECT_EQ(unreachable.fault.kind, FaultKind::retry);
  EXPECT_THAT(unreachable.fault.error.message, HasSubstr("cannot reach openai at http://host"));
  const Attempt key = read(401, R"({"error": {"message": "sk-secret is unknown"}})");
  EXPECT_EQ(key.fault.kind, FaultKind::fatal);
  EXPECT_THAT(key.fault.error.message, HasSubstr("[key] is unknown"));
  EXPECT_THAT(key.fault.error.message, Not(HasSubstr(kKey)));
}

}  // namespace
}  // namespace cutegen::llm
