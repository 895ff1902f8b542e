// SPDX-License-Identifier: Apache-2.0
#include "llm/ledger.h"

#include <gmock/gmock.h>

#include <deque>
#include <thread>

#include "llm/chat_json.h"
#include "llm/metered.h"
#include "llm/replay.h"
#include "llm/tokens.h"

namespace cutegen::llm {
namespace {

using ::testing::HasSubstr;

ChatRequest ledger_question(const std::string& text) {
  ChatRequest request;
  request.messages.push_back({.text = text});
  request.max_output_tokens = 100;
  request.label = "ask " + text;
  return request;
}

ChatReply answer(const std::string& text, double usd, Stop stop = Stop::end) {
  ChatReply reply;
  reply.message = {.speaker = Speaker::assistant, .text = text};
  reply.stop = stop;
  reply.usage = {.input = 50, .output = 10};
  reply.cost_usd = usd;
  reply.model = "toy-1";
  return reply;
}

// Answers from a list. Every call may cost at most 0.30.
class Toy final : public ChatModel {
 public:
  std::deque<Result<ChatReply>> replies;
  int asked = 0;
  std::optional<double> price = 0.30;
  Result<ChatReply> chat(const Context&, const ChatRequest&) override {
    ++asked;
    CG_ASSERT(!replies.empty());
    Result<ChatReply> reply = replies.front();
    replies.pop_front();
    return reply;
  }
  const std::string& name() const override { return name_; }
  bool has_tools() const override { return true; }
  std::optional<double> most_usd(const ChatRequest&) const override { return price; }

 private:
  std::string name_ = "toy:1";
};

class RefusingJournal final : public CallSink {
 public:
  std::vector<std::pair<EventType, Json>> events;
  int fail_after = -1;  // refuses events from this one on
  Result<void> record(EventType type, const Json& data) override {
    if (fail_after >= 0 && int(events.size()) >= fail_after) return world_error("disk full");
    events.emplace_back(type, data);
    return {};
  }
  std::vector<std::string> types() const {
    std::vector<std::string> out;
    for (const auto& [type, data] : events) out.push_back(to_string(type));
    return out;
  }
  void fold_into(Ledger& ledger, size_t count = SIZE_MAX) const {
    for (size_t i = 0; i < std::min(count, events.size()); ++i)
      ledger.apply(events[i].first, events[i].second);
  }
};

TEST(Ledger, ChargesWhatWasSpentAndStopsBeforeTheCap) {
  Ledger ledger({.usd = 1.0});
  Toy toy;
  RefusingJournal journal;
  MeteredModel model(toy, ledger, journal);
  for (int i = 0; i < 9; ++i) toy.replies.push_back(answer("a", 0.20));
  int answered = 0;
  Result<ChatReply> last = answer("", 0);
  while ((last = model.chat({}, ledger_question(std::to_string(answered))))) ++answered;
  EXPECT_EQ(answered, 4) << "0.80 spent: a fifth call might cost 0.30";
  EXPECT_TRUE(is_budget_end(last.error()));
  EXPECT_THAT(last.error().message, HasSubstr("budget: dollars ($0.8000 of $1.0000 spent"));
  EXPECT_EQ(toy.asked, 4) << "what is refused is not sent";
  EXPECT_NEAR(ledger.spent().usd, 0.80, 1e-12);
  EXPECT_EQ(ledger.spent().calls, 4);
  EXPECT_EQ(ledger.spent().usage.total(), 240);
  EXPECT_EQ(journal.types().back(), "call_refused");
  EXPECT_FALSE(ledger.ended()) << "something is left, if only for a cheaper call";
}

TEST(Ledger, IsTheSameAfterAResumeAtAnyPoint) {
  Ledger live({.usd = 5});
  Toy toy;
  RefusingJournal journal;
  MeteredModel model(toy, live, journal);
  toy.replies = {answer("a", 0.1), answer("b", 0.25), answer("half", 0.05, Stop::cut),
                 answer("c", 0.3)};
  for (const char* text : {"a", "b", "c"}) ASSERT_TRUE(model.chat({}, ledger_question(text)));
  ASSERT_EQ(journal.events.size(), 8u);
  for (size_t cut = 0; cut <= journal.events.size(); ++cut) {
    Ledger folded({.usd = 5}), twice({.usd = 5});
    journal.fold_into(folded, cut);
    journal.fold_into(twice, cut);
    journal.fold_into(twice, cut);
    EXPECT_EQ(to_json(folded.spent()), to_json(twice.spent())) << "no dollar is counted twice";
    EXPECT_EQ(folded.spent().open_calls, int64_t(cut % 2));
    EXPECT_EQ(folded.spent().open_usd, cut % 2 ? 0.30 : 0.0) << "a call in doubt costs all";
  }
  Ledger folded({.usd = 5});
  journal.fold_into(folded);
  EXPECT_EQ(to_json(folded.spent()), to_json(live.spent()));
  EXPECT_NEAR(folded.spent().usd, 0.70, 1e-12);

  // A call in doubt keeps its number. New calls get later ones.
  Ledger in_doubt({.usd = 0.75});
  journal.fold_into(in_doubt, 3);
  Json next = in_doubt.open_call(toy, ledger_question("d")).value();
  EXPECT_EQ(next["call"], 3);
  EXPECT_TRUE(is_budget_end(in_doubt.open_call(toy, ledger_question("e")).error()));
}

TEST(Ledger, HoldsTokensEvaluationsAndMinutes) {
  Toy toy;
  ChatRequest request = ledger_question("x");
  int64_t most = most_tokens(request) + request.max_output_tokens;
  Ledger tokens({.tokens = 2 * most - 1});
  EXPECT_TRUE(tokens.open_call(toy, request));
  auto refused = tokens.open_call(toy, request);
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, HasSubstr("budget: tokens"));

