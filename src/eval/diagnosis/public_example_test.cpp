// SPDX-License-Identifier: Apache-2.0
#include "eval/diagnosis/public_example.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "eval/diagnosis/feedback.h"
#include "tensor/half.h"

namespace cutegen::eval {
namespace {

using testing::HasSubstr;
using testing::Not;

std::vector<std::byte> bytes_of(DType dtype, const std::vector<double>& values) {
  std::vector<std::byte> out(values.size() * size_of(dtype));
  from_double(dtype, values, out);
  return out;
}

// out = x * w with x [2, 3] and w [3].
struct Scaled {
  Task task;
  std::vector<std::byte> x = bytes_of(DType::f32, {1, 2, 3, 4, 5, 6});
  std::vector<std::byte> w = bytes_of(DType::f32, {0.5, 0.25, 10});
  Expected expected;

  Scaled() {
    task.tensors = {{.name = "x"}, {.name = "w"}, {.name = "out", .role = TensorRole::output}};
    task.graph.placeholders = {{.name = "x", .shape = {2, 3}}, {.name = "w", .shape = {3}}};
    task.graph.nodes = {{.id = "y",
                         .op = "aten.mul.Tensor",
                         .args = {{{"ref", "x"}}, {{"ref", "w"}}},
                         .outputs = {{.name = "y", .shape = {2, 3}}}}};
    task.graph.outputs = {"y"};
    task.shapes.emplace_back();
    task.shapes[0].tensors = {{"x", {2, 3}}, {"w", {3}}, {"out", {2, 3}}};
    const std::vector<double> truth{0.5, 0.5, 30, 2, 1.25, 60};
    expected =
        make_expected({.name = "out", .dtype = DType::f32, .shape = {2, 3}}, truth, truth, {}, {});
  }

  std::string told(const std::vector<double>& output) {
    const auto bytes = bytes_of(DType::f32, output);
    return wrong_values(task, task.shapes[0], expected, judge(expected, bytes), bytes,
                        {{.name = "x", .dtype = DType::f32, .shape = {2, 3}, .bytes = x},
                         {.name = "w", .dtype = DType::f32, .shape = {3}, .bytes = w}});
  }
};

TEST(PublicExample, ShowsExpectedAndActualAndTheInputsBehindThem) {
  EXPECT_EQ(Scaled().told({0.5, 0.5, 30, 2, 7, 0}),
            "out[1, 1]: expected 1.25, got 7; from x[1, 1] = 5; w[1] = 0.25\n"
            "out[1, 2]: expected 60, got 0; from x[1, 2] = 6; w[2] = 10\n");
}

TEST(PublicExample, ShowsTheFirstThreeWrongElements) {
  const std::string told = Scaled().told({NAN, -INFINITY, 31, 3, 7, 0});
  EXPECT_THAT(told, HasSubstr("out[0, 0]: expected 0.5, got NaN;"));
  EXPECT_THAT(told, HasSubstr("out[0, 1]: expected 0.5, got -inf;"));
  EXPECT_THAT(told, HasSubstr("out[0, 2]: expected 30, got 31;"));
  EXPECT_THAT(told, Not(HasSubstr("out[1, 0]")));
}

// A sum over 100 values shows the first four. Long texts end at a whole line.
TEST(PublicExample, ShowsTheStartOfALongRowAndStaysShort) {
  Scaled s;
  const std::string name(270, 'x');
  s.task.graph.placeholders = {{.name = name, .shape = {2, 100}}};
  s.task.graph.nodes = {{.id = "y",
                         .op = "aten.sum.dim_IntList",
                         .args = {{{"ref", name}}, {1}},
                         .outputs = {{.name = "y", .shape = {2}}}}};
  s.task.shapes[0].tensors = {{name, {2, 100}}, {"out", {2}}};
  std::vector<double> rows(200);
  for (size_t i = 0; i < rows.size(); ++i) rows[i] = double(i);
  const auto input = bytes_of(DType::f16, rows);
  const Expected e = make_expected({.name = "out", .dtype = DType::f32, .shape = {2}},
                                   {4950, 14950}, {4950, 14950}, {}, {});
  const auto output = bytes_of(DType::f32, {1, 2});
  const std::string told =
      wrong_values(s.task, s.task.shapes[0], e, judge(e, output), output,
                   {{.name = name, .dtype = DType::f16, .shape = {2, 100}, .bytes = input}});
  EXPECT_THAT(told, HasSubstr("out[0]: expected 4950, got 1; from " + name +
                              "[0, 0:100] = 0, 1, 2, 3, ...\n"));
  EXPECT_THAT(told, HasSubstr("out[1]: expected 14950, got 2; from " + name +
                              "[1, 0:100] = 100, 101, 102, 103, ...\n"));
  const std::string longer(700, 'y');
  s.task.graph.placeholders[0].name = longer;
  s.task.graph.nodes[0].args[0] = {{"ref", longer}};
  s.task.shapes[0].tensors[longer] = {2, 100};
  EXPECT_EQ(
      wrong_values(s.task, s.task.shapes[0], e, judge(e, output), output,
                   {{.name = longer, .dtype = DType::f16, .shape = {2, 100}, .bytes = input}}),
      "");
}

// No element is wrong, but the output as a whole: the largest errors come first.
TEST(PublicExample, ShowsTheLargestErrorsIfNoElementIsWrong) {
  Scaled s;
  Judgement j{.elements = 6};
  const auto output = bytes_of(DType::f32, {0.5, 0.5, 30, 2, 1.26, 60.1});
  const std::string told = wrong_values(s.task, s.task.shapes[0], s.expected, j, output, {});
  EXPECT_THAT(told, testing::StartsWith("out[1, 1]: expected 1.25, got 1.25999999\n"
                                        "out[1, 2]: expected 60, got 60.0999985\n"));
}

TEST(PublicExample, TheTextNamesTheResultOfTheRun) {
  EXPECT_THAT(public_run_text({}, "", ""),
              HasSubstr("seed 20, not secret), the program is correct."));
  EXPECT_THAT(public_run_text({}, "", "a race"), HasSubstr("the program fails: a race"));
  Mismatch m{.output = "out", .elements = 64, .wrong = 2, .pattern = "the last 2 elements"};
  EXPECT_THAT(public_run_text({m}, "out[62]: ...\n", "x"),
              HasSubstr("2 of 64 elements of out are wrong (the last 2 elements). The first "
                        "ones:\nout[62]: ...\n"));
  m.gate = Gate::rms;
  EXPECT_THAT(public_run_text({m}, "out[62]: ...\n", "x"),
              HasSubstr("it also fails. The largest errors there:\nout[62]: ...\n"));
}

TEST(PublicExample, TheTextFollowsTheFirstMismatch) {
  const Mismatch a{.output = "a", .elements = 4, .wrong = 1}, b{.output = "b", .elements = 4};
  const std::string first = details_of(a) + "\n", second = details_of(b) + "\nmore\n";
  EXPECT_EQ(after_first_mismatch(first + second, {a, b}, "T\n"), first + "T\n" + second);
  EXPECT_EQ(after_first_mismatch("other\n", {a, b}, "T\n"), "other\nT\n");
}

}  // namespace
}  // namespace cutegen::eval
