// SPDX-License-Identifier: Apache-2.0
// Bad task files: each error has a one-line cause, the place and the remedy, and no bad file
// affects a later one.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/text.h"
#include "torch/testing/test_worker.h"

namespace cutegen::torch {
namespace {

using testing::HasSubstr;
using testing::Not;

// The task file with the function or class `what` replaced.
std::string with(const std::string& what, const std::string& body) {
  return kBody + ("\n" + what + "\n" + body + "\n");
}

std::string forward(const std::string& body) {
  return with("class Model(nn.Module):", "    def forward(self, x):\n        " + body);
}

std::string inputs(const std::string& body) {
  return with("def get_inputs():", "    " + body);
}

Error error_of(TorchWorker& worker, const std::filesystem::path& file) {
  auto task = worker.describe(Context(), file, {});
  EXPECT_FALSE(task) << "described " << file;
  return task ? Error{} : task.error();
}

Error error_of(const std::string& source, const std::string& side = {}) {
  TaskFile file("bad", source, side);
  return error_of(test_worker(), file.path());
}

// Checks what every message must contain.
void expect_user_error(const Error& e, const std::string& message,
                       const std::string& where = "bad") {
  EXPECT_EQ(e.kind, ErrorKind::user) << e.text();
  EXPECT_THAT(e.message, HasSubstr(message));
  EXPECT_THAT(e.message, Not(HasSubstr("\n")));
  EXPECT_THAT(e.where, HasSubstr(where));
  EXPECT_FALSE(e.remedy.empty()) << e.text();
}

TEST(BadTask, MissingFile) {
  expect_user_error(error_of(test_worker(), "/no/such/bad.py"), "");
}

TEST(BadTask, Folder) {
  TaskFile file("bad", kBody);
  expect_user_error(error_of(test_worker(), file.folder()), "", "cutegen_task_");
}

TEST(BadTask, EmptyFile) {
  expect_user_error(error_of(" \n"), "empty");
}

TEST(BadTask, BinaryFile) {
  expect_user_error(error_of(std::string("\x7f"
                                         "ELF\0\1\2",
                                         7)),
                    "not UTF-8 text");
  expect_user_error(error_of("x = '\xff\xfe'\n"), "not UTF-8 text");
}

TEST(BadTask, UnparsableFile) {
  expect_user_error(error_of("import torch\nclass Model(:\n"), "does not parse", "bad.py:2:");
}

TEST(BadTask, NoModel) {
  expect_user_error(error_of("def get_inputs():\n    return []\n"), "no Model");
  expect_user_error(error_of("import torch\nclass Model(torch.nn.Module):\n    pass\n"),
                    "no get_inputs");
  expect_user_error(error_of(std::string(kBody) + "\nModel = 3\n"), "no Model");
  expect_user_error(error_of(std::string(kBody) + "\nclass Model:\n    pass\n"),
                    "not a torch.nn.Module");
}

TEST(BadTask, RaisesNamesTheLine) {
  Error e = error_of(forward("raise ValueError('seven\\nlines')"));
  expect_user_error(e, "forward() raises ValueError: seven", "bad.py:19");
  expect_user_error(
      error_of(with("class Model(nn.Module):",
                    "    def __init__(self):\n        super().__init__()\n        1/0")),
      "Model() raises ZeroDivisionError", "bad.py:");
  expect_user_error(error_of("import no_such_module_at_all\n" + std::string(kBody)),
                    "no_such_module_at_all", "bad.py:1");
}

TEST(BadTask, ExitsThroughSys) {
  expect_user_error(error_of("import sys\nsys.exit(0)\n" + std::string(kBody)), "sys.exit",
                    "bad.py:2");
}

TEST(BadTask, InputsThatAreNoTensors) {
  expect_user_error(error_of(inputs("return [object()]")), "not a tensor");
  expect_user_error(error_of(inputs("return 'abc'")), "not a list");
  expect_user_error(error_of(inputs("return torch.ones(3)")), "not a list");
  expect_user_error(error_of(inputs("return [1.5]")), "no tensor");
  expect_user_error(error_of(inputs("return [torch.ones(3, dtype=torch.complex64)]")), "dtype");
}

TEST(BadTask, OutputsThatAreNoTensors) {
  expect_user_error(error_of(forward("return 3")), "returns no tensor");
}

TEST(BadTask, RandomNumbersInForwardAreNamed) {
  const char* kTrain = "mode = \"train\"\n";
  const std::string dropout = with("class Model(nn.Module):",
                                   "    def __init__(self):\n        super().__init__()\n"
                                   "        self.drop = nn.Dropout(0.5)\n"
                                   "    def forward(self, x):\n        return self.drop(x) * 2");
  Error e = error_of(dropout, kTrain);
  expect_user_error(e, "Dropout 'drop' draws random numbers (aten.bernoulli)", "bad.py:22");
  EXPECT_THAT(e.remedy, HasSubstr("eval mode"));
  for (const char* draw : {"x + torch.rand_like(x)", "x * torch.bernoulli(x.abs().clamp(max=1))",
                           "x[torch.randperm(8)]", "x + torch.normal(x, 1.0)",
                           "x[torch.multinomial(x.abs()[0], 3)]"}) {
    e = error_of(forward(std::string("return ") + draw));
    expect_user_error(e, "forward() draws random numbers", "bad.py:19");
    EXPECT_THAT(e.remedy, HasSubstr("as an input"));
  }
  for (const char* draw : {"x * random.random()", "x + float(np.random.rand())"}) {
    e = error_of("import random\nimport numpy as np\n" + forward(std::string("return ") + draw));
    expect_user_error(e, "draws random numbers (random or numpy.random)");
  }
  // Dropout draws no random number in eval mode or at rate zero, and unused results do not count.
  for (const std::string& calm :
       {dropout, forward("return nn.functional.dropout(x, 0.0, True)"),
        forward("y = torch.rand_like(x)\n        return x * 2"),
        "import random\n" + forward("random.random()\n        return x")}) {
    TaskFile file("calm", calm);
    auto task = test_worker().describe(Context(), file.path(), {});
    EXPECT_TRUE(task) << task.error().text();
  }
}

TEST(BadTask, ShapesThatDoNotFit) {
  expect_user_error(error_of(forward("return x @ torch.ones(7, 3)")), "forward() raises",
                    "bad.py:19");
  expect_user_error(error_of(forward("i = torch.zeros(x.shape[0], dtype=torch.int64)\n"
                                     "        return torch.zeros(5, 99).index_add(0, i, x)")),
                    "index_add() of rows of");
  expect_user_error(error_of(forward("return x[:5][torch.arange(x.shape[0])]")),
                    "index() at index 63 of an axis of size 5");
  TaskFile one("one", forward("return x + torch.ones(1)[torch.zeros(64, dtype=torch.long)].sum()"));
  auto task = test_worker().describe(Context(), one.path(), {});
  EXPECT_TRUE(task) << task.error().text();
}

TEST(BadTask, ShapesThatOverflow) {
  expect_user_error(error_of(inputs("return [torch.rand(1 << 40, 1 << 40)]")),
                    "get_inputs() raises", "bad.py:");
  expect_user_error(error_of(inputs("return [torch.rand(-3)]")), "get_inputs() raises", "bad.py:");
}

TEST(BadTask, ValuesOfTensors) {
  expect_user_error(error_of(forward("return x * x.max().item()")), "values of tensors",
                    "bad.py:19");
  expect_user_error(error_of(forward("return x if x.sum() > 0 else -x")), "values of tensors");
  expect_user_error(error_of(forward("return x.numpy()")), "values of tensors");
  for (const char* call : {"nonzero(x)", "masked_select(x, x > 0)", "unique(x)",
                           "repeat_interleave(x, x[:, 0].int(), 0)"})
    expect_user_error(error_of(forward(fmt::format("return torch.{}", call))), "without its values",
                      "bad.py:");
}

TEST(BadTask, HugePythonAllocation) {
  expect_user_error(error_of(inputs("y = bytearray(1 << 46); return [torch.ones(3)]")), "memory",
                    "bad.py:");
}

TEST(BadTask, DeepRecursion) {
  expect_user_error(error_of(forward("return self.forward(x)")), "RecursionError");
}

TEST(BadTask, NothingToCompute) {
  expect_user_error(error_of(replace_all(kBody, "rows = 64", "rows = 0")), "only empty tensors");
  expect_user_error(error_of(replace_all(forward("return nn.functional.max_pool2d(x, 2)"),
                                         "torch.randn(rows, 32)", "torch.randn(0, 3, 8, 8)")),
                    "only empty tensors");
}

Error convolution_error(const std::string& call) {
  return error_of(replace_all(forward("return nn.functional." + call), "torch.randn(rows, 32)",
                              "torch.randn(2, 12, 8, 8)"));
}

TEST(BadTask, ConvolutionsThatDoNotFit) {
  const std::vector<std::pair<std::string, std::string>> bad{
      {"conv2d(x, torch.ones(4, 16, 3, 3))", "channel"},
      {"conv2d(x, torch.ones(4, 12, 3, 3), torch.ones(5))", "bias to have 4 elements"},
      {"conv2d(x, torch.ones(8, 4, 3, 3), groups=3)", "number of groups, 3"},
      {"conv2d(x, torch.ones(4, 12, 9, 9))", "greater than actual input size"},
      {"conv2d(x, torch.ones(4, 12, 3, 3), dilation=4)", "greater than actual input size"},
      {"conv_transpose2d(x, torch.ones(16, 4, 3, 3))", "to have 16 channels"},
      {"conv_transpose2d(x, torch.ones(12, 4, 3, 3), groups=5)", "number of groups, 5"},
      {"conv_transpose2d(x, torch.ones(12, 4, 3, 3), torch.ones(3))", "bias to have 4 elements"},
      {"conv_transpose2d(x, torch.ones(12, 4, 3, 3), padding=5)", "too small"},
      {"conv_transpose2d(x, torch.ones(12, 4, 3, 3), output_padding=1)", "output padding must"},
      {"max_pool2d(x, 3, padding=2)", "at most half"},
      {"max_pool2d(x, 3, dilation=4)", "too small"},
      {"avg_pool2d(x, 9)", "too small"}};
  for (const auto& [call, message] : bad) {
    SCOPED_TRACE(call);
    expect_user_error(convolution_error(call), message, "bad.py:19");
  }
}

TEST(BadTask, KillsTheWorker) {
  Error e = error_of("import os\nos._exit(7)\n" + std::string(kBody));
  expect_user_error(e, "ends the worker process");
  EXPECT_THAT(e.message, HasSubstr("7"));
  EXPECT_TRUE(test_worker().describe(Context(), shipped("relu.py"), {}));
}

TEST(BadTask, NeverReturns) {
  TorchWorkerOptions options = test_options();
  options.call_timeout = std::chrono::seconds(2);
  auto worker = TorchWorker::open(options);
  ASSERT_TRUE(worker) << worker.error().text();
  TaskFile file("bad", "while True:\n    pass\n" + std::string(kBody));
  expect_user_error(error_of(**worker, file.path()), "does not finish");
}

TEST(BadTask, ForksLeaveNothingBehind) {
  TaskFile file("bad",
                "import os, time\nif os.fork() == 0:\n    time.sleep(0)\n" + std::string(kBody));
  auto task = test_worker().describe(Context(), file.path(), {});
  EXPECT_TRUE(task) << task.error().text();
  EXPECT_TRUE(test_worker().describe(Context(), shipped("relu.py"), {}));
}

TEST(BadTask, NeighboursCanBeImported) {
  TaskFile file("good", "import neighbour_of_test\n" + std::string(kBody));
  ASSERT_TRUE(write_file(file.folder() / "neighbour_of_test.py", "N = 3\n"));
  auto task = test_worker().describe(Context(), file.path(), {});
  EXPECT_TRUE(task) << task.error().text();
}

TEST(BadTask, HasNoNetwork) {
  Error e = error_of("import socket\nsocket.create_connection(('127.0.0.1', 9), 1)\n" +
                     std::string(kBody));
  expect_user_error(e, "the file raises", "bad.py:2");
}

TEST(BadTask, CallerThatStopsWaiting) {
  std::stop_source stop;
  stop.request_stop();
  auto task = test_worker().describe(Context(stop.get_token()), shipped("relu.py"), {});
  ASSERT_FALSE(task);
  EXPECT_EQ(task.error().kind, ErrorKind::cancelled);
}

TEST(SideFile, SetsWhatTheTaskFileCannotSay) {
  TaskFile file("good", kBody, R"(
math_mode = "tf32"
mode = "train"
tolerance = 2.5
baseline = "eager"

[[shapes]]
name = "thin"
weight = 3
constants = { rows = 3 }
)");
  auto task = test_worker().describe(Context(), file.path(), {});
  ASSERT_TRUE(task) << task.error().text();
  EXPECT_EQ(task->math_mode, MathMode::tf32);
  EXPECT_TRUE(task->train_mode);
  EXPECT_EQ(task->tolerance, 2.5);
  EXPECT_EQ(task->baseline, "eager");
  ASSERT_EQ(task->shapes.back().name, "thin");
  EXPECT_EQ(task->shapes.back().weight, 3);
  EXPECT_EQ(task->shapes.front().weight, 1);
  EXPECT_EQ(task->shapes.back().tensors.at("x"), (Shape{3, 32}));
  auto plain = TaskFile("good", kBody);
  EXPECT_NE(test_worker().describe(Context(), plain.path(), {})->id, task->id);
}

TEST(SideFile, RefusesWhatItDoesNotKnow) {
  Error e = error_of(kBody, "mode = \"eval\"\ntolerence = 2\n");
  expect_user_error(e, "unknown key 'tolerence'", "bad.toml:2");
  EXPECT_EQ(e.remedy, "did you mean 'tolerance'?");
  expect_user_error(error_of(kBody, "math_mode = \"fp8\"\n"), "fp8", "bad.toml:1");
  expect_user_error(error_of(kBody, "[strides]\nx = [1, 2]\n"), "reserved", "bad.toml:1");
  expect_user_error(error_of(kBody, "mode = \n"), "does not parse", "bad.toml:1");
  expect_user_error(error_of(kBody, "mode = 3\n"), "wrong type", "bad.toml:1");
  expect_user_error(error_of(kBody, "mutated = [\"y\"]\n"), "does not name a tensor: 'y'",
                    "bad.toml:1");
  expect_user_error(error_of(kBody, "[[shapes]]\nconstants = {rows = -3}\n"), "positive",
                    "bad.toml");
}

TEST(SideFile, PlacesErrorsOfItsConstantsInItself) {
  const std::string first = "[[shapes]]\nconstants = {rows = 8}\n";
  Error e = error_of(kBody, first + "[[shapes]]\nname = \"x\"\nconstants = {row = 3}\n");
  expect_user_error(e, "shape 'x': the file has no integer constant 'row'", "bad.toml:5");
  EXPECT_THAT(e.remedy, HasSubstr("rows"));
  e = error_of(forward("return x.view(rows // 8, 8, 32)"),
               first + "[[shapes]]\nconstants = {rows = 12}\n");
  expect_user_error(e, "shape 'user2': forward() raises", "bad.toml:4");
  EXPECT_THAT(e.message, HasSubstr("(bad.py:19)"));
  EXPECT_EQ(e.remedy, "give constants at which the module runs");
}

TEST(SideFile, RefusesNamesOfCutegensOwnShapes) {
  for (const char* name : {"small", "odd1", "odd2", "long1", "long2", "long3", "long4",
                           "derived rows=3", "proposed tail"}) {
    const std::string entry =
        fmt::format("[[shapes]]\nconstants = {{rows = 9}}\nname = \"{}\"\n", name);
    expect_user_error(error_of(kBody, "[[shapes]]\nconstants = {rows = 8}\n" + entry),
                      fmt::format("two shapes have the name '{}'", name), "bad.toml:5");
  }
  expect_user_error(error_of(kBody,
                             "[[shapes]]\nname = \"a\"\nconstants = {rows = 8}\n"
                             "[[shapes]]\nname = \"a\"\nconstants = {rows = 9}\n"),
                    "two shapes have the name 'a'", "bad.toml:5");
}

TEST(SideFile, RefusesATimedShapeThatRepeatsTheOfficialSizes) {
  for (const char* entry : {"name = \"again\"\n", "name = \"again\"\nconstants = {rows = 64}\n",
                            "name = \"again\"\nconstants = {rows = 64, \"get_inputs.0\" = 32}\n"}) {
    Error e = error_of(kBody, std::string("[[shapes]]\n") + entry);
    expect_user_error(e, "shape 'again' has the sizes of the official shape", "bad.toml:");
    EXPECT_THAT(e.remedy, HasSubstr("name the entry 'official'"));
  }
  TaskFile tested("good", kBody, "[[shapes]]\nweight = 0\nconstants = {rows = 64}\n");
  auto task = test_worker().describe(Context(), tested.path(), {});
  ASSERT_TRUE(task) << task.error().text();
  EXPECT_EQ(task->shapes.back().name, "user1");
}

TEST(SideFile, WeighsTheOfficialShapeByItsName) {
  TaskFile file("good", kBody, "[[shapes]]\nname = \"official\"\nweight = 0.25\n");
  auto task = test_worker().describe(Context(), file.path(), {});
  ASSERT_TRUE(task) << task.error().text();
  EXPECT_EQ(task->official().name, "official");
  EXPECT_EQ(task->official().weight, 0.25);
  EXPECT_NE(task->shapes.back().name, "official") << "the entry adds no shape";
}

TEST(SideFile, RefusesWeightsThatLeaveNoHeadline) {
  Error e = error_of(kBody, "[[shapes]]\nname = \"official\"\nweight = 0\n");
  expect_user_error(e, "the official shape needs a weight above 0", "bad.toml:3");
  EXPECT_NE(e.remedy.find("into the task file"), std::string::npos) << e.remedy;
  expect_user_error(error_of(kBody, "[[shapes]]\nname = \"official\"\nconstants = {rows = 8}\n"),
                    "has the constants of the task file", "bad.toml:1");
  expect_user_error(error_of(kBody,
                             "[[shapes]]\nname = \"official\"\n[[shapes]]\nname = "
                             "\"official\"\n"),
                    "two shapes have the name 'official'", "bad.toml:1");
  expect_user_error(error_of(kBody, "[[shapes]]\nweight = -1\n"), "weight must be from 0 to",
                    "bad.toml:2");
  expect_user_error(error_of(kBody, "[[shapes]]\nweight = 1e300\n"), "weight must be from 0 to",
                    "bad.toml:2");
  expect_user_error(error_of(kBody, "[[shapes]]\nweight = nan\n"), "weight must be from 0 to",
                    "bad.toml:2");
  std::string many;
  for (int i = 1; i <= 17; ++i) many += "[[shapes]]\nconstants = {rows = 8}\n";
  expect_user_error(error_of(kBody, many.c_str()), "more than 16 shapes have a weight",
                    "bad.toml:1");
}

}  // namespace
}  // namespace cutegen::torch
