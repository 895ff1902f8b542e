// SPDX-License-Identifier: Apache-2.0
// Tests every client against the scripted server, with good answers and every kind of fault.
#include "llm/client.h"

#include <gmock/gmock.h>

#include <thread>

#include "llm/chat_json.h"
#include "llm/testing/test_server.h"

namespace cutegen::llm {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

Json steps(const Json& list) {
  return {{"steps", list}};
}

class Clients : public ::testing::TestWithParam<const char*> {
 protected:
  std::string provider() const { return GetParam(); }
};

INSTANTIATE_TEST_SUITE_P(Apis, Clients,
                         ::testing::Values("openai", "openai-responses", "anthropic"),
                         [](const auto& info) {
                           std::string name = info.param;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

TEST_P(Clients, ReadAReplyWithItsUsageAndPrice) {
  Json usage{
      {"input", 1000}, {"cached", 3000}, {"cache_written", 500}, {"output", 40}, {"reasoning", 30}};
  TestModel model(provider(), steps({{{"text", "42, since 6·7 = 42 ✓"}, {"usage", usage}}}));
  auto reply = model->chat({}, question());
  ASSERT_TRUE(reply) << reply.error().text();
  EXPECT_EQ(reply->message.text, "42, since 6·7 = 42 ✓");
  EXPECT_EQ(reply->stop, Stop::end);
  EXPECT_EQ(reply->usage.input, 1000);
  EXPECT_EQ(reply->usage.cached, 3000);
  EXPECT_EQ(reply->usage.cache_written, 500);
  EXPECT_EQ(reply->usage.output, 40);
  EXPECT_EQ(reply->usage.reasoning, 30);
  EXPECT_FALSE(reply->usage.estimated);
  double expected = provider() == "anthropic" ? (1000 * 5 + 3000 * 0.5 + 500 * 6.25 + 40 * 25) / 1e6
                                              : (1500 * 1.25 + 3000 * 0.125 + 40 * 10) / 1e6;
  ASSERT_TRUE(reply->cost_usd);
  EXPECT_NEAR(*reply->cost_usd, expected, 1e-12);
  EXPECT_LT(*reply->cost_usd, *model->most_usd(question()) + 0.02);
}

TEST_P(Clients, ReadAStreamInPiecesOfOneByte) {
  TestModel model(provider(), steps({{{"text", "naïve → 漢字 🙂"}, {"pieces", 1}}}));
  auto reply = model->chat({}, question());
  ASSERT_TRUE(reply) << reply.error().text();
  EXPECT_EQ(reply->message.text, "naïve → 漢字 🙂");
}

TEST_P(Clients, ReadAnAnswerThatIsNotStreamed) {
  TestModel model(provider(), steps({{{"text", "whole"}, {"whole", true}}}));
  auto reply = model->chat({}, question());
  ASSERT_TRUE(reply) << reply.error().text();
  EXPECT_EQ(reply->message.text, "whole");
  EXPECT_EQ(reply->usage.input, 100);
}

TEST_P(Clients, DoNotWaitForAServerThatStaysAfterTheEnd) {
  TestModel model(provider(), steps({{{"text", "done"}, {"hang", true}}}));
  auto begin = Clock::now();
  auto reply = model->chat(Context{}.with_timeout(std::chrono::seconds(5)), question());
  ASSERT_TRUE(reply) << reply.error().text();
  EXPECT_EQ(reply->message.text, "done");
  EXPECT_LT(Clock::now() - begin, std::chrono::seconds(3));
}

TEST_P(Clients, CarryToolCallsAndReasoningBackUnchanged) {
  Json call{{"name", "evaluate"}, {"arguments", {{"candidate", "c1"}, {"runs", 3}}}};
  TestModel model(provider(), steps({{{"text", "I try it."},
                                      {"reasoning", "a long thought"},
                                      {"calls", Json::array({call, call})}},
                                     {{"text", "It is right."}}}));
  ChatRequest request = question();
  request.tools.push_back({.name = "evaluate",
                           .description = "Runs a candidate.",
                           .parameters = {{"type", "object"}, {"properties", Json::object()}}});
  auto first = model->chat({}, request);
  ASSERT_TRUE(first) << first.error().text();
  EXPECT_EQ(first->stop, Stop::tool);
  ASSERT_EQ(first->message.calls.size(), 2u);
  EXPECT_EQ(first->message.calls[1].name, "evaluate");
  EXPECT_EQ(first->message.calls[1].arguments, call["arguments"]);
  EXPECT_EQ(first->message.text, "I try it.");

  // The recorded reply must work as well as the live one.
  auto kept = read_json<ChatReply>(to_json(*first), "reply");
  ASSERT_TRUE(kept) << kept.error().text();
  request.messages.push_back(kept->message);
  request.messages.push_back(
      {.results = {
           {.call_id = first->message.calls[0].id, .text = "correct"},
           {.call_id = first->message.calls[1].id, .text = "out of time", .is_error = true}}});
  auto second = model->chat({}, request);
  ASSERT_TRUE(second) << second.error().text();
  EXPECT_EQ(second->message.text, "It is right.");
  std::string sent = dump_json(model.body(1));
  EXPECT_THAT(sent, HasSubstr("out of time"));
  if (provider() == "anthropic") {
    EXPECT_THAT(sent, HasSubstr(R"("thinking":"a long thought","signature":"signed")"));
    EXPECT_THAT(sent, HasSubstr(R"("is_error":true)"));
  } else if (provider() == "openai-responses") {
    EXPECT_THAT(sent, HasSubstr(R"("encrypted_content":"sealed:a long thought")"));
    EXPECT_THAT(sent, HasSubstr(R"("type":"function_call_output","call_id":"call_1")"));
  } else {  // the API openai_chat must not return the reasoning to OpenAI
    EXPECT_THAT(sent, Not(HasSubstr("a long thought")));
    EXPECT_THAT(sent, HasSubstr(R"("role":"tool","tool_call_id":"call_1")"));
  }
}

TEST_P(Clients, KeepToolArgumentsThatAreNoJson) {
  TestModel model(provider(), steps({{{"calls", {{{"name", "f"}, {"arguments", "{\"a\": "}}}}},
                                     {{"text", "ok"}}}));
  auto reply = model->chat({}, question());
  ASSERT_TRUE(reply) << reply.error().text();
  ASSERT_EQ(reply->message.calls.size(), 1u);
  EXPECT_EQ(reply->message.calls[0].malformed, "{\"a\": ");
  ChatRequest next = question();
  next.messages.push_back(reply->message);
  next.messages.push_back(
      {.results = {{.call_id = reply->message.calls[0].id, .text = "no JSON", .is_error = true}}});
  EXPECT_TRUE(model->chat({}, next));
}

TEST_P(Clients, AskForStructuredOutputAndFallBackToWords) {
  Json refusal{
      {"error",
       {{"message", provider() == "anthropic" ? "output_config.format: not available for this model"
                                              : "response_format json_schema is not supported"},
        {"type", "invalid_request_error"}}}};
  if (provider() == "openai-responses") refusal["error"]["param"] = "text.format";
  TestModel model(provider(), steps({{{"text", "{}"}},
                                     {{"fault", "status"}, {"status", 400}, {"body", refusal}},
                                     {{"text", "{}"}}}));
  ChatRequest request = question();
  request.output_schema = {{"type", "object"},
                           {"properties", {{"secret_field", {{"type", "string"}}}}},
                           {"required", {"secret_field"}},
                           {"additionalProperties", false}};
  ASSERT_TRUE(model->chat({}, request));
  Json body = model.body(0);
  const char* place = provider() == "anthropic"          ? "/output_config/format/schema"
                      : provider() == "openai-responses" ? "/text/format/schema"
                                                         : "/response_format/json_schema/schema";
  EXPECT_EQ(body.at(Json::json_pointer(place)), request.output_schema);
  EXPECT_THAT(dump_json(body), Not(HasSubstr("It must fit this JSON schema")));

  ASSERT_TRUE(model->chat({}, request));
  body = model.body(2);
  EXPECT_FALSE(body.contains(Json::json_pointer(place)));
  EXPECT_THAT(dump_json(body), HasSubstr("It must fit this JSON schema"));
  EXPECT_THAT(dump_json(body), HasSubstr("secret_field"));
}

TEST_P(Clients, TryAgainAfterPassingFailures) {
  for (Json fault :
       {Json{{"fault", "status"}, {"status", 429}, {"headers", {{"retry-after-ms", "5"}}}},
        Json{{"fault", "status"}, {"status", 529}, {"body", {{"error", {{"type", "overloaded"}}}}}},
        Json{{"fault", "status"}, {"status", 503}, {"body", "busy"}}, Json{{"fault", "close"}},
        Json{{"fault", "html"}}, Json{{"fault", "error_inside"}}}) {
    TestModel model(provider(), steps({fault, {{"text", "at last"}}}));
    auto reply = model->chat({}, question());
    ASSERT_TRUE(reply) << fault << reply.error().text();
    EXPECT_EQ(reply->message.text, "at last");
    EXPECT_EQ(reply->usage.input, 100) << "a call that was not answered costs nothing";
    EXPECT_EQ(model.log().size(), 2u) << fault;
    EXPECT_EQ(model.body(0), model.body(1));
  }
}

TEST_P(Clients, TryAgainWhenNothingIsAnswered) {
  ModelConfig config = TestModel::quick();
  config.idle = std::chrono::milliseconds(250);
  config.retries = 1;
  TestModel model(provider(), steps({{{"fault", "silent"}}, {{"fault", "silent"}}}), config);
  auto reply = model->chat({}, question());
  ASSERT_FALSE(reply);
  EXPECT_THAT(reply.error().message, HasSubstr("silent for too long"));
  EXPECT_EQ(model.log().size(), 2u);
}

TEST_P(Clients, GiveUpAfterTheLastRetry) {
  Json fault{{"fault", "status"}, {"status", 529}, {"body", {{"error", {{"message", "busy"}}}}}};
  ModelConfig config = TestModel::quick();
  config.retries = 2;
  TestModel model(provider(), steps({fault, fault, fault, {{"text", "late"}}}), config);
  auto reply = model->chat({}, question());
  ASSERT_FALSE(reply);
  EXPECT_EQ(reply.error().kind, ErrorKind::world);
  EXPECT_THAT(reply.error().message, HasSubstr("HTTP 529"));
  EXPECT_THAT(reply.error().message, HasSubstr("busy"));
  EXPECT_THAT(reply.error().message, HasSubstr("tried 3 times"));
  EXPECT_EQ(model.log().size(), 3u);
}

TEST_P(Clients, GiveACutReplyWhenTheAnswerBreaksOff) {
  for (const char* fault : {"cut", "clean_cut", "bad_json", "error_event", "stall_mid", "stall"}) {
    ModelConfig config = TestModel::quick();
    if (std::string(fault).starts_with("stall")) config.idle = std::chrono::milliseconds(250);
    TestModel model(provider(), steps({{{"text", "half of this is lost"}, {"fault", fault}}}),
                    config);
    auto reply = model->chat({}, question());
    ASSERT_TRUE(reply) << fault << ": " << reply.error().text();
    EXPECT_EQ(reply->stop, Stop::cut) << fault;
    EXPECT_FALSE(reply->detail.empty());
    EXPECT_GT(reply->usage.all_input(), 0) << fault;
    EXPECT_TRUE(reply->usage.estimated);
    EXPECT_GT(reply->cost_usd.value_or(0), 0) << fault;
    EXPECT_EQ(model.log().size(), 1u) << "what was paid is not silently asked again";
  }
}

TEST_P(Clients, TellRefusalFromError) {
  Json forbidden{{"error",
                  {{"message", "against the rules"},
                   {"code", "content_policy_violation"},
                   {"type", "invalid_request_error"}}}};
  TestModel model(provider(), steps({{{"text", "I cannot."}, {"stop", "refusal"}},
                                     {{"fault", "status"}, {"status", 400}, {"body", forbidden}},
                                     {{"text", "too lon"}, {"stop", "length"}}}));
  for (int i = 0; i < 2; ++i) {
    auto reply = model->chat({}, question());
    ASSERT_TRUE(reply) << reply.error().text();
    EXPECT_EQ(reply->stop, Stop::refusal) << i;
  }
  auto reply = model->chat({}, question());
  ASSERT_TRUE(reply);
  EXPECT_EQ(reply->stop, Stop::length);
}

TEST_P(Clients, StopAtOnceWhereTryingAgainIsOfNoUse) {
  struct Case {
    int status;
    Json error;
    const char* says;
  };
  for (const Case& c : {Case{401, {{"message", "bad key"}}, "does not accept the key"},
                        Case{404, {{"message", "no such model"}}, "does not know this model"},
                        Case{402, {{"type", "billing_error"}}, "quota or credit"},
                        Case{429, {{"code", "insufficient_quota"}}, "quota or credit"},
                        Case{400, {{"code", "context_length_exceeded"}}, "too long"},
                        Case{413, {{"type", "request_too_large"}}, "too long"},
                        Case{400, {{"message", "no idea"}}, "does not accept the request"}}) {
    TestModel model(
        provider(),
        steps({{{"fault", "status"}, {"status", c.status}, {"body", {{"error", c.error}}}}}));
    auto reply = model->chat({}, question());
    ASSERT_FALSE(reply);
    EXPECT_EQ(reply.error().kind, ErrorKind::user);
    EXPECT_THAT(reply.error().message, HasSubstr(c.says));
    EXPECT_FALSE(reply.error().remedy.empty());
    EXPECT_EQ(model.log().size(), 1u);
  }
}

TEST_P(Clients, LeaveOutAParameterThatTheModelRefuses) {
  Json refusal{{"error",
                {{"message", "`temperature` is deprecated for this model."},
                 {"type", "invalid_request_error"}}}};
  std::string name = provider() == "anthropic" ? "anthropic:unlisted" : provider() + ":gpt-4.1";
  TestModel base(provider(), steps({{{"fault", "status"}, {"status", 400}, {"body", refusal}},
                                    {{"text", "one"}},
                                    {{"text", "two"}}}));
  ModelConfig config = TestModel::quick();
  config.url = base.url();
  auto model = open_model(name, config);
  ASSERT_TRUE(model);
  ChatRequest request = question();
  request.temperature = 0.7;
  ASSERT_TRUE((*model)->chat({}, request));
  ASSERT_TRUE((*model)->chat({}, request));
  EXPECT_EQ(base.log().size(), 3u);
  EXPECT_EQ(base.body(0).value("temperature", 0.0), 0.7);
  EXPECT_FALSE(base.body(1).contains("temperature"));
  EXPECT_FALSE(base.body(2).contains("temperature"));
}

TEST_P(Clients, NeverShowTheKey) {
  Json echo{{"error", {{"message", std::string("Incorrect API key: ") + kTestKey}}}};
  TestModel model(provider(),
                  steps({{{"fault", "status"}, {"status", 401}, {"body", echo}},
                         {{"text", std::string("your key is ") + kTestKey},
                          {"reasoning", std::string("hm, ") + kTestKey},
                          {"calls", {{{"name", "f"}, {"arguments", {{"key", kTestKey}}}}}}}}));
  auto refused = model->chat({}, question());
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().text(), Not(HasSubstr(kTestKey)));
  auto reply = model->chat({}, question());
  ASSERT_TRUE(reply);
  EXPECT_THAT(dump_json(to_json(*reply)), Not(HasSubstr(kTestKey)));
  EXPECT_THAT(reply->message.text, HasSubstr("your key is [key]"));
  EXPECT_THAT(dump_json(model.log()), HasSubstr(kTestKey)) << "the server must have got it";
}

TEST_P(Clients, EndWithTheirContext) {
  TestModel model(provider(), steps({{{"fault", "silent"}}, {{"fault", "silent"}}}));
  auto begin = Clock::now();
  auto late = model->chat(Context{}.with_timeout(std::chrono::milliseconds(100)), question());
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().kind, ErrorKind::timeout);
  std::stop_source stop;
  std::jthread stopper([&stop] {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    stop.request_stop();
  });
  auto stopped = model->chat(Context(stop.get_token()), question());
  ASSERT_FALSE(stopped);
  EXPECT_EQ(stopped.error().kind, ErrorKind::cancelled);
  EXPECT_LT(Clock::now() - begin, std::chrono::seconds(2));
}

TEST_P(Clients, CountForThemselvesWhereTheServerDoesNot) {
  TestModel model(provider(), steps({{{"text", "a few words of text"}, {"usage", nullptr}}}));
  auto reply = model->chat({}, question());
  ASSERT_TRUE(reply) << reply.error().text();
  EXPECT_TRUE(reply->usage.estimated);
  EXPECT_GT(reply->usage.input, 5);
  EXPECT_GT(reply->usage.output, 3);
}

TEST_P(Clients, ServeManyThreads) {
  Json rule{{"when", "."}, {"replies", {{{"text", "yes"}, {"delay_ms", 20}}}}};
  TestModel model(provider(), {{"rules", Json::array({rule})}});
  std::atomic<int> right = 0;
  {
    std::vector<std::jthread> threads;
    for (int t = 0; t < 8; ++t)
      threads.emplace_back([&, t] {
        for (int i = 0; i < 3; ++i) {
          auto reply = model->chat({}, question("Thread " + std::to_string(t * 10 + i)));
          if (reply && reply->message.text == "yes") ++right;
        }
      });
  }
  EXPECT_EQ(right, 24);
}

TEST(Client, AsksToWaitTooLong) {
  ModelConfig config = TestModel::quick();
  TestModel model(
      "anthropic",
      steps({{{"fault", "status"}, {"status", 429}, {"headers", {{"retry-after", "7200"}}}}}),
      config);
  auto reply = model->chat({}, question());
  ASSERT_FALSE(reply);
  EXPECT_EQ(reply.error().kind, ErrorKind::world);
  EXPECT_THAT(reply.error().message, HasSubstr("wait for 7200 s"));
}

TEST(Client, WaitsGrowAndStayBounded) {
  ModelConfig config;
  for (int n = 0; n < 12; ++n) {
    auto wait = retry_wait(n, {}, config);
    ASSERT_TRUE(wait);
    int64_t most = std::min<int64_t>(500LL << n, 8000);
    EXPECT_LE(wait->count(), most);
    EXPECT_GE(wait->count(), most * 3 / 4 - 1);
  }
  EXPECT_EQ(retry_wait(0, std::chrono::milliseconds(90'000), config)->count(), 90'000);
  EXPECT_FALSE(retry_wait(0, std::chrono::milliseconds(900'000), config));
}

TEST(Client, SaysWhatItCannotReach) {
  ModelConfig config = TestModel::quick();
  config.retries = 1;
  config.url = "http://127.0.0.1:1/v1";
  auto model = open_model("vllm:qwen", config);
  ASSERT_TRUE(model);
  auto reply = (*model)->chat({}, question());
  ASSERT_FALSE(reply);
  EXPECT_EQ(reply.error().kind, ErrorKind::world);
  EXPECT_THAT(reply.error().message, HasSubstr("cannot reach vllm at http://127.0.0.1:1/v1"));
}

TEST(Http, BoundsTheSizeOfAnAnswer) {
  TestModel model("openai", steps({{{"text", "x"}, {"fault", "flood"}}}));
  Http http;
  size_t seen = 0;
  HttpRequest request{.url = model.url() + "/chat/completions",
                      .body = R"({"model": "m", "messages": [], "stream": true})",
                      .max_bytes = 100'000};
  HttpOutcome out = http.post({}, request, [&](std::string_view bytes) -> Result<bool> {
    seen += bytes.size();
    return false;
  });
  ASSERT_TRUE(out.error);
  EXPECT_THAT(out.error->message, HasSubstr("larger than 100000 bytes"));
  EXPECT_LE(seen, 100'000u);
}

TEST(Http, BoundsTheTimeOfAnAnswerThatDrips) {
  TestModel model("openai", steps({{{"text", "x"}, {"fault", "flood"}}}));
  Http http;
  HttpRequest request{.url = model.url() + "/chat/completions",
                      .body = R"({"model": "m", "messages": [], "stream": true})",
                      .total = std::chrono::milliseconds(60),
                      .max_bytes = size_t{1} << 40};
  HttpOutcome out = http.post({}, request, [&](std::string_view) -> Result<bool> { return false; });
  ASSERT_TRUE(out.error);
  EXPECT_THAT(out.error->message, HasSubstr("took too long"));
}

TEST(Http, TakesOnlyPlainAddresses) {
  EXPECT_TRUE(check_url("https://api.example.com/v1"));
  EXPECT_TRUE(check_url("http://[::1]:8000/v1"));
  for (const char* bad : {"ftp://x/y", "https://me:pw@host/v1", "https://host/v1?key=1", "https://",
                          "https://host/a b", "https:///v1", "host/v1", ""})
    EXPECT_FALSE(check_url(bad)) << bad;
  EXPECT_TRUE(is_local_url("http://localhost:8000/v1"));
  EXPECT_TRUE(is_local_url("http://127.0.0.1/"));
  EXPECT_FALSE(is_local_url("http://127.0.0.1.example.com/"));
  EXPECT_FALSE(is_local_url("https://api.example.com"));
}

}  // namespace
}  // namespace cutegen::llm
