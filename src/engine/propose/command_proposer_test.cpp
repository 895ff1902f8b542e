// SPDX-License-Identifier: Apache-2.0
#include "engine/propose/command_proposer.h"

#include <gmock/gmock.h>

#include "base/file.h"
#include "engine/run/replay_run.h"
#include "engine/testing/toy_world.h"

namespace cutegen::engine {
namespace {

using ::testing::HasSubstr;
using toy::number_of;
using toy::numbered_program;
using toy::Recorder;
using toy::relu_task;
using toy::scratch_path;
using toy::ToyWorld;

// A proposer in Python: proposes children of the best program until there are four programs.
constexpr const char* kScript = R"(import json, sys
for line in sys.stdin:
    q = json.loads(line)
    if q["type"] == "task":
        print(json.dumps({"type": "ready"}), flush=True)
        continue
    n = len(q["candidates"]) + 1
    if n == 2 and "problem" not in q:
        print(json.dumps({"type": "candidate", "program": {"plan": 7}}), flush=True)
        continue
    if n > 4:
        print(json.dumps({"type": "nothing", "reason": "four are enough"}), flush=True)
        continue
    program = json.loads(PROGRAM)
    program["sources"]["kernel.cu"] = "// %d\n" % n + program["sources"]["kernel.cu"]
    answer = {"type": "candidate", "program": program, "summary": "number %d" % n}
    if "best" in q:
        answer["parent"] = q["best"]["id"]
        assert q["best"]["verdict"]["status"] == "correct"
    print(json.dumps(answer), flush=True)
)";

TEST(CommandProposer, DrivesAWholeRun) {
  auto dir = scratch_path("proposer");
  ASSERT_TRUE(private_dir(dir));
  KernelProgram base = numbered_program(0);
  base.sources["kernel.cu"] = "extern \"C\" __global__ void k() {}\n";
  ASSERT_TRUE(
      write_file(dir / "mine.py", "PROGRAM = r'''" + dump_json(to_json(base)) + "'''\n" + kScript));
  std::string line = "exec python3 " + (dir / "mine.py").string();
  ToyWorld world;
  Parts parts = world.parts();
  parts.make_proposer = [&](const OptimizeSettings&, const eval::OpenedTask& task) {
    return Result<std::unique_ptr<Proposer>>(make_command_proposer(line, task.task));
  };
  auto store = std::move(*store::Store::open(dir / "runs"));
  OptimizeSettings settings;
  settings.file = "/tasks/relu.py";
  Recorder recorder;
  auto outcome = optimize_with(parts, {}, *store, settings, recorder);
  ASSERT_TRUE(outcome) << outcome.error().text();
  EXPECT_EQ(outcome->evaluations, 4);
  ASSERT_TRUE(outcome->best);
  EXPECT_EQ(outcome->best->id, "c4");
  EXPECT_EQ(outcome->best->parent, "c3");
  EXPECT_EQ(outcome->best->edit.summary, "number 4");
  EXPECT_THAT(outcome->reason, HasSubstr("four are enough"));
  // The same command gives the same answers, so the run replays.
  auto again = replay_with(parts, {}, *store, "last", recorder);
  EXPECT_TRUE(again) << again.error().text();
  std::filesystem::remove_all(dir);
}

TEST(CommandProposer, NamesWhatIsWrongWithAnAnswer) {
  RunView run;
  struct Case {
    Json answer;
    const char* says;
  };
  Json program = to_json(numbered_program(1));
  for (const Case& c :
       {Case{{{"typ", "x"}}, "type"}, Case{{{"type", "x"}}, "unknown type 'x'"},
        Case{{{"type", "candidate"}}, "program"},
        Case{{{"type", "candidate"}, {"program", {{"sources", 1}}}}, ""},
        Case{{{"type", "candidate"}, {"program", program}, {"parent", "c9"}}, "no candidate 'c9'"},
        Case{{{"type", "candidate"}, {"program", program}, {"sumary", "x"}}, "sumary"}}) {
    auto answer = answer_from_json(c.answer, run);
    ASSERT_FALSE(answer) << c.answer;
    EXPECT_EQ(answer.error().kind, ErrorKind::user);
    EXPECT_THAT(answer.error().text(), HasSubstr(c.says));
  }
  auto good = answer_from_json({{"type", "candidate"}, {"program", program}}, run);
  ASSERT_TRUE(good) << good.error().text();
  EXPECT_EQ(number_of(good->candidate->program), 1);
}

TEST(CommandProposer, SaysWhenTheCommandIsNone) {
  RunView run;
  auto wrong =
      make_command_proposer("exit 4", relu_task().task)->answer({}, {.role = Role::coder}, run);
  ASSERT_FALSE(wrong);
  EXPECT_THAT(wrong.error().text(), HasSubstr("exit code 4"));
  auto rude = make_command_proposer("read x; echo {}", relu_task().task);
  EXPECT_THAT(rude->answer({}, {Role::coder, {}}, run).error().text(), HasSubstr("ready"));
}

}  // namespace
}  // namespace cutegen::engine
