// SPDX-License-Identifier: Apache-2.0
#include "llm/models.h"

#include <gmock/gmock.h>

#include "base/file.h"
#include "base/hash.h"
#include "llm/chat_json.h"
#include "llm/faults.h"
#include "llm/prices.h"
#include "llm/tokens.h"

namespace cutegen::llm {
namespace {

using ::testing::HasSubstr;

ModelConfig without_environment() {
  ModelConfig config;
  config.environment.emplace();
  return config;
}

TEST(Models, NamesWhatItDoesNotKnow) {
  EXPECT_EQ(parse_model("openai:gpt-5")->name, "gpt-5");
  EXPECT_EQ(parse_model("ollama:qwen3:8b")->name, "qwen3:8b");
  EXPECT_EQ(parse_model("relay:/tmp/a b")->provider, "relay");
  EXPECT_THAT(parse_model("antropic:x").error().text(), HasSubstr("did you mean 'anthropic:NAME'"));
  EXPECT_THAT(parse_model("xyz").error().text(), HasSubstr("PROVIDER:NAME"));
  EXPECT_THAT(parse_model("relay:").error().text(), HasSubstr("relay:DIR"));
  EXPECT_THAT(parse_model("replay").error().text(), HasSubstr("replay:RUN"));
  EXPECT_THAT(parse_model("openai: ").error().text(), HasSubstr("PROVIDER:NAME"));
  EXPECT_FALSE(parse_model("openai:a\nb"));
  EXPECT_FALSE(parse_model("openai:" + std::string(1000, 'x')));
}

TEST(Models, WantsAKeyWhereTheProviderDoes) {
  ModelConfig config = without_environment();
  auto none = open_model("anthropic:claude-opus-4-5", config);
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().kind, ErrorKind::user);
  EXPECT_THAT(none.error().remedy, HasSubstr("ANTHROPIC_API_KEY"));
  EXPECT_TRUE(open_model("vllm:qwen", config)) << "one's own server needs none";
  config.url = "http://localhost:9/v1";
  EXPECT_TRUE(open_model("openai:qwen", config)) << "nor does one at another address";
  config.url = "http://user:pw@host/v1";
  EXPECT_FALSE(open_model("openai:qwen", config));
}

TEST(Models, ReadsAKeyFromAFile) {
  ModelConfig config = without_environment();
  config.key_file = std::filesystem::temp_directory_path() / ("key-" + random_id());
  auto opens = [&](const std::string& text) {
    EXPECT_TRUE(write_file(config.key_file, text));
    auto model = open_model("openai:gpt-5", config);
    if (!model) {
      EXPECT_EQ(model.error().text().find("abc"), std::string::npos) << "a key shown";
    }
    return model.has_value();
  };
  EXPECT_TRUE(opens("sk-abc\n"));
  EXPECT_FALSE(opens("sk-abc\nHost: elsewhere\n"));
  EXPECT_FALSE(opens(" \n"));
  EXPECT_FALSE(opens("sk abc"));
  std::filesystem::remove(config.key_file);
  EXPECT_FALSE(open_model("openai:gpt-5", config));
}

TEST(Models, ReplaysWhatTheCallerFinds) {
  ModelConfig config = without_environment();
  EXPECT_EQ(open_model("replay:last", config).error().kind, ErrorKind::unsupported);
  config.recording = [](const std::string& run) -> Result<std::vector<Exchange>> {
    if (run != "last") return std::vector<Exchange>();
    Exchange e;
    e.request.messages.push_back({.text = "q"});
    e.reply.emplace().message.text = "recorded";
    return std::vector{e};
  };
  EXPECT_THAT(open_model("replay:x", config).error().text(), HasSubstr("no questions"));
  auto model = open_model("replay:last", config);
  ASSERT_TRUE(model);
  EXPECT_EQ((*model)->chat({}, {.messages = {{.text = "q"}}})->message.text, "recorded");
}

TEST(Models, KnowsWhoCallsToolsWithoutMoreAdo) {
  ModelConfig config = without_environment();
  config.url = "http://localhost:9/v1";
  auto can = [&](const char* name) { return open_model(name, config).value()->has_tools(); };
  EXPECT_TRUE(can("openai:gpt-5"));
  EXPECT_TRUE(can("openai-responses:gpt-5"));
  EXPECT_TRUE(can("anthropic:claude-opus-4-5"));
  EXPECT_FALSE(can("vllm:any"));
  EXPECT_FALSE(can("ollama:any"));
  Exchange bare, with_tools;
  with_tools.request.tools.push_back(
      {.name = "compile", .description = "", .parameters = Json::object()});
  EXPECT_FALSE(ReplayModel("replay:a", {bare}).has_tools());
  EXPECT_TRUE(ReplayModel("replay:b", {bare, with_tools}).has_tools());
}

TEST(Models, KnowsWhatEachCallMayCost) {
  ModelConfig config = without_environment();
  ChatRequest request{.messages = {{.text = std::string(20'000, 'x')}}, .max_output_tokens = 1000};
  auto most = [&](const char* name) {
    config.url = "http://localhost:9/v1";
    return open_model(name, config).value()->most_usd(request);
  };
  EXPECT_EQ(most("ollama:anything"), 0);
  EXPECT_FALSE(most("openai:my-own-finetune"));
  double bound = 10'000 * 6.25e-6 + 1000 * 25e-6;
  EXPECT_GE(*most("anthropic:claude-opus-4-5-20251101"), bound);
  EXPECT_LT(*most("anthropic:claude-opus-4-5-20251101"), bound * 1.01);
}

TEST(Prices, ShippedTableIsReadableAndDated) {
  auto prices = Prices::load({});
  ASSERT_TRUE(prices) << prices.error().text();
  const PriceEntry* entry = prices->find("openai", "gpt-5-2025-08-07");
  ASSERT_TRUE(entry);
  EXPECT_EQ(entry->id, "gpt-5");
  EXPECT_EQ(entry->as_of.size(), 10u);
  EXPECT_FALSE(prices->find("openai", "gpt-5-unheard-of")) << "nothing is guessed";
  EXPECT_FALSE(prices->find("anthropic", "gpt-5"));
  EXPECT_EQ(prices->find("openai", "gpt-5-mini")->id, "gpt-5-mini");
  EXPECT_FALSE(prices->find("anthropic", "claude-opus-4-7")->temperature);
}

TEST(Prices, LongPromptsCostMore) {
  auto entries = Prices::parse(R"(as_of = "2026-01-01"
[[model]]
provider = "p"
id = "m"
input = 1.0
output = 2.0
long_from_tokens = 1000
long_input = 10.0
long_output = 20.0
)",
                               "t");
  ASSERT_TRUE(entries) << entries.error().text();
  const PriceEntry& e = entries->front();
  EXPECT_NEAR(e.cost({.input = 500, .cached = 500, .output = 100}), 1200e-6, 1e-12);
  EXPECT_NEAR(e.cost({.input = 501, .cached = 500, .output = 100}), 12'010e-6, 1e-12);
  EXPECT_NEAR(e.most(2000, 10), 20'200e-6, 1e-12);
}

TEST(Prices, UsersFileWinsAndItsMistakesAreNamed) {
  auto path = std::filesystem::temp_directory_path() / ("prices-" + random_id());
  auto load = [&](const std::string& text) {
    EXPECT_TRUE(write_file(path, text));
    return Prices::load(path);
  };
  const std::string head = "as_of = \"2027-01-01\"\n[[model]]\nprovider = \"openai\"\n";
  auto mine = load(head + "id = \"gpt-5\"\ninput = 7\noutput = 70\n");
  ASSERT_TRUE(mine) << mine.error().text();
  EXPECT_EQ(mine->find("openai", "gpt-5")->rates.input, 7);
  EXPECT_EQ(mine->find("openai", "gpt-5")->rates.cached, 7) << "no rebate is assumed";
  EXPECT_TRUE(mine->find("openai", "gpt-4o")) << "the rest still ships";
  struct Case {
    std::string text;
    const char* says;
  };
  for (const Case& c : {Case{"[[model]]\n", "as_of"}, Case{"as_of = \"x\"\n", "no [[model]]"},
                        Case{head + "id = \"a\"\n", "input and output are needed"},
                        Case{head + "id = \"a\"\ninput = -1.0\noutput = 1.0\n", "input must be"},
                        Case{head + "id = \"a\"\ninput = nan\noutput = 1.0\n", "input must be"},
                        Case{head + "id = \"a\"\ninput = 1\noutput = 1\nprize = 3\n", "prize"},
                        Case{head + "id = \"a\"\ninput = 1\noutput = 1\nlong_input = 3\n", "long_"},
                        Case{"as_of = ", "not valid TOML"}}) {
    auto bad = load(c.text);
    ASSERT_FALSE(bad) << c.text;
    EXPECT_EQ(bad.error().kind, ErrorKind::user);
    EXPECT_THAT(bad.error().text(), HasSubstr(c.says));
  }
  std::filesystem::remove(path);
}

TEST(Faults, ReadWaitsOfEveryForm) {
  auto wait = [](Headers headers) { return asked_wait(headers); };
  EXPECT_EQ(wait({{"retry-after-ms", "1500"}, {"retry-after", "9"}})->count(), 1500);
  EXPECT_EQ(wait({{"retry-after", "0.25"}})->count(), 250);
  EXPECT_EQ(wait({{"retry-after", "Fri, 01 Jan 2010 00:00:00 GMT"}})->count(), 0);
  EXPECT_EQ(wait({{"retry-after", "Fri, 01 Jan 2088 00:00:00 GMT"}})->count(), 86'400'000);
  for (const char* odd : {"", "soon", "1e999", "nan", "-5x"})
    EXPECT_FALSE(wait({{"retry-after", odd}})) << odd;
  EXPECT_EQ(wait({{"retry-after", "-5"}})->count(), 0);
  EXPECT_EQ(wait({{"retry-after", "1e15"}})->count(), 86'400'000);
  EXPECT_FALSE(wait({}));
}

TEST(Faults, HeaderSaysWhetherToTryAgain) {
  auto kind = [](int status, Headers headers) {
    return read_fault({.status = status, .headers = std::move(headers), .body = "{}"}, "p").kind;
  };
  EXPECT_EQ(kind(400, {{"x-should-retry", "true"}}), FaultKind::retry);
  EXPECT_EQ(kind(500, {{"x-should-retry", "false"}}), FaultKind::fatal);
  EXPECT_EQ(kind(500, {}), FaultKind::retry);
  EXPECT_EQ(kind(301, {}), FaultKind::fatal);
  EXPECT_EQ(kind(418, {}), FaultKind::fatal);
}

TEST(Faults, AModelWithoutToolsIsSaidToBeOne) {
  for (const char* said : {"registry.example/x does not support tools",
                           "auto tool choice requires --tool-call-parser to be set"}) {
    Fault fault = read_fault(
        {.status = 400, .body = std::string(R"({"error": {"message": ")") + said + R"("}})"},
        "vllm");
    EXPECT_EQ(fault.kind, FaultKind::fatal) << said;
    EXPECT_EQ(fault.error.kind, ErrorKind::user);
    EXPECT_NE(fault.error.remedy.find("--tools off"), std::string::npos) << said;
  }
  Fault fault = read_fault(
      {.status = 400, .body = R"({"error": {"message": "tool_choice: unknown field"}})"}, "p");
  EXPECT_EQ(fault.kind, FaultKind::parameter);
  EXPECT_EQ(fault.parameter, "tool_choice");
}

TEST(Faults, CapsAndCleansForeignText) {
  Fault fault =
      read_fault({.status = 502, .body = "\x1b[31m<html>" + std::string(100'000, 'x')}, "p");
  EXPECT_LT(fault.error.message.size(), 500u);
  EXPECT_EQ(fault.error.message.find('\x1b'), std::string::npos);
}

TEST(ChatJson, RoundTripsEverything) {
  ChatRequest request{.system = "s", .max_output_tokens = 5, .temperature = 0.1, .effort = "high"};
  request.label = "l";
  request.tools.push_back({.name = "t", .description = "d", .parameters = {{"type", "object"}}});
  request.output_schema = {{"type", "object"}};
  request.messages.push_back({.text = "u", .cache_end = true});
  request.messages.push_back(
      {.speaker = Speaker::assistant,
       .text = "a",
       .calls = {{.id = "i", .name = "t", .arguments = {{"x", 1}}},
                 {.id = "j", .name = "t", .arguments = Json::object(), .malformed = "{bad"}},
       .opaque = {{"api", "x"}}});
  request.messages.push_back({.results = {{.call_id = "i", .text = "r"},
                                          {.call_id = "j", .text = "e", .is_error = true}}});
  auto same = read_json<ChatRequest>(to_json(request), "x");
  ASSERT_TRUE(same) << same.error().text();
  EXPECT_EQ(to_json(*same), to_json(request));
  EXPECT_EQ(request_hash(*same), request_hash(request));
  same->label = "other";
  EXPECT_EQ(request_hash(*same), request_hash(request)) << "the label is not part of a question";
  same->messages[0].text = "v";
  EXPECT_NE(request_hash(*same), request_hash(request));

  Json odd = to_json(request);
  odd["messages"][1]["speaker"] = "robot";
  auto bad = read_json<ChatRequest>(odd, "x.json#");
  ASSERT_FALSE(bad);
  EXPECT_THAT(bad.error().text(), HasSubstr("x.json#/messages/1/speaker"));
}

TEST(ChatJson, FindsTheFirstDifference) {
  Json a{{"x", {1, 2, {{"y", "long text here"}}}}, {"z", 1}};
  Json b = a;
  EXPECT_EQ(first_difference(a, b), "");
  b["x"][2]["y"] = "long test here";
  EXPECT_EQ(first_difference(a, b),
            "/x/2/y: byte 7: recorded \"long text here\", now \"long test here\"");
  b = a;
  b["x"].push_back(5);
  EXPECT_THAT(first_difference(a, b), HasSubstr("/x: recorded 3 entries, now 4 entries"));
  b = a;
  b.erase("z");
  EXPECT_THAT(first_difference(a, b), HasSubstr("/z: recorded 1, now missing"));
}

TEST(Tokens, EstimateStaysBelowTheBound) {
  for (const char* text :
       {"", "x", "The quick brown fox jumps over the lazy dog.", "for (int i = 0; i < n; ++i) {\n",
        "        __syncthreads();\n        float4 v = *(float4*)&x[i * 4];\n", "漢字かな交じり文",
        "0x7fffffff, 123456789, 3.14159265358979f"}) {
    EXPECT_LE(estimate_tokens(text), most_tokens(text) + 1) << text;
    EXPECT_LE(most_tokens(text), int64_t(std::string_view(text).size()));
  }
  EXPECT_NEAR(double(estimate_tokens("The quick brown fox jumps over the lazy dog.")), 10, 2);
}

}  // namespace
}  // namespace cutegen::llm
