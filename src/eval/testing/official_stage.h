// SPDX-License-Identifier: Apache-2.0
// For tests: a toy program that is ready to run at a large official shape, with the fake CUDA
// driver and the real runner.
//
// Contract: call it inside with_driver(). The fake driver runs no kernel, so every comparison finds
// nothing wrong. As no torch worker here has a GPU, official->missing() is not empty at first.
// make_sets() replaces `official` by one whose sets have random values.
//
// Example: device::cuda::with_driver("good", [] { OfficialStage stage; stage.make_sets(1 << 30);
// });
#pragma once

#include "eval/rungs/gpu_correctness.h"
#include "eval/testing/empty_judge.h"
#include "eval/testing/ladder_world.h"

namespace cutegen::eval::testing_world {

struct OfficialStage {
  OfficialStage() : world(twice), runner({.device = "cuda:0"}) {
    world.add_official(1 << 12);
    world.toy.task.shapes[0].least_bytes = Bytes{int64_t{1} << 30};  // as large as on a GPU
    world.toolchain.ptx = World::kernel(kTwice);
    own_kernels.ptx = kEmptyJudge;
    official = std::make_unique<GpuTruths>(GpuTruths::Options{.device = "cuda:0",
                                                              .python = "/no/python",
                                                              .require_sandbox = false,
                                                              .toolchain = lent(own_kernels)});
    EXPECT_FALSE(official->missing().empty());
    world.services.official = lent(*official);
    world.services.runner = lent(runner);
    EXPECT_TRUE(runner.start(Context()));
    world.services.device_name = "cuda:0";
    world.services.identity = runner.identity();
    prepare();
  }

  // Call it again after changes of the task.
  void prepare() {
    prepared.emplace(world.program, world.toy.task);
    EXPECT_TRUE(prepared->compile(Context(), world.services)->passed);
    auto loaded = prepared->load(Context(), world.services);
    EXPECT_TRUE(loaded && loaded->passed);
  }

  // most_bytes: the limit for all kept sets.
  void make_sets(int64_t most_bytes) {
    auto judge = std::move(*GpuJudge::open("cuda:0"));
    EXPECT_TRUE(judge->load(kEmptyJudge));
    GpuJudge& gpu = *judge;
    official = std::make_unique<GpuTruths>(
        std::move(judge),
        [this, &gpu](const Context&, const Task& task, const ShapeCase& shape,
                     const std::string& family, uint64_t) -> Result<GpuSetPtr> {
          if (!refuses.empty()) return unsupported_error(refuses);
          return make_set(gpu, task, shape, family);
        },
        most_bytes);
    world.services.official = lent(*official);
  }

  static GpuSetPtr make_set(GpuJudge& gpu, const Task& task, const ShapeCase& shape,
                            const std::string& family) {
    auto out = std::make_shared<GpuSet>();
    const int64_t elements = *element_count(shape.tensors.at("x")), bytes = 4 * elements;
    GpuBuffer x = std::move(*gpu.take("x", bytes, false));
    EXPECT_TRUE(gpu.set_guards(Context(), x, 0xff));
    out->task_id = task.id, out->shape = shape.name, out->family = family;
    out->bytes = bytes;
    out->inputs.push_back(*x.share(true));
    out->memory.push_back(std::move(x));
    GpuExpected e;
    e.spec = {.name = "out", .dtype = DType::f32, .shape = shape.tensors.at("out")};
    e.elements = elements;
    out->outputs.push_back(e);
    return out;
  }

  GpuSetPtr set() const {
    return make_set(official->gpu(), world.toy.task, world.toy.task.official(), "made");
  }

  World world;
  FakeToolchain own_kernels;
  Runner runner;
  std::string refuses;  // not empty: why no set can be made
  std::unique_ptr<GpuTruths> official;
  std::optional<Prepared> prepared;
};

}  // namespace cutegen::eval::testing_world