  Ledger evaluations({.evaluations = 2});
  evaluations.apply(EventType::evaluated, {{"verdict", {{"status", "correct"}}}});
  evaluations.apply(EventType::evaluated, {{"verdict", {{"status", "aborted"}}}});
  EXPECT_FALSE(evaluations.ended()) << "what our machinery aborted is not charged";
  evaluations.apply(EventType::evaluated, {{"verdict", {{"status", "failed"}}}});
  EXPECT_EQ(evaluations.ended().value_or(""), "budget: evaluations (2 of 2)");

  Ledger minutes({.minutes = 1});
  minutes.apply(EventType::task, {{"clock_ms", 59'999}});
  EXPECT_TRUE(minutes.open_call(toy, request));
  EXPECT_FALSE(minutes.ended());
  minutes.apply(EventType::task, {{"clock_ms", 60'000}});
  EXPECT_TRUE(minutes.ended());
  EXPECT_TRUE(is_budget_end(minutes.open_call(toy, request).error()));
}

TEST(Ledger, WantsAPriceForABudgetInDollars) {
  Toy toy;
  toy.price.reset();
  Ledger dollars({.usd = 1}), none;
  auto refused = dollars.open_call(toy, ledger_question("x"));
  ASSERT_FALSE(refused);
  EXPECT_FALSE(is_budget_end(refused.error()));
  EXPECT_THAT(refused.error().text(), HasSubstr("cutegen knows no price for the model 'toy:1'"));
  EXPECT_TRUE(none.open_call(toy, ledger_question("x")));
}

TEST(Ledger, NeverReservesOverTheCapFromManyThreads) {
  Ledger ledger({.usd = 3.0});
  Toy toy;
  std::atomic<int> opened = 0;
  {
    std::vector<std::jthread> threads;
    for (int t = 0; t < 8; ++t)
      threads.emplace_back([&] {
        for (int i = 0; i < 5; ++i)
          if (ledger.open_call(toy, ledger_question("x"))) ++opened;
      });
  }
  EXPECT_EQ(opened, 10);
  EXPECT_NEAR(ledger.spent().open_usd, 3.0, 1e-9);
  EXPECT_TRUE(ledger.ended());
}

TEST(Metered, ChargesCutAnswersAndAsksAgain) {
  Ledger ledger({.usd = 10});
  Toy toy;
  RefusingJournal journal;
  MeteredModel model(toy, ledger, journal);
  toy.replies = {answer("ha", 0.05, Stop::cut), answer("half", 0.07, Stop::cut),
                 answer("whole", 0.2)};
  auto reply = model.chat({}, ledger_question("x"));
  ASSERT_TRUE(reply) << reply.error().text();
  EXPECT_EQ(reply->message.text, "whole");
  EXPECT_NEAR(ledger.spent().usd, 0.32, 1e-12);

  for (int i = 0; i <= kCutRetries; ++i) toy.replies.push_back(answer("h", 0.01, Stop::cut));
  auto never = model.chat({}, ledger_question("y"));
  ASSERT_FALSE(never);
  EXPECT_EQ(never.error().kind, ErrorKind::world);
  EXPECT_NEAR(ledger.spent().usd, 0.36, 1e-12);
  EXPECT_EQ(ledger.spent().open_calls, 0);
}

TEST(Metered, SendsNothingThatCannotBeRecorded) {
  Ledger ledger({.usd = 10});
  Toy toy;
  RefusingJournal journal;
  journal.fail_after = 0;
  MeteredModel model(toy, ledger, journal);
  auto reply = model.chat({}, ledger_question("x"));
  ASSERT_FALSE(reply);
  EXPECT_EQ(reply.error().message, "disk full");
  EXPECT_EQ(toy.asked, 0);
  EXPECT_EQ(ledger.spent().open_usd, 0);
}

TEST(Metered, AnErrorCostsNothingButACallGivenUpIsInDoubt) {
  Ledger ledger({.usd = 10});
  Toy toy;
  RefusingJournal journal;
  MeteredModel model(toy, ledger, journal);
  toy.replies = {world_error("overloaded"),
                 fail(Error{.kind = ErrorKind::cancelled, .message = "interrupted"})};
  EXPECT_FALSE(model.chat({}, ledger_question("x")));
  EXPECT_EQ(ledger.spent().open_usd, 0);
  EXPECT_EQ(journal.events.back().second["error"]["message"], "overloaded");
  EXPECT_FALSE(model.chat({}, ledger_question("y")));
  EXPECT_EQ(ledger.spent().open_usd, 0.30);
  EXPECT_EQ(journal.types().back(), "call_started");
}

TEST(Replay, AnswersBitForBitAndNamesTheFirstDifference) {
  Ledger ledger({.usd = 0.75});
  Toy toy;
  RefusingJournal journal;
  MeteredModel model(toy, ledger, journal);
  ChatReply rich = answer("b", 0.2, Stop::tool);
  rich.message.calls.push_back({.id = "call_0", .name = "run", .arguments = {{"x", 1.5}}});
  rich.message.opaque = {{"api", "anthropic"}, {"content", {{{"type", "thinking"}}}}};
  toy.replies = {answer("a", 0.1), world_error("busy"), answer("h", 0.05, Stop::cut), rich,
                 answer("c", 0.3)};
  std::vector<Json> live;
  for (const char* text : {"a", "busy", "b", "c", "d"}) {
    auto reply = model.chat({}, ledger_question(text));
    live.push_back(reply ? to_json(*reply) : Json(reply.error().message));
  }
  EXPECT_THAT(live.back().get<std::string>(), HasSubstr("budget: dollars"));
  Recording recording;
  for (const auto& [type, data] : journal.events) ASSERT_TRUE(recording.apply(type, data));

  ReplayModel replay("replay:last", recording.exchanges());
  size_t i = 0;
  for (const char* text : {"a", "busy", "b", "c", "d"}) {
    auto reply = std::string(text) == "busy" ? Result<ChatReply>(world_error("busy"))
                                             : replay.chat({}, ledger_question(text));
    EXPECT_EQ(reply ? to_json(*reply) : Json(reply.error().message), live[i++]);
  }
  EXPECT_EQ(replay.left(), 0u);
  EXPECT_THAT(replay.chat({}, ledger_question("more")).error().message, HasSubstr("it ends there"));

  ReplayModel other("replay:last", recording.exchanges());
  ASSERT_TRUE(other.chat({}, ledger_question("a")));
  auto wrong = other.chat({}, ledger_question("beta"));
  ASSERT_FALSE(wrong);
  EXPECT_EQ(wrong.error().kind, ErrorKind::user);
  EXPECT_THAT(wrong.error().message, HasSubstr("first difference at /messages/0/text: byte 1"));
}

TEST(Replay, GoesOnLiveWhereTheRecordingEnds) {
  Ledger ledger({.usd = 10});
  Toy toy;
  RefusingJournal journal;
  MeteredModel live(toy, ledger, journal);
  toy.replies = {answer("a", 0.1),
                 fail(Error{.kind = ErrorKind::cancelled, .message = "interrupted"})};
  ASSERT_TRUE(live.chat({}, ledger_question("a")));
  ASSERT_FALSE(live.chat({}, ledger_question("b")));
  Recording recording;
  for (const auto& [type, data] : journal.events) ASSERT_TRUE(recording.apply(type, data));

  toy.replies = {answer("b", 0.1), answer("c", 0.1)};
  ReplayModel resumed("toy:1", recording.exchanges(),
                      std::make_unique<MeteredModel>(toy, ledger, journal));
  for (const char* text : {"a", "b", "c"}) {
    auto reply = resumed.chat({}, ledger_question(text));
    ASSERT_TRUE(reply) << reply.error().text();
    EXPECT_EQ(reply->message.text, text);
  }
  EXPECT_EQ(toy.asked, 4) << "'a' was not asked, nor paid, again";
  EXPECT_NEAR(ledger.spent().usd, 0.3, 1e-12);
  EXPECT_EQ(ledger.spent().open_usd, 0.30) << "the call in doubt stays charged";
}

}  // namespace
}  // namespace cutegen::llm
