// SPDX-License-Identifier: Apache-2.0
#include "llm/relay.h"

#include <gmock/gmock.h>

#include <fstream>
#include <thread>

#include "base/file.h"
#include "base/hash.h"
#include "llm/chat_json.h"

namespace cutegen::llm {
namespace {

namespace fs = std::filesystem;
using std::chrono::milliseconds;
using ::testing::HasSubstr;

class Relay : public ::testing::Test {
 protected:
  void SetUp() override { dir_ = fs::temp_directory_path() / ("relay-" + random_id()); }
  void TearDown() override { fs::remove_all(dir_); }
  std::unique_ptr<RelayModel> open() {
    auto model = RelayModel::open("relay:" + dir_.string(), dir_,
                                  {.poll = milliseconds(2), .settled = milliseconds(20)});
    EXPECT_TRUE(model) << model.error().text();
    return std::move(*model);
  }
  bool has(const std::string& file) const { return fs::exists(dir_ / file); }
  std::string text(const std::string& file) const {
    return read_file(dir_ / file).value_or("none");
  }
  void write(const std::string& file, const std::string& text) const {
    ASSERT_TRUE(write_file(dir_ / file, text));
  }
  // Waits for a file, at most two seconds.
  bool appears(const std::string& file) const {
    for (int i = 0; i < 1000 && !has(file); ++i) std::this_thread::sleep_for(milliseconds(2));
    return has(file);
  }
  static ChatRequest question(const std::string& label) {
    ChatRequest request;
    request.system = "You write kernels.";
    request.messages.push_back({.text = "Write a kernel for relu."});
    request.label = label;
    return request;
  }
  static Context soon() { return Context{}.with_timeout(std::chrono::seconds(5)); }
  fs::path dir_;
};

TEST_F(Relay, AsksByFilesAndTakesAMarkdownAnswer) {
  auto model = open();
  std::jthread person([this] {
    ASSERT_TRUE(appears("0001.request.json"));
    write("0001.answer.md", "Here it is.\n");
  });
  auto reply = model->chat(soon(), question("coder 1"));
  ASSERT_TRUE(reply) << reply.error().text();
  EXPECT_EQ(reply->message.text, "Here it is.\n");
  EXPECT_EQ(reply->cost_usd, 0);
  EXPECT_TRUE(reply->usage.estimated);
  std::string page = text("0001.request.md");
  for (const char* part : {"Question 0001: coder 1", "0001.answer.md", "You write kernels.",
                           "Write a kernel for relu."})
    EXPECT_THAT(page, HasSubstr(part));
  auto json = parse_json(text("0001.request.json"), "request");
  ASSERT_TRUE(json);
  auto same = read_json<ChatRequest>(*json, "request");
  ASSERT_TRUE(same) << same.error().text();
  EXPECT_EQ(to_json(*same), to_json(question("coder 1")));
}

TEST_F(Relay, LaysTheProgramBesideTheQuestionAndSeparatesSpeakersOnly) {
  auto model = open();
  write("0001.answer.md", "Yes.\n");
  ChatRequest asked = question("coder 1");
  asked.messages.push_back({.text = "It is this program."});
  asked.files = {{"kernel.cu", "// one\n"}, {"plan.json", "{}\n"}};
  ASSERT_TRUE(model->chat(soon(), asked));
  EXPECT_EQ(text("0001.program/kernel.cu"), "// one\n");
  EXPECT_EQ(text("0001.program/plan.json"), "{}\n");
  std::string page = text("0001.request.md");
  EXPECT_THAT(page, HasSubstr("`0001.program/` contains the program"));
  EXPECT_EQ(page.find("## You are asked"), page.rfind("## You are asked"));
  // The files are not part of the question, so it keeps its number without them.
  asked.files.clear();
  ASSERT_TRUE(model->chat(soon(), asked));
  EXPECT_FALSE(has("0002.request.md"));
}

TEST_F(Relay, ShowsToolsAndTakesCallsAndRefusals) {
  auto model = open();
  fs::create_directories(dir_);
  write("0001.answer.json",
        R"({"text": "I try.", "calls": [{"name": "run", "arguments": {"n": 2}}]})");
  write("0002.answer.json", R"({"refusal": "not today"})");
  ChatRequest request = question("a");
  request.tools.push_back(
      {.name = "run", .description = "Runs a candidate.", .parameters = {{"type", "object"}}});
  auto calls = model->chat(soon(), request);
  ASSERT_TRUE(calls) << calls.error().text();
  EXPECT_EQ(calls->stop, Stop::tool);
  ASSERT_EQ(calls->message.calls.size(), 1u);
  EXPECT_EQ(calls->message.calls[0].arguments["n"], 2);
  EXPECT_THAT(text("0001.request.md"), HasSubstr("Runs a candidate."));
  auto refusal = model->chat(soon(), question("b"));
  ASSERT_TRUE(refusal);
  EXPECT_EQ(refusal->stop, Stop::refusal);
  EXPECT_EQ(refusal->detail, "not today");
}

TEST_F(Relay, ResumesWithTheSameNumbersAndTheAnswersThatAreThere) {
  {
    auto model = open();
    std::stop_source stop;
    std::jthread impatient([&] {
      EXPECT_TRUE(appears("0001.request.json"));
      stop.request_stop();
    });
    auto stopped = model->chat(Context(stop.get_token()), question("first"));
    ASSERT_FALSE(stopped);
    EXPECT_EQ(stopped.error().kind, ErrorKind::cancelled);
  }
  write("0001.answer.md", "while you were away");
  auto model = open();
  std::this_thread::sleep_for(milliseconds(30));
  auto reply = model->chat(soon(), question("first"));
  ASSERT_TRUE(reply);
  EXPECT_EQ(reply->message.text, "while you were away");
  EXPECT_FALSE(has("0002.request.json"));
  // The same text under another label is another question.
  write("0002.answer.md", "another");
  std::this_thread::sleep_for(milliseconds(30));
  auto other = model->chat(soon(), question("second"));
  ASSERT_TRUE(other);
  EXPECT_EQ(other->message.text, "another");
}

TEST_F(Relay, SaysWhatIsWrongWithAnAnswerAndWaitsForABetterOne) {
  auto model = open();
  std::jthread person([this] {
    ASSERT_TRUE(appears("0001.request.json"));
    write("0001.answer.json", R"({"texts": "misspelt"})");
    ASSERT_TRUE(appears("0001.problem.txt"));
    EXPECT_THAT(text("0001.problem.txt"), HasSubstr("texts"));
    write("0001.answer.json", R"({"text": "right"})");
  });
  auto reply = model->chat(soon(), question("a"));
  ASSERT_TRUE(reply) << reply.error().text();
  EXPECT_EQ(reply->message.text, "right");
  EXPECT_FALSE(has("0001.problem.txt"));
}

TEST_F(Relay, WaitsUntilAFileIsWhole) {
  auto model = open();
  std::jthread slow([this] {
    ASSERT_TRUE(appears("0001.request.json"));
    std::ofstream out(dir_ / "0001.answer.md");
    for (const char* word : {"one ", "two ", "three"}) {
      out << word << std::flush;
      std::this_thread::sleep_for(milliseconds(8));
    }
  });
  auto reply = model->chat(soon(), question("a"));
  ASSERT_TRUE(reply);
  EXPECT_EQ(reply->message.text, "one two three");
}

TEST_F(Relay, TimesOut) {
  auto model = open();
  auto late = model->chat(Context{}.with_timeout(milliseconds(50)), question("a"));
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().kind, ErrorKind::timeout);
  EXPECT_THAT(late.error().message, HasSubstr("0001.answer.md"));
}

TEST_F(Relay, SharesAFolder) {
  auto one = open(), two = open();
  std::jthread person([this] {
    for (const char* n : {"0001", "0002"}) {
      ASSERT_TRUE(appears(std::string(n) + ".request.json"));
      auto json = parse_json(text(std::string(n) + ".request.json"), n);
      write(std::string(n) + ".answer.json",
            R"({"text": "for )" + (*json)["label"].get<std::string>() + "\"}");
    }
  });
  for (RelayModel* model : {one.get(), two.get()}) {
    std::string label = model == one.get() ? "one" : "two";
    auto reply = model->chat(soon(), question(label));
    ASSERT_TRUE(reply) << reply.error().text();
    EXPECT_EQ(reply->message.text, "for " + label);
  }
}

}  // namespace
}  // namespace cutegen::llm
