// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "base/file.h"
#include "device/device.h"
#include "device/fill.h"

namespace cutegen::device {
namespace {

std::string golden(const char* name) {
  auto text = read_file(std::string(CUTEGEN_SOURCE_DIR) + "/tests/golden/ptx/" + name);
  EXPECT_TRUE(text.has_value());
  return text.value_or("");
}
template <class T>
LaunchArg value(T v) {
  LaunchArg a;
  a.bytes.resize(sizeof v);
  std::memcpy(a.bytes.data(), &v, sizeof v);
  return a;
}
LaunchArg buffer(const char* name) {
  return {.buffer = name};
}

class SimDeviceTest : public testing::Test {
 protected:
  void SetUp() override {
    auto opened = open_device("sim:h200");
    ASSERT_TRUE(opened.has_value()) << opened.error().text();
    device = std::move(*opened);
    for (size_t i = 0; i < x.size(); ++i) x[i] = float(i % 7) - 3;
    std::vector<BufferBinding> buffers{
        {.name = "x", .bytes = std::as_writable_bytes(std::span(x)), .read_only = true},
        {.name = "y", .bytes = std::as_writable_bytes(std::span(y)), .read_only = false}};
    ASSERT_TRUE(device->bind(buffers).has_value());
  }
  Launch relu(int64_t ctas, int n) {
    Launch l;
    l.step = "relu", l.kernel = "relu", l.grid = {ctas, 1, 1}, l.block = {256, 1, 1};
    l.args = {buffer("x"), buffer("y"), value(n)};
    return l;
  }
  std::vector<float> x = std::vector<float>(4096), y = std::vector<float>(4096);
  std::unique_ptr<Device> device;
};

TEST_F(SimDeviceTest, LoadsRunsAndProfiles) {
  auto facts = device->load({golden("relu_cute.ptx"), golden("constants.ptx")});
  ASSERT_TRUE(facts.has_value()) << facts.error().text();
  EXPECT_EQ((*facts)[0].entries[0].name, "relu");
  EXPECT_EQ((*facts)[0].entries[0].params.size(), 3u);
  EXPECT_EQ((*facts)[0].entries[0].max_block[0], 256);
  EXPECT_EQ((*facts)[0].constants.at("cg_tile"), 1024);
  EXPECT_EQ((*facts)[1].constants.at("cg_smem"), 4096);
  EXPECT_EQ((*facts)[1].tma_specs.at("cg_tma_a"),
            (std::vector<uint32_t>{1, 2, 64, 128, 1, 1, 1, 0, 1, 0, 0, 0, 16, 3, 4}));
  auto report = device->run(
      {}, {Fill{.step = "f", .buffer = "y", .value = -1, .dtype = DType::f32}, relu(4, 4000)}, {});
  ASSERT_TRUE(report.has_value()) << report.error().text();
  EXPECT_EQ(report->status, RunReport::Status::ok) << report->message;
  for (size_t i = 0; i < 4096; ++i) EXPECT_EQ(y[i], i < 4000 ? std::max(x[i], 0.f) : -1.f);
  ASSERT_EQ(report->kernels.size(), 2u);
  const KernelProfile& k = report->kernels[1];
  EXPECT_EQ(k.origin, Origin::modelled);
  EXPECT_GT(k.time_ns, 0);
  EXPECT_EQ(k.counters.at("global_load_sectors"), 500);
  EXPECT_EQ(k.sampled_share, 1);
  EXPECT_EQ(k.sample_error, 0);
  EXPECT_EQ(k.limited_by, CtaLimit::grid);
  EXPECT_TRUE(k.lines.empty()) << "lines are profiled on request";
}

TEST_F(SimDeviceTest, LinesAddUpToTheKernel) {
  ASSERT_TRUE(device->load({golden("relu_cute.ptx")}).has_value());
  RunSettings settings;
  settings.lines = true;
  auto report = device->run({}, {relu(4, 4000)}, settings);
  ASSERT_TRUE(report.has_value()) << report.error().text();
  const KernelProfile& k = report->kernels.at(0);
  double instructions = 0, sectors = 0;
  for (const LineProfile& l : k.lines) {
    EXPECT_GT(l.line, 0);
    instructions += l.counters.at("warp_instructions");
    if (auto it = l.counters.find("global_load_sectors"); it != l.counters.end())
      sectors += it->second;
  }
  EXPECT_EQ(instructions, k.counters.at("warp_instructions"));
  EXPECT_EQ(sectors, 500);
}

TEST_F(SimDeviceTest, AFaultIsAReportAndTheDeviceGoesOn) {
  ASSERT_TRUE(device->load({golden("relu_cute.ptx")}).has_value());
  auto bad = device->run({}, {relu(8, 8192), relu(1, 4)}, {});
  ASSERT_TRUE(bad.has_value()) << bad.error().text();
  EXPECT_EQ(bad->status, RunReport::Status::finding);
  EXPECT_NE(bad->message.find("out_of_bounds"), std::string::npos);
  EXPECT_NE(bad->detail.find("buffer x"), std::string::npos);
  EXPECT_EQ(bad->kernels.size(), 1u);  // the next step did not run
  auto good = device->run({}, {relu(4, 4096)}, {});
  EXPECT_EQ(good->status, RunReport::Status::ok);
}

TEST_F(SimDeviceTest, ATensorMapIsCheckedAsOnAGpu) {
  ASSERT_TRUE(device->load({golden("relu_cute.ptx")}).has_value());
  Launch l = relu(4, 4096);
  auto error = [&](std::vector<int64_t> words) {
    l.args[0].bytes.resize(words.size() * 8);
    std::memcpy(l.args[0].bytes.data(), words.data(), words.size() * 8);
    auto r = device->run({}, {l}, {});
    EXPECT_FALSE(r.has_value());
    return r ? std::string() : r.error().text();
  };
  // rank, dims, strides; version, rank, box, mode, bits, swizzle
  std::vector<int64_t> words{1, 4096, 1, 1, 1, 64, 1, 1, 1, 1, 0, 0, 0, 0, 0, 32, 0, 4};
  EXPECT_NE(error(words).find("argument 0 has 128 bytes"), std::string::npos);  // an encoded map
  words[5] = 320;
  EXPECT_NE(error(words).find("box[0] is 320 (1 to 256)"), std::string::npos);
  EXPECT_NE(error(std::vector<int64_t>(20)).find("damaged"), std::string::npos);
}

TEST_F(SimDeviceTest, TheAssemblersRegistersSetTheOccupancy) {
  ASSERT_TRUE(device->load({golden("relu_cute.ptx")}).has_value());
  auto time = [&](int registers) {
    Launch l = relu(4096, 4096);
    l.registers = registers;
    auto r = device->run({}, {l}, {});
    EXPECT_TRUE(r.has_value());
    return r ? r->kernels.at(0).time_ns : 0;
  };
  EXPECT_GT(time(255), time(16));
  EXPECT_EQ(time(16), time(9));  // both fill the SM with threads
}

TEST_F(SimDeviceTest, LimitsAndNamesAreUserErrors) {
  ASSERT_TRUE(device->load({golden("relu_cute.ptx"), golden("reduce.ptx")}).has_value());
  auto error = [&](const Launch& l) {
    auto r = device->run({}, {l}, {});
    EXPECT_FALSE(r.has_value());
    return r ? std::string() : r.error().text();
  };
  Launch l = relu(4, 4096);
  l.kernel = "nothing";
  EXPECT_NE(error(l).find("it has relu"), std::string::npos);
  l = relu(4, 4096), l.args[0] = buffer("q");
  EXPECT_NE(error(l).find("q is not bound"), std::string::npos);
  l = relu(4, 4096), l.args.pop_back();
  EXPECT_NE(error(l).find("2 arguments"), std::string::npos);
  l = relu(4, 4096), l.shared_bytes = 3'000'000'000;
  EXPECT_NE(error(l).find("shared memory"), std::string::npos);
  l = relu(0, 4096);
  EXPECT_NE(error(l).find("grid.x"), std::string::npos);
  l = relu(4, 4096), l.registers = 255, l.block = {512, 1, 1};
  EXPECT_NE(error(l).find("512 threads with 255 registers each do not fit an SM"),
            std::string::npos);
  l = relu(4, 4096), l.module = 9;
  EXPECT_NE(error(l).find("module"), std::string::npos);
  EXPECT_FALSE(device->run({}, {Fill{"f", "x", 0, DType::f32}}, {}).has_value());  // read-only
  EXPECT_FALSE(device->load({"not ptx"}).has_value());
}

TEST_F(SimDeviceTest, ChecksFindRacesAndUndefinedValues) {
  const std::string head = ".version 9.0\n.target sm_90a\n.address_size 64\n";
  const char* race =
      ".visible .entry race(.param .u64 y) { .reg .b32 %r<4>; .shared .b32 s[64]; .reg .b64 "
      "%d<4>;\n"
      "mov.u32 %r0, %tid.x; mov.u32 %r1, s; mad.lo.u32 %r2, %r0, 4, %r1; st.shared.u32 [%r2], "
      "%r0;\n"
      "xor.b32 %r2, %r2, 128; ld.shared.u32 %r3, [%r2]; ld.param.u64 %d0, [y];\n"
      "mul.wide.u32 %d1, %r0, 4; add.s64 %d1, %d1, %d0; st.global.u32 [%d1], %r3; ret; }\n"
      ".visible .entry twice(.param .u64 y) { .reg .f32 %f; .reg .b64 %d; ld.param.u64 %d, [y];\n"
      "ld.global.f32 %f, [%d]; add.f32 %f, %f, %f; st.global.f32 [%d], %f; ret; }\n";
  ASSERT_TRUE(device->load({head + race}).has_value());
  std::vector<std::byte> memory(4096);
  ASSERT_TRUE(device->bind({{"y", memory, false, BufferContent::output}}).has_value());
  Launch l;
  l.step = "a", l.kernel = "race", l.block = {64, 1, 1}, l.args = {buffer("y")};
  RunSettings settings;
  EXPECT_EQ(device->run({}, {l}, settings)->status, RunReport::Status::ok);
  settings.checks = true;
  auto r = device->run({}, {l}, settings);
  ASSERT_EQ(r->status, RunReport::Status::finding);
  EXPECT_EQ(r->message.find("race: shared_race: "), 0u) << r->message;
  EXPECT_NE(r->detail.find("the other side: source line 0, ptx line 6"), std::string::npos)
      << r->detail;
  l.kernel = "twice", l.block = {1, 1, 1};
  ASSERT_TRUE(device->bind({{"y", memory, false, BufferContent::output}}).has_value());
  r = device->run({}, {l}, settings);
  ASSERT_EQ(r->status, RunReport::Status::finding);
  EXPECT_EQ(r->message.find("twice: uninitialised: the value stored to y"), 0u) << r->message;
  Fill fill;
  fill.step = "f", fill.buffer = "y", fill.value = 1;
  r = device->run({}, {fill, l}, settings);
  EXPECT_EQ(r->status, RunReport::Status::ok) << r->message;
}

TEST_F(SimDeviceTest, BudgetAndTimeEndARun) {
  const char* text =
      ".version 9.0\n.target sm_90a\n.address_size 64\n.visible .entry spin() { L: bra L; }\n";
  ASSERT_TRUE(device->load({text}).has_value());
  Launch l;
  l.step = "spin", l.kernel = "spin", l.block = {32, 1, 1};
  RunSettings settings;
  settings.instruction_budget = 100000;
  auto r = device->run({}, {l}, settings);
  ASSERT_TRUE(r.has_value());
  EXPECT_EQ(r->status, RunReport::Status::out_of_budget);
  auto late = device->run(Context().with_timeout(std::chrono::milliseconds(20)), {l}, {});
  ASSERT_FALSE(late.has_value());
  EXPECT_EQ(late.error().kind, ErrorKind::timeout);
}

TEST(OpenDevice, NamesTheKnownOnes) {
  EXPECT_EQ(open_device("cuda:0").error().kind, ErrorKind::world);
  EXPECT_EQ(open_device("sim:h9000").error().kind, ErrorKind::user);
  EXPECT_NE(DeviceName::parse("gpu").error().text().find("sim:h200"), std::string::npos);
  auto facts = device_facts("sim:h200");
  ASSERT_TRUE(facts.has_value());
  EXPECT_EQ(facts->arch, "sm_90a");
  EXPECT_EQ(facts->sms, 132);
}

TEST(FillBytes, RoundsToTheDtype) {
  std::vector<std::byte> b(8);
  auto word = [&] {
    uint32_t v;
    std::memcpy(&v, b.data(), 4);
    return v;
  };
  ASSERT_TRUE(fill_bytes(b, DType::f32, 1.5).has_value());
  EXPECT_EQ(word(), 0x3fc00000u);
  ASSERT_TRUE(fill_bytes(b, DType::f16, 1).has_value());
  EXPECT_EQ(word(), 0x3c003c00u);
  ASSERT_TRUE(fill_bytes(b, DType::bf16, -INFINITY).has_value());
  EXPECT_EQ(word(), 0xff80ff80u);
  ASSERT_TRUE(fill_bytes(b, DType::i8, -3).has_value());
  EXPECT_EQ(word(), 0xfdfdfdfdu);
  ASSERT_TRUE(fill_bytes(b, DType::i64, 0).has_value());
  EXPECT_EQ(word(), 0u);
  EXPECT_FALSE(fill_bytes(b, DType::u8, 256).has_value());
  EXPECT_FALSE(fill_bytes(b, DType::i32, 0.5).has_value());
  EXPECT_FALSE(fill_bytes(b, DType::f8e4m3, 1).has_value());
}

}  // namespace
}  // namespace cutegen::device
