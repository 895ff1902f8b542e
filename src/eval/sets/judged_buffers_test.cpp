// SPDX-License-Identifier: Apache-2.0
// Tests the memory of a run at the official shape, with a driver without a GPU.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <span>

#include "device/cuda/buffers.h"
#include "device/testing/driver_process.h"
#include "eval/rungs/gpu_correctness.h"
#include "eval/sets/judged_buffers.h"
#include "eval/testing/empty_judge.h"

namespace cutegen::eval {
namespace {

// The fake driver runs no kernel. So nothing fills the memory, but guards are written and checked.
struct GuardStage {
  GuardStage() {
    judge = std::move(*GpuJudge::open("cuda:0"));
    EXPECT_TRUE(judge->load(testing_world::kEmptyJudge));
    auto made = std::make_shared<GpuSet>();
    GpuBuffer x = std::move(*judge->take("x", 4000, true));
    EXPECT_TRUE(judge->set_guards(Context(), x, 0xff));
    made->inputs.push_back(*x.share(true));
    made->memory.push_back(std::move(x));
    for (const char* name : {"y", "z"}) {
      GpuExpected e;
      e.spec = {.name = name, .dtype = DType::f32, .shape = {10}};
      e.elements = 10;
      made->outputs.push_back(e);
    }
    set = made;
    scratch.push_back({.name = "s", .bytes = 100});
  }
  // Writes where a runner would have mapped `buffer`, `at` bytes from its beginning.
  static void write(const SharedBuffer& buffer, int64_t at) {
    auto session = device::cuda::Session::open("cuda:0");
    ASSERT_TRUE(session);
    auto block = (*session)->memory().import(buffer.descriptor, size_t(buffer.mapped_bytes), false);
    ASSERT_TRUE(block) << block.error().text();
    for (int i = 0; i < 2; ++i) {  // one of the two bytes differs from the guard
      const std::byte value[1] = {std::byte(i)};
      ASSERT_TRUE((*session)->write(block->mapped + size_t(buffer.offset + at + i), value));
    }
    (*session)->memory().drop(*block);
  }

  static std::vector<int> ints_of(const SharedBuffer& buffer) {
    std::vector<int> out(size_t(buffer.bytes) / sizeof(int));
    auto session = device::cuda::Session::open("cuda:0");
    EXPECT_TRUE(session);
    auto block = (*session)->memory().import(buffer.descriptor, size_t(buffer.mapped_bytes), true);
    EXPECT_TRUE(block);
    EXPECT_TRUE((*session)->read(std::as_writable_bytes(std::span(out)),
                                 block->mapped + size_t(buffer.offset)));
    (*session)->memory().drop(*block);
    return out;
  }

