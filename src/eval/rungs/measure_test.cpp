// SPDX-License-Identifier: Apache-2.0
// Tests the clock check of measured runs, and their buffers.
#include "eval/rungs/measure.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sys/stat.h>

#include "eval/rungs/timed_buffers.h"

namespace cutegen::eval {
namespace {

TEST(CheckClock, ForgivesAHiccupButNotEveryBlock) {
  TimedBlock honest{.claimed_ns = 8e6, .seen_ns = 8.4e6, .runs = 8},
      hiccup{.claimed_ns = 8e6, .seen_ns = 60e6, .runs = 8},
      liar{.claimed_ns = 8e5, .seen_ns = 8.4e6, .runs = 8};
  EXPECT_TRUE(check_clock({honest}).agrees);
  EXPECT_TRUE(check_clock({hiccup, honest}).agrees);
  EXPECT_FALSE(check_clock({hiccup}).agrees);
  EXPECT_FALSE(check_clock({liar, liar, hiccup}).agrees);
  EXPECT_DOUBLE_EQ(check_clock({honest, hiccup}).claimed_ns, 16e6);
  EXPECT_DOUBLE_EQ(check_clock({honest, hiccup}).seen_ns, 68.4e6);
}

TEST(CheckClock, AllowsWhatTheHostTakesForARun) {
  EXPECT_TRUE(check_clock({{16e3, 2e6, 8}}).agrees);   // reported: 2 us a run; seen: 250 us
  EXPECT_FALSE(check_clock({{16e3, 3e6, 8}}).agrees);  // seen: 375 us
  EXPECT_TRUE(check_clock({}).agrees);
}

// Two programs read x. Each has an output, and one has scratch.
struct Official {
  Official() {
    task.tensors = {{.name = "x", .role = TensorRole::input, .dtype = DType::f32},
                    {.name = "out", .role = TensorRole::output, .dtype = DType::f32}};
    shape.name = "official";
    shape.tensors = {{"x", {1 << 20}}, {"out", {1 << 20}}};
    prepared.shape = &shape;
    prepared.plan.scratch = {{.name = "sums", .bytes = 4096, .zero = true, .weights_life = false}};
  }
  Task task;
  ShapeCase shape;
  PreparedShape prepared;
  InputSet set;
};

TEST(TimedBuffers, OutputsHaveCopiesAsFarAsMemoryGoes) {
  Official o;
  TimedBuffers b;
  ASSERT_TRUE(b.add(o.task, o.prepared, o.set));
  EXPECT_EQ(b.total(), (4 << 20) * 2 + 4096);
  EXPECT_FALSE(b.fit(8 << 20, 8));
  ASSERT_TRUE(b.fit(17 << 20, 8));
  EXPECT_EQ(b.copies(), 3);
  ASSERT_TRUE(b.fit(int64_t{1} << 40, 8));
  EXPECT_EQ(b.copies(), 8);
  ASSERT_TRUE(b.add_other(o.task, o.prepared));
  RunRequest request;
  ASSERT_TRUE(b.put(request));
  std::map<std::string, const RunBuffer*> by_name;
  for (const RunBuffer& r : request.buffers) by_name[r.name] = &r;
  EXPECT_EQ(by_name.size(), 5U);
  EXPECT_TRUE(by_name.at("x")->read_only);
  EXPECT_EQ(by_name.at("x")->copies, 1);
  EXPECT_EQ(by_name.at("out")->copies, 8);
  EXPECT_EQ(by_name.at("against/out")->copies, 8);
  EXPECT_EQ(by_name.at("against/sums")->copies, 1);
  EXPECT_FALSE(by_name.at("sums")->read_only);
}

TEST(TimedBuffers, MutatedTensorsHaveCopiesForBothPrograms) {
  Official o;
  o.task.tensors[0].mutated = true;
  TimedBuffers b;
  ASSERT_TRUE(b.add(o.task, o.prepared, o.set));
  ASSERT_TRUE(b.add_other(o.task, o.prepared, &o.set));
  ASSERT_TRUE(b.fit(int64_t{1} << 40, 4));
  RunRequest request;
  ASSERT_TRUE(b.put(request));
  int found = 0;
  for (const RunBuffer& r : request.buffers)
    if (r.name == "x" || r.name == "against/x") {
      ++found;
      EXPECT_FALSE(r.read_only);
      EXPECT_EQ(r.copies, r.name == "x" ? 4 : 1);
      EXPECT_GT(r.pattern_bytes, 0);  // so that the device fills it before each run
    }
  EXPECT_EQ(found, 2);
}

TEST(TimedBuffers, TellsOfCopiesThatKeepTheirPattern) {
  Official o;
  TimedBuffers b;
  ASSERT_TRUE(b.add(o.task, o.prepared, o.set));
  ASSERT_TRUE(b.fit(int64_t{1} << 40, 2));
  RunRequest request;
  ASSERT_TRUE(b.put(request));
  struct stat info{};
  ASSERT_EQ(::fstat(request.memory, &info), 0);
  auto memory = Mapping::map(request.memory, size_t(info.st_size), true);
  ASSERT_TRUE(memory);
  const RunBuffer* out = nullptr;
  for (const RunBuffer& r : request.buffers)
    if (r.name == "out") out = &r;
  const std::byte* pattern = memory->data() + out->offset;
  auto probes = b.draw_probes(o.task, 2);
  EXPECT_EQ(probes.front().offset, 0);
  EXPECT_EQ(probes.size(), 48U);
  for (const Probe& p : probes)
    for (int64_t i = 0; i < p.bytes; ++i) memory->data()[p.at + i] = std::byte(i % 7);
  int64_t looked_at = 0;
  EXPECT_EQ(b.unwritten(probes, o.task.tensors[1], looked_at), 0);
  EXPECT_EQ(looked_at, 48 * 1024);
  for (const Probe& p : probes)
    if (p.buffer == "out#1")
      for (int64_t i = 0; i < p.bytes; ++i) memory->data()[p.at + i] = pattern[i % 8];
  EXPECT_EQ(b.unwritten(probes, o.task.tensors[1], looked_at), 24 * 1024);
  EXPECT_EQ(b.draw_probes(o.task, 1).size(), 24U);
}

}  // namespace
}  // namespace cutegen::eval
