// SPDX-License-Identifier: Apache-2.0
// Input sets that do not fit in GPU memory, with a driver without a GPU.
#include "eval/sets/gpu_set.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "device/testing/driver_process.h"
#include "eval/testing/toy_task.h"
#include "eval/testing/toy_worker.h"

namespace cutegen::eval {
namespace {

using testing::HasSubstr;

// Why a GPU with 141 GiB has no set of a shape whose input and output have 2^`rows` rows of 128 B.
std::string refused(int rows, ShapeKind kind) {
  auto judge = GpuJudge::open("cuda:0");
  if (!judge) return judge.error().text();
  ToyWorker worker;
  testing_world::ToyTask toy([](double x) { return x; });
  toy.task.file = "tasks/softmax.py";
  ShapeCase shape = toy.task.official();
  shape.kind = kind;
  for (auto& [name, dims] : shape.tensors) dims[0] = int64_t{1} << rows;
  auto set = make_gpu_set(Context(), **judge, worker, toy.task, shape, "made", 1);
  EXPECT_FALSE(set);
  EXPECT_EQ(set.error().kind, ErrorKind::unsupported);
  return set.error().message;
}

TEST(GpuSet, ASetThatDoesNotFitIsRefusedWithARemedy) {
  device::cuda::with_driver("good", [] {
    EXPECT_EQ(refused(30, ShapeKind::official),
              "inputs and truth take 825 GB, and 151 GB of the GPU's 151 GB are free; use smaller "
              "sizes in softmax.py");
    EXPECT_THAT(refused(30, ShapeKind::user),
                HasSubstr("; give it weight = 0 or smaller constants in the side file"));
  });
}

TEST(GpuSet, OtherProgramsMayHoldTheMemory) {
  device::cuda::with_driver("taken", [] {
    EXPECT_EQ(refused(25, ShapeKind::official),
              "inputs and truth take 25.8 GB, and 17.2 GB of the GPU's 151 GB are free; end other "
              "programs on it, or use smaller sizes in softmax.py");
  });
}

}  // namespace
}  // namespace cutegen::eval