  std::unique_ptr<GpuJudge> judge;
  GpuSetPtr set;
  std::vector<ScratchBuffer> scratch;
};

std::vector<std::string> names_of(const JudgedBuffers& run) {
  std::vector<std::string> out;
  for (const SharedBuffer& b : run.buffers()) out.push_back(b.name);
  return out;
}

TEST(JudgedBuffers, HasInputsScratchAndEveryCopyOfTheOutputs) {
  device::cuda::with_driver("good", [] {
    GuardStage stage;
    auto one = JudgedBuffers::make(Context(), *stage.judge, stage.set, stage.scratch, {});
    ASSERT_TRUE(one) << one.error().text();
    EXPECT_THAT(names_of(*one), testing::ElementsAre("x", "s", "y", "z"));
    auto many =
        JudgedBuffers::make(Context(), *stage.judge, stage.set, stage.scratch, {.copies = 2});
    ASSERT_TRUE(many) << many.error().text();
    EXPECT_THAT(names_of(*many), testing::ElementsAre("x", "s", "y", "z", "y#1", "z#1"));
    for (const SharedBuffer& b : many->buffers()) EXPECT_EQ(b.read_only, b.name == "x");
    EXPECT_TRUE(many->judge(Context(), 1));
  });
}

TEST(JudgedBuffers, AMutatedTensorStartsEveryBlockWithItsInitialValues) {
  device::cuda::with_driver("good", [] {
    GuardStage stage;
    auto made = std::make_shared<GpuSet>(std::move(const_cast<GpuSet&>(*stage.set)));
    GpuExpected state;
    state.spec = {.name = "x", .dtype = DType::f32, .shape = {1000}};
    state.elements = 1000;
    made->outputs.push_back(state);
    ASSERT_NE(made->initial("x"), nullptr);
    EXPECT_EQ(made->initial("y"), nullptr);
    GuardStage::write(made->inputs[0], 0);  // byte 1 of x is now 1
    JudgedBufferOptions options{.copies = 2, .against = true};
    auto run = JudgedBuffers::make(Context(), *stage.judge, made, stage.scratch, options);
    ASSERT_TRUE(run) << run.error().text();
    EXPECT_THAT(names_of(*run), testing::ElementsAre("initial/x", "s", "y", "z", "x", "y#1", "z#1",
                                                     "x#1", "against/x"));
    for (const SharedBuffer& b : run->buffers()) {
      EXPECT_EQ(b.read_only, b.name == "initial/x");
      const bool state_of = b.name.ends_with("x") || b.name == "x#1";
      EXPECT_EQ(b.initial, state_of && !b.read_only ? "initial/x" : "") << b.name;
      if (!state_of || b.read_only) continue;
      EXPECT_EQ(GuardStage::ints_of(b)[0], 0x100) << b.name;
      GuardStage::write(b, 100);  // as a program would
    }
    ASSERT_TRUE(run->poison_again(Context()));
    for (const SharedBuffer& b : run->buffers())
      if (b.name == "x" || b.name == "x#1") {
        EXPECT_EQ(GuardStage::ints_of(b)[25], 0) << b.name;
      }
    EXPECT_EQ(run->damage().value(), "");
  });
}

// Another set of the same shape. Bytes 1 and `value` + 1 of its input are 1.
GpuSetPtr set_with(GuardStage& stage, int8_t value) {
  auto out = std::make_shared<GpuSet>();
  GpuBuffer x = std::move(*stage.judge->take("x", 4000, false));
  SharedBuffer shared = *x.share(true);
  GuardStage::write(shared, 0);  // writes the bytes 0 and 1
  if (value > 1) GuardStage::write(shared, value);
  out->inputs.push_back(shared);
  out->memory.push_back(std::move(x));
  out->outputs = stage.set->outputs;
  return out;
}

TEST(JudgedBuffers, ItsOwnInputsTakeTheValuesOfOneSetAfterAnother) {
  device::cuda::with_driver("good", [] {
    GuardStage stage;
    GpuSetPtr first = set_with(stage, 8), second = set_with(stage, 16);
    auto run = JudgedBuffers::make(Context(), *stage.judge, first, stage.scratch,
                                   {.copies = 2, .own_inputs = true});
    ASSERT_TRUE(run) << run.error().text();
    const std::vector<SharedBuffer> buffers = run->buffers();
    EXPECT_EQ(buffers[0].name, "x");
    EXPECT_TRUE(buffers[0].read_only);
    EXPECT_NE(buffers[0].descriptor, first->inputs[0].descriptor);
    EXPECT_EQ(GuardStage::ints_of(buffers[0])[2], 256);
    EXPECT_EQ(GuardStage::ints_of(buffers[0])[4], GuardStage::ints_of(first->inputs[0])[4]);
    ASSERT_TRUE(run->renew(Context(), second));
    EXPECT_EQ(GuardStage::ints_of(buffers[0]), GuardStage::ints_of(second->inputs[0]));
    EXPECT_NE(GuardStage::ints_of(buffers[0]), GuardStage::ints_of(first->inputs[0]));
    EXPECT_FALSE(run->renew(Context(), std::make_shared<GpuSet>()));  // a set without inputs
  });
}

TEST(JudgedBuffers, TheInitialValuesOfAMutatedTensorAreThoseOfTheNewSet) {
  device::cuda::with_driver("good", [] {
    GuardStage stage;
    auto with_state = [&](int8_t value) {
      auto set = std::make_shared<GpuSet>(std::move(const_cast<GpuSet&>(*set_with(stage, value))));
      GpuExpected state;
      state.spec = {.name = "x", .dtype = DType::f32, .shape = {1000}};
      state.elements = 1000;
      set->outputs.push_back(state);
      return set;
    };
    auto first = with_state(8), second = with_state(16);
    auto run = JudgedBuffers::make(Context(), *stage.judge, first, stage.scratch,
                                   {.own_inputs = true, .against = true});
    ASSERT_TRUE(run) << run.error().text();
    EXPECT_THAT(names_of(*run), testing::ElementsAre("initial/x", "s", "y", "z", "x", "against/x"));
    const std::vector<SharedBuffer> buffers = run->buffers();
    EXPECT_TRUE(buffers[0].read_only);
    ASSERT_TRUE(run->renew(Context(), second));
    ASSERT_TRUE(run->poison_again(Context()));
    EXPECT_EQ(GuardStage::ints_of(buffers[0]), GuardStage::ints_of(second->inputs[0]));
    EXPECT_EQ(GuardStage::ints_of(buffers[4]), GuardStage::ints_of(second->inputs[0]));
    EXPECT_NE(GuardStage::ints_of(buffers[4]), GuardStage::ints_of(first->inputs[0]));
  });
}

TEST(JudgedBuffers, FewWrongElementsOfExtremesMayBeChance) {
  const Judgement one{.elements = 540'000'000, .wrong = 1, .worst_ratio = 512};
  EXPECT_TRUE(differs_by_chance(one, "extremes"));
  EXPECT_FALSE(differs_by_chance(one, "made"));
  auto with = [&](auto change) {
    Judgement j = one;
    change(j);
    return differs_by_chance(j, "extremes");
  };
  EXPECT_TRUE(with([](Judgement& j) { j.wrong = 6; }));
  EXPECT_FALSE(with([](Judgement& j) { j.wrong = 7; }));
  EXPECT_FALSE(with([](Judgement& j) { j.wrong = 0; }));
  EXPECT_FALSE(with([](Judgement& j) { j.elements = 9'000'000; }));
  EXPECT_FALSE(with([](Judgement& j) { j.nan = 1; }));
  EXPECT_FALSE(with([](Judgement& j) { j.unwritten = 1; }));
  EXPECT_FALSE(with([](Judgement& j) { j.worst_ratio = 0; }));  // infinity
  EXPECT_FALSE(with([](Judgement& j) { j.rms = 2, j.limits = {.rms = 1, .apply = true}; }));
}

TEST(GpuFamilies, AreAllOnesWhereTheGpuKeepsASetOfEach) {
  const std::vector<std::string> all{"made", "signed", "outliers", "extremes"};
  EXPECT_EQ(gpu_families(all, 4, 0), all);
  EXPECT_THAT(gpu_families(all, 3, 0), testing::ElementsAre("made", "outliers", "signed"));
  EXPECT_THAT(gpu_families(all, 3, 1), testing::ElementsAre("made", "outliers", "extremes"));
  EXPECT_THAT(gpu_families({"made"}, 0, 5), testing::ElementsAre("made"));
}

TEST(JudgedBuffers, SaysWhatWasWrittenOutside) {
  device::cuda::with_driver("good", [] {
    GuardStage stage;
    for (bool at_the_end : {false, true})
      for (const char* name : {"s", "y", "z#1"}) {
        JudgedBufferOptions options{
            .poison = PoisonKind::nan, .at_the_end = at_the_end, .copies = 2};
        auto run = JudgedBuffers::make(Context(), *stage.judge, stage.set, stage.scratch, options);
        ASSERT_TRUE(run) << run.error().text();
        EXPECT_EQ(run->damage().value(), "");
        for (const SharedBuffer& b : run->buffers())
          if (b.name == name) GuardStage::write(b, at_the_end ? -2 : b.bytes);
        EXPECT_EQ(run->damage().value(),
                  std::string(at_the_end ? "memory before '" : "memory behind '") + name +
                      "' was written");
      }
  });
}

TEST(JudgedBuffers, ARunnerUsesTheCopyThatItIsTold) {
  device::cuda::with_driver("good", [] {
    GuardStage stage;
    auto run =
        JudgedBuffers::make(Context(), *stage.judge, stage.set, stage.scratch, {.copies = 2});
    ASSERT_TRUE(run);
    auto driver = device::cuda::load_driver();
    ASSERT_TRUE(driver);
    device::cuda::Buffers buffers(**driver, 0);
    std::vector<device::BufferBinding> list;
    for (const SharedBuffer& b : run->buffers())
      list.push_back({.name = b.name,
                      .bytes = {static_cast<std::byte*>(nullptr), size_t(b.bytes)},
                      .read_only = b.read_only,
                      .copies = b.copies,
                      .shared = {.descriptor = b.descriptor,
                                 .mapped_bytes = size_t(b.mapped_bytes),
                                 .offset = size_t(b.offset)}});
    ASSERT_TRUE(buffers.bind(list, nullptr));
    auto first = buffers.find("y", "step");
    buffers.use_copy(1);
    auto second = buffers.find("y", "step");
    ASSERT_TRUE(first && second);
    EXPECT_NE((*first)->at, (*second)->at);
    EXPECT_EQ((*second)->at, (*buffers.find("y#1", "step"))->at);
    buffers.use_copy(2);
    EXPECT_EQ((*buffers.find("y", "step"))->at, (*first)->at);  // copies take turns
    EXPECT_TRUE(buffers.find("x", "step"));
  });
}

// "sevens" of the fake driver writes 7 to its first buffer.
constexpr const char* kSevens = R"(.version 8.0
.target sm_80
.address_size 64
.visible .entry sevens(.param .u64 sevens_p) { ret; }
)";

TEST(JudgedBuffers, ARunnerProcessWritesTheMemoryThatItWasHanded) {
  device::cuda::with_driver("good", [] {
    GuardStage stage;
    for (int i = 0; i < 20; ++i)  // more than fit into one message
      stage.scratch.push_back({.name = "s" + std::to_string(i), .bytes = 8});
    auto run =
        JudgedBuffers::make(Context(), *stage.judge, stage.set, stage.scratch, {.copies = 2});
    ASSERT_TRUE(run) << run.error().text();
    Runner runner({.device = "cuda:0"});
    auto loaded = runner.load(Context(), {kSevens});
    ASSERT_TRUE(loaded) << loaded.error().text();
    ASSERT_TRUE(loaded->ok) << loaded->error.text();
    Launch launch{.step = "one", .kernel = "sevens", .grid = {1, 1, 1}, .block = {10, 1, 1}};
    launch.args.push_back({.buffer = "y"});
    RunRequest request;
    request.shared = run->buffers();
    request.steps = {launch};
    request.keep = true;
    auto outcome = runner.run(Context(), request);
    ASSERT_TRUE(outcome) << outcome.error().text();
    EXPECT_EQ(outcome->report.status, device::RunReport::Status::ok) << outcome->report.message;
    for (const SharedBuffer& b : run->buffers())
      if (b.name == "y") {
        EXPECT_THAT(GuardStage::ints_of(b), testing::Each(7));
      }
    EXPECT_EQ(run->damage().value(), "");
    device::TimeRequest timed;
    timed.steps = request.steps;
    auto times = runner.time(Context(), timed, std::chrono::seconds(10));
    ASSERT_TRUE(times) << times.error().text();
    for (const SharedBuffer& b : run->buffers())
      if (b.name == "y#1") {
        EXPECT_THAT(GuardStage::ints_of(b), testing::Each(7));
      }
    runner.release();
    auto gone = runner.time(Context(), timed, std::chrono::seconds(10));
    EXPECT_FALSE(gone && gone->kind == RunnerOutcome::Kind::reported &&
                 gone->report.status == device::RunReport::Status::ok);
  });
}

}  // namespace
}  // namespace cutegen::eval
