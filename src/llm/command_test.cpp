// SPDX-License-Identifier: Apache-2.0
#include "llm/command.h"

#include <gmock/gmock.h>

#include <fstream>
#include <thread>

namespace cutegen::llm {
namespace {

using ::testing::HasSubstr;

// A program that answers each line: `body` is Python that uses the object `q`.
std::string program(const std::string& body) {
  return "exec python3 -uc 'import sys, json, time\nfor line in sys.stdin:\n    q = "
         "json.loads(line)\n"
         "    " +
         body + "'";
}

Context soon() {
  return Context{}.with_timeout(std::chrono::seconds(20));
}

TEST(Command, AnswersLineByLine) {
  auto command = Command::start(program("print(); print(json.dumps({\"twice\": q[\"n\"] * 2}))"));
  ASSERT_TRUE(command);
  for (int i = 0; i < 50; ++i) {
    auto answer = (*command)->call(soon(), {{"n", i}});
    ASSERT_TRUE(answer) << answer.error().text();
    EXPECT_EQ((*answer)["twice"], 2 * i);
  }
  // More than a pipe holds, in both directions.
  auto large = (*command)->call(soon(), {{"n", std::string(1 << 20, 'x')}});
  ASSERT_TRUE(large) << large.error().text();
  EXPECT_EQ((*large)["twice"].get<std::string>().size(), size_t{2} << 20);
}

TEST(Command, SaysHowTheProgramEnded) {
  struct Case {
    std::string line;
    const char* says;
  };
  for (const Case& c :
       {Case{"exit 3", "exit code 3"}, Case{"no-such-program-anywhere 2>&-", "exit code 127"},
        Case{"read x; kill -9 $$", "signal 9"}, Case{"read x; echo no json", "not valid JSON"},
        Case{"read x; echo [1]", "not a JSON object"},
        Case{"read x; yes | tr -d \"\\n\"", "a line of more than"}}) {
    auto command = Command::start(c.line);
    ASSERT_TRUE(command);
    auto answer = (*command)->call(soon(), {{"n", 1}});
    ASSERT_FALSE(answer) << c.line;
    EXPECT_EQ(answer.error().kind, ErrorKind::user);
    EXPECT_THAT(answer.error().text(), HasSubstr(c.says)) << c.line;
    EXPECT_THAT((*command)->call(soon(), {}).error().text(), HasSubstr("ended before"));
  }
  EXPECT_FALSE(Command::start("  "));
}

TEST(Command, EndsWithItsContextAndLeavesNobodyBehind) {
  auto command = Command::start("sleep 100 & echo \"{\\\"pid\\\": $!}\"; wait");
  ASSERT_TRUE(command);
  auto pid = (*command)->call(soon(), {});
  ASSERT_TRUE(pid) << pid.error().text();
  auto late = (*command)->call(Context{}.with_timeout(std::chrono::milliseconds(50)), {});
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().kind, ErrorKind::timeout);
  std::string state;
  for (int i = 0; i < 500 && state != "gone" && state != "Z"; ++i) {
    std::ifstream file("/proc/" + std::to_string((*pid)["pid"].get<int>()) + "/stat");
    std::string number, name;
    if (!(file >> number >> name >> state)) state = "gone";
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  EXPECT_TRUE(state == "gone" || state == "Z") << state;
}

}  // namespace
}  // namespace cutegen::llm
