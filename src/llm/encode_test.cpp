// SPDX-License-Identifier: Apache-2.0
// Tests requests: stable prefixes, cache breakpoints, and each provider's differences.
#include <gmock/gmock.h>

#include "llm/api_json.h"
#include "llm/chat_json.h"

namespace cutegen::llm {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

Shape shape_for(const char* provider) {
  Shape shape;
  shape.model = "m";
  shape.provider = *find_provider(provider);
  return shape;
}

ChatRequest dialogue(size_t turns) {
  ChatRequest request;
  request.system = "Rules.";
  request.tools.push_back(
      {.name = "run", .description = "Runs it.", .parameters = {{"type", "object"}}});
  for (size_t i = 0; i < turns; ++i) {
    request.messages.push_back({.text = "question " + std::to_string(i), .cache_end = true});
    request.messages.push_back(
        {.speaker = Speaker::assistant, .text = "answer " + std::to_string(i)});
  }
  request.messages.push_back({.text = "last"});
  return request;
}

size_t count(const std::string& text, const std::string& part) {
  size_t n = 0;
  for (size_t at = 0; (at = text.find(part, at)) != std::string::npos; at += part.size()) ++n;
  return n;
}

TEST(Encode, ADialoguesBeginningStaysTheSame) {
  for (const char* provider : {"openai", "openai-responses"}) {
    const Api& api = api_of(find_provider(provider)->api);
    Json before = api.encode(dialogue(3), shape_for(provider));
    Json after = api.encode(dialogue(6), shape_for(provider));
    const char* list = std::string(provider) == "openai" ? "messages" : "input";
    for (size_t i = 0; i + 1 < before[list].size(); ++i)  // all but "last"
      EXPECT_EQ(dump_json(before[list][i]), dump_json(after[list][i]));
    EXPECT_EQ(before["tools"], after["tools"]);
    EXPECT_EQ(before["prompt_cache_key"], after["prompt_cache_key"]);
  }
}

TEST(Encode, AnthropicGetsFourBreakpointsAtMost) {
  const Api& api = anthropic_api();
  for (size_t turns : {0, 1, 2, 5, 20}) {
    std::string body = dump_json(api.encode(dialogue(turns), shape_for("anthropic")));
    EXPECT_EQ(count(body, "cache_control"), std::min<size_t>(turns, 2) + 2) << body;
  }
  Json body = api.encode(dialogue(3), shape_for("anthropic"));
  EXPECT_TRUE(body["system"][0].contains("cache_control"));
  EXPECT_TRUE(body["messages"][6]["content"][0].contains("cache_control")) << "the newest";
  EXPECT_TRUE(body["messages"][4]["content"][0].contains("cache_control"));
  EXPECT_FALSE(body["messages"][0]["content"][0].contains("cache_control"));
  ChatRequest bare = dialogue(0);
  bare.system.clear();
  EXPECT_TRUE(api.encode(bare, shape_for("anthropic"))["tools"][0].contains("cache_control"));
  Shape refused = shape_for("anthropic");
  refused.refused = {"cache_control"};
  EXPECT_THAT(dump_json(api.encode(dialogue(3), refused)), Not(HasSubstr("cache_control")));
}

TEST(Encode, ARequestCanSayThatNoToolMayBeCalledAnyMore) {
  ChatRequest request = dialogue(0);
  for (const char* provider : {"openai", "openai-responses", "anthropic"}) {
    const Api& api = api_of(find_provider(provider)->api);
    request.may_call = true;
    EXPECT_FALSE(api.encode(request, shape_for(provider)).contains("tool_choice"));
    request.may_call = false;
    Json body = api.encode(request, shape_for(provider));
    EXPECT_TRUE(body.contains("tools")) << "what was called before must stay known";
    Json none = provider == std::string("anthropic") ? Json{{"type", "none"}} : Json("none");
    EXPECT_EQ(body["tool_choice"], none);
    Shape shape = shape_for(provider);
    shape.refused = {"tool_choice"};
    EXPECT_FALSE(api.encode(request, shape).contains("tool_choice"));
  }
  auto again = read_json<ChatRequest>(to_json(request), "x");
  ASSERT_TRUE(again);
  EXPECT_FALSE(again->may_call);
  EXPECT_EQ(request_hash(*again), request_hash(request));
  request.tools.clear();
  EXPECT_FALSE(openai_chat_api().encode(request, shape_for("openai")).contains("tool_choice"));
}

TEST(Encode, AnthropicThinksAsTheModelCan) {
  ChatRequest request = dialogue(0);
  request.effort = "medium";
  request.temperature = 0.5;
  request.max_output_tokens = 20'000;
  Shape shape = shape_for("anthropic");
  Json adaptive = anthropic_api().encode(request, shape);
  EXPECT_EQ(adaptive["thinking"], (Json{{"type", "adaptive"}}));
  EXPECT_EQ(adaptive["output_config"]["effort"], "medium");
  EXPECT_FALSE(adaptive.contains("temperature")) << "thinking takes none";
  shape.thinking = Thinking::budget;
  Json budget = anthropic_api().encode(request, shape);
  EXPECT_EQ(budget["thinking"]["budget_tokens"], 8192);
  EXPECT_FALSE(budget.contains("output_config"));
  request.max_output_tokens = 1500;
  Json none = anthropic_api().encode(request, shape);
  EXPECT_FALSE(none.contains("thinking")) << "no room to think in";
  EXPECT_EQ(none["temperature"], 0.5);
  shape.max_output_tokens = 1000;
  EXPECT_EQ(anthropic_api().encode(request, shape)["max_tokens"], 1000);
}

TEST(Encode, EveryChatServerGetsItsOwnFields) {
  ChatRequest request = dialogue(0);
  request.output_schema = {{"type", "object"}, {"properties", {{"a", {{"type", "string"}}}}}};
  const Api& api = openai_chat_api();
  Json openai = api.encode(request, shape_for("openai"));
  EXPECT_TRUE(openai.contains("max_completion_tokens"));
  EXPECT_FALSE(openai.contains("max_tokens"));
  EXPECT_EQ(openai["response_format"]["json_schema"]["strict"], false) << "an open schema";
  Json deepseek = api.encode(request, shape_for("deepseek"));
  EXPECT_TRUE(deepseek.contains("max_tokens"));
  EXPECT_FALSE(deepseek.contains("prompt_cache_key"));
  EXPECT_EQ(deepseek["response_format"]["type"], "json_object");
  EXPECT_THAT(deepseek["messages"][0]["content"].get<std::string>(), HasSubstr("JSON schema"));
  EXPECT_EQ(api.encode(request, shape_for("openrouter"))["usage"]["include"], true);
  Shape old = shape_for("vllm");
  old.refused = {"max_tokens_field", "stream_options"};
  Json vllm = api.encode(request, old);
  EXPECT_TRUE(vllm.contains("max_completion_tokens"));
  EXPECT_FALSE(vllm.contains("stream_options"));
}

TEST(Encode, ReasoningGoesBackInsideAToolLoopWhereItIsDemanded) {
  ChatRequest request;
  auto thought = [](const char* text) {
    Message m{.speaker = Speaker::assistant,
              .calls = {{.id = "c", .name = "run", .arguments = Json::object()}}};
    m.opaque = {{"reasoning_content", text}, {"api", "openai-chat"}};
    return m;
  };
  request.messages = {
      {.text = "one"}, thought("old"),    {.results = {{.call_id = "c", .text = "r"}}},
      {.text = "two"}, thought("recent"), {.results = {{.call_id = "c", .text = "r"}}}};
  std::string deepseek = dump_json(openai_chat_api().encode(request, shape_for("deepseek")));
  EXPECT_THAT(deepseek, HasSubstr(R"("reasoning_content":"recent")"));
  EXPECT_THAT(deepseek, Not(HasSubstr(R"("reasoning_content":"old")")));
  EXPECT_THAT(dump_json(openai_chat_api().encode(request, shape_for("vllm"))),
              Not(HasSubstr("reasoning_content")));
  // An API does not send another API's opaque message.
  EXPECT_THAT(dump_json(anthropic_api().encode(request, shape_for("anthropic"))),
              Not(HasSubstr("recent")));
}

TEST(Encode, StrictSchemasAreClosedAllTheWayDown) {
  Json closed{{"type", "object"},
              {"properties", {{"a", {{"type", "integer"}}}}},
              {"required", {"a"}},
              {"additionalProperties", false}};
  EXPECT_TRUE(is_closed_schema(closed));
  Json outer = closed;
  outer["properties"]["a"] = {{"type", "array"}, {"items", closed}};
  EXPECT_TRUE(is_closed_schema(outer));
  outer["properties"]["a"]["items"]["required"] = Json::array();
  EXPECT_FALSE(is_closed_schema(outer));
  EXPECT_FALSE(is_closed_schema({{"type", "object"}}));
}

TEST(Decode, ReadsWhatServersNameDifferently) {
  Json message{{"content", "<think>hm, 6*7</think>\n\n42"}, {"reasoning", "more"}};
  Json usage{{"prompt_tokens", 100},
             {"completion_tokens", 7},
             {"prompt_cache_hit_tokens", 60},
             {"cost", 0.0125}};
  auto reply = openai_chat_api().decode(
      {{"choices", {{{"message", message}, {"finish_reason", "stop"}}}}, {"usage", usage}});
  ASSERT_TRUE(reply);
  EXPECT_EQ(reply->message.text, "42");
  EXPECT_EQ(reply->usage.cached, 60);
  EXPECT_EQ(reply->usage.input, 40);
  EXPECT_EQ(reply->cost_usd, 0.0125);
  EXPECT_EQ(reply->message.opaque["reasoning"], "more");
}

TEST(Decode, ReadsContentInParts) {
  Json parts =
      Json::array({{{"type", "text"}, {"text", "one "}}, {{"type", "text"}, {"text", "two"}}});
  auto assembler = openai_chat_api().assembler();
  for (int i = 0; i < 2; ++i)
    ASSERT_TRUE(assembler->take(
        {"", dump_json({{"choices", Json::array({{{"delta", {{"content", parts}}}}})}})}));
  auto reply = openai_chat_api().decode(assembler->response());
  ASSERT_TRUE(reply);
  EXPECT_EQ(reply->message.text, "one twoone two");
}

// Any response of a server gives a reply or an error.
TEST(Decode, SurvivesEveryKindOfNonsense) {
  const std::vector<Json> odd{nullptr,        1,
                              -1e300,         "text",
                              true,           Json::array(),
                              Json::object(), Json::array({nullptr, 7, "x", Json::object()})};
  for (ApiKind kind : {ApiKind::openai_chat, ApiKind::openai_responses, ApiKind::anthropic}) {
    const Api& api = api_of(kind);
    for (const Json& value : odd) {
      (void)api.decode(value);
      for (const char* key : {"choices", "output", "content", "usage", "model", "error"})
        (void)api.decode({{key, value}});
      (void)api.decode({{"choices", Json::array({{{"message", value}}})}});
      (void)api.decode({{"choices", Json::array({{{"message", {{"tool_calls", value}}}}})}});
      (void)api.decode({{"output", Json::array({{{"type", "message"}, {"content", value}}})}});
      (void)api.decode({{"content", Json::array({{{"type", "tool_use"}, {"input", value}}})}});
      for (const char* type :
           {"message_start", "content_block_start", "content_block_delta", "message_delta", "error",
            "response.completed", "response.output_item.done", "response.failed"}) {
        auto assembler = api.assembler();
        Json event{{"type", type},           {"index", value},   {"output_index", value},
                   {"delta", value},         {"message", value}, {"response", value},
                   {"content_block", value}, {"item", value},    {"choices", value},
                   {"usage", value},         {"error", value}};
        (void)assembler->take({.name = "", .data = dump_json(event)});
        (void)api.decode(assembler->response());
      }
    }
    auto assembler = api.assembler();
    EXPECT_FALSE(assembler->take({"", "no json"}));
    EXPECT_FALSE(assembler->take({"", "[1]"}));
  }
}

TEST(Decode, RefusesPartsNumberedBeyondReason) {
  auto assembler = anthropic_api().assembler();
  EXPECT_FALSE(assembler->take(
      {"", R"({"type": "content_block_start", "index": 100000000, "content_block": {}})"}));
}

}  // namespace
}  // namespace cutegen::llm
