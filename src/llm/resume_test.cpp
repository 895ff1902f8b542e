// SPDX-License-Identifier: Apache-2.0
// A run of many questions to the scripted server, with every kind of fault and a crash at every
// event. It must get the answers of a run without faults, count each dollar once and never exceed
// the cap.
#include <gmock/gmock.h>

#include <random>

#include "llm/chat_json.h"
#include "llm/run_model.h"
#include "llm/testing/test_server.h"

namespace cutegen::llm {
namespace {

using ::testing::HasSubstr;

struct Killed {};  // thrown to simulate the death of the process

// The journal of a run. Throws Killed after a number of events.
class DyingJournal final : public CallSink {
 public:
  std::vector<std::pair<EventType, Json>> events;
  size_t dies_at = SIZE_MAX;
  RunModel* run = nullptr;
  Result<void> record(EventType type, const Json& data) override {
    if (events.size() >= dies_at) throw Killed{};
    // Converts to text and back, as on disk.
    events.emplace_back(type, *parse_json(dump_json(data), to_string(type)));
    return run->fold(type, events.back().second);
  }
};

constexpr int kAsks = 20;
constexpr int kCalls = 3;  // per ask: a dialogue

// Drives the run like the engine. Continues after the recorded events.
void drive(DyingJournal& journal, RunModel& run, std::vector<std::string>& answers) {
  journal.run = &run;
  std::vector<std::pair<EventType, Json>> before = journal.events;
  size_t asked = 0, answered = 0;
  answers.clear();
  for (const auto& [type, data] : before) {
    ASSERT_TRUE(run.fold(type, data));
    asked += type == EventType::asked;
    if (type != EventType::answered) continue;
    answers.push_back(data["text"]);
    ++answered;
  }
  while (answered < kAsks) {
    if (asked == answered) {
      ASSERT_TRUE(journal.record(EventType::asked, {{"n", answered}}));
      ++asked;
    }
    ChatModel& model = run.begin_ask();
    ChatRequest request = question("ask " + std::to_string(answered));
    std::string text;
    for (int call = 0; call < kCalls; ++call) {
      auto reply = model.chat({}, request);
      if (!reply) {  // the run stops here and is resumed
        ASSERT_EQ(reply.error().kind, ErrorKind::world) << reply.error().text();
        return;
      }
      text += reply->message.text + ";";
      request.messages.push_back(reply->message);
      request.messages.push_back({.text = "go on " + std::to_string(call)});
    }
    answers.push_back(text);
    ASSERT_TRUE(journal.record(EventType::answered, {{"text", text}}));
    ++answered;
  }
}

Json script(double rate) {
  Json replies = Json::array();
  for (int i = 0; i < kAsks; ++i)
    replies.push_back({{"text", "answer " + std::to_string(i)},
                       {"reasoning", "hm"},
                       {"usage", {{"input", 1000 + i}, {"output", 50}}}});
  Json rules = Json::array();
  for (int i = 0; i < kAsks; ++i)
    rules.push_back({{"when", "^ask " + std::to_string(i) + "$"}, {"replies", {replies[i]}}});
  rules.push_back({{"when", "go on"}, {"replies", {{{"text", "and more"}}}}});
  return {{"rules", rules}, {"chaos", {{"rate", rate}, {"seed", 7}}}};
}

std::unique_ptr<ChatModel> client(const TestModel& server) {
  ModelConfig config = TestModel::quick();
  config.url = server.url();
  return std::move(*open_model("anthropic:claude-opus-4-5", config));
}

double paid(const DyingJournal& journal) {
  double usd = 0;
  for (const auto& [type, data] : journal.events)
    if (type == EventType::call_ended && data.contains("reply"))
      usd += data["reply"].value("cost_usd", 0.0);
  return usd;
}

TEST(Resume, EndsTheSameThroughFaultsAndCrashes) {
  std::vector<std::string> calm, rough;
  {
    TestModel server("anthropic", script(0));
    DyingJournal journal;
    RunModel run(client(server), {}, journal);
    drive(journal, run, calm);
    ASSERT_EQ(calm.size(), size_t{kAsks});
    EXPECT_EQ(run.ledger().spent().calls, kAsks * kCalls);
  }
  TestModel server("anthropic", script(0.2));
  DyingJournal journal;
  const Limits limits{.usd = 20};
  std::mt19937 random(3);
  int lives = 0;
  while (rough.size() < kAsks && ++lives < 200) {
    journal.dies_at = lives <= 50 ? journal.events.size() + random() % 7 : SIZE_MAX;
    RunModel run(client(server), limits, journal);
    try {
      drive(journal, run, rough);
    } catch (const Killed&) {
    }
    rough.resize(std::min(rough.size(), size_t{kAsks}));
    Spent spent = run.ledger().spent();
    EXPECT_LE(spent.usd + spent.open_usd, limits.usd);
  }
  EXPECT_GE(lives, 50);
  EXPECT_EQ(rough, calm);
  // Reading the journal into a new ledger gives the same account. Calls that were open at a crash
  // stay charged.
  RunModel folded(nullptr, limits, journal);
  for (const auto& [type, data] : journal.events) ASSERT_TRUE(folded.fold(type, data));
  EXPECT_NEAR(folded.ledger().spent().usd, paid(journal), 1e-9);
  EXPECT_LE(folded.ledger().spent().open_calls, 50);
}

TEST(Resume, ReplaysEachQuestionWithoutAClient) {
  TestModel server("anthropic", script(0));
  DyingJournal journal;
  std::vector<std::string> live;
  RunModel run(client(server), {}, journal);
  drive(journal, run, live);

  DyingJournal none;
  RunModel replay(nullptr, {}, none);
  size_t next = 0;
  for (const auto& [type, data] : journal.events) {
    if (type == EventType::answered) {
      ChatModel& model = replay.begin_ask();
      ChatRequest request = question("ask " + std::to_string(next));
      std::string text;
      for (int call = 0; call < kCalls; ++call) {
        auto reply = model.chat({}, request);
        ASSERT_TRUE(reply) << reply.error().text();
        text += reply->message.text + ";";
        request.messages.push_back(reply->message);
        request.messages.push_back({.text = "go on " + std::to_string(call)});
      }
      EXPECT_EQ(text, live[next++]);
      EXPECT_THAT(model.chat({}, request).error().message, HasSubstr("it ends there"));
    }
    ASSERT_TRUE(replay.fold(type, data));
  }
  EXPECT_EQ(next, size_t{kAsks});
  EXPECT_TRUE(none.events.empty());
}

TEST(Resume, TheRecordingHoldsNoKey) {
  Json steps = Json::array();
  steps.push_back({{"text", std::string("psst: ") + kTestKey}});
  TestModel server("anthropic", {{"steps", steps}});
  DyingJournal journal;
  RunModel run(client(server), {}, journal);
  journal.run = &run;
  ASSERT_TRUE(run.begin_ask().chat({}, question()));
  ASSERT_EQ(journal.events.size(), 2u);
  for (const auto& [type, data] : journal.events)
    EXPECT_EQ(dump_json(data).find(kTestKey), std::string::npos) << to_string(type);
}

}  // namespace
}  // namespace cutegen::llm
