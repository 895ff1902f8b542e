// SPDX-License-Identifier: Apache-2.0
// The GPU device against a driver without a GPU (tests/fake_cuda).
#include "device/cuda/cuda_device.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>

#include "device/cuda/tensor_map.h"
#include "device/testing/driver_process.h"

namespace cutegen::device::cuda {
namespace {

using testing::Each;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr const char* kBenchModule = R"(.version 8.0
.target sm_80
.address_size 64
.visible .const .align 4 .u32 cg_smem = 4096;
.visible .entry sevens(.param .u64 sevens_p)
.maxntid 256, 1, 1
{
  .reg .b64 %rd<3>;
  .reg .b32 %r<6>;
  ld.param.u64 %rd1, [sevens_p];
  mov.u32 %r1, %tid.x;
  mov.u32 %r3, %ctaid.x;
  mov.u32 %r4, %ntid.x;
  mad.lo.u32 %r1, %r3, %r4, %r1;
  mul.wide.u32 %rd2, %r1, 4;
  add.u64 %rd1, %rd1, %rd2;
  mov.u32 %r2, 7;
  st.global.u32 [%rd1], %r2;
  ret;
}
.visible .entry outside(.param .u64 outside_p)
{
  .reg .b64 %rd<3>;
  .reg .b32 %r<6>;
  ld.param.u64 %rd1, [outside_p];
  mov.u32 %r2, 7;
  st.global.u32 [%rd1+-4], %r2;
  ret;
}
.visible .entry fault(.param .u64 fault_p)
{
  .reg .b64 %rd<3>;
  .reg .b32 %r<3>;
  mov.u64 %rd1, 4096;
  st.global.u32 [%rd1], %r1;
  ret;
}
.visible .entry hang(.param .u64 hang_p)
{
L:
  bra L;
}
)";

void expect_refusal(const std::string& how, const std::string& message, const std::string& remedy,
                    const DeviceName& device = "cuda:0") {
  with_driver(how, [&] {
    auto opened = open_device(device);
    ASSERT_FALSE(opened);
    EXPECT_EQ(opened.error().kind, ErrorKind::world) << opened.error().text();
    EXPECT_THAT(opened.error().message, HasSubstr(message));
    EXPECT_THAT(opened.error().remedy, HasSubstr(remedy));
  });
}

Launch bench_launch(const std::string& kernel, int64_t blocks = 2, int64_t threads = 16) {
  return {.step = kernel,
          .kernel = kernel,
          .grid = {blocks, 1, 1},
          .block = {threads, 1, 1},
          .args = {{.buffer = "out"}}};
}

// A program that the fake driver and a real GPU both run.
class Bench {
 public:
  Bench() {
    auto opened = open_device("cuda:0");
    EXPECT_TRUE(opened) << opened.error().text();
    if (opened) device = std::move(*opened);
    auto loaded = device->load({kBenchModule});
    EXPECT_TRUE(loaded) << loaded.error().text();
    if (loaded) facts = (*loaded)[0];
  }
  // Runs the steps on 32 words of `out`, between words that must stay unchanged.
  Result<RunReport> run(const std::vector<std::variant<Launch, Fill>>& steps,
                        const RunSettings& settings = {}) {
    std::fill(std::begin(words), std::end(words), -1);
    CG_CHECK(device->bind({{"out", std::as_writable_bytes(std::span(words))}}));
    return device->run(Context(), steps, settings);
  }
  std::unique_ptr<Device> device;
  ModuleFacts facts;
  int32_t words[32];
};

TEST(CudaDriver, EveryRefusalHasItsCauseAndRemedy) {
  expect_refusal("none", "no GPU driver here", "install NVIDIA's driver");
  expect_refusal("no_device", "shows no GPU", "nvidia-smi");
  expect_refusal("old", "is too old: it is for CUDA 11.4; cutegen needs 12.0", "install");
  expect_refusal("memory", "NVIDIA H200): out of memory (CUDA_ERROR_OUT_OF_MEMORY)", "end other");
  expect_refusal("busy", "NVIDIA H200)", "another program uses this GPU");
  expect_refusal("no_pages", "cannot map memory by pages", "another GPU");
  expect_refusal("good", "there is no cuda:3: the driver shows 1 GPU", "use cuda:0", "cuda:3");
}

TEST(CudaDriver, ALibraryThatIsNoDriverIsSaid) {
  with_driver("good", [] {
    ::setenv("CUTEGEN_CUDA_DRIVER", "libm.so.6", 1);
    auto driver = load_driver();
    ASSERT_FALSE(driver);
    EXPECT_THAT(driver.error().message, HasSubstr("lacks cuInit"));
  });
}

TEST(CudaDriver, NamesOfDevicesAreChecked) {
  for (const char* name : {"cuda:", "cuda:-1", "cuda:x", "cuda:1x", "cuda:99999999999", "gpu"}) {
    auto parsed = DeviceName::parse(name);
    ASSERT_FALSE(parsed) << name;
    EXPECT_EQ(parsed.error().kind, ErrorKind::user) << name;
  }
}

TEST(CudaDevice, FactsComeFromTheDriverAndThePtx) {
  with_driver("good", [] {
    Bench b;
    EXPECT_EQ(b.device->facts().arch, "sm_90a");
    EXPECT_EQ(b.device->facts().name, "cuda:0");
    EXPECT_EQ(b.device->facts().sms, 132);
    EXPECT_EQ(b.device->identity().gpu, "NVIDIA H200");
    EXPECT_EQ(b.device->identity().uuid, "GPU-00010203-0405-0607-0809-0a0b0c0d0e0f");
    EXPECT_EQ(b.device->identity().driver, "of CUDA 13.0");  // without NVML
    ASSERT_EQ(b.facts.entries.size(), 4U);
    EXPECT_EQ(b.facts.entries[0].name, "sevens");
    EXPECT_EQ(b.facts.entries[0].params[0].size, 8U);
    EXPECT_EQ(b.facts.entries[0].max_block[0], 256);
    EXPECT_EQ(b.facts.entries[0].static_shared_bytes, 16);
    EXPECT_EQ(b.facts.constants.at("cg_smem"), 4096);
  });
}

TEST(CudaDevice, ALaunchWritesTheCallersMemory) {
  with_driver("good", [] {
    Bench b;
    auto report = b.run({bench_launch("sevens")});
    ASSERT_TRUE(report) << report.error().text();
    EXPECT_EQ(report->status, RunReport::Status::ok) << report->message;
    for (int32_t w : b.words) EXPECT_EQ(w, 7);
    ASSERT_EQ(report->kernels.size(), 1U);
    EXPECT_EQ(report->kernels[0].origin, Origin::measured);
    EXPECT_THAT(report->samples_ns, IsEmpty());
  });
}

TEST(CudaDevice, FillsHaveTheirDtype) {
  with_driver("good", [] {
    Bench b;
    auto report = b.run({Fill{.step = "f", .buffer = "out", .value = 1.5, .dtype = DType::f64}});
    ASSERT_TRUE(report) << report.error().text();
    double value = 0;
    std::memcpy(&value, &b.words[30], sizeof value);
    EXPECT_EQ(value, 1.5);
    ASSERT_TRUE(b.run({Fill{"f", "out", -2, DType::i16}}));
    EXPECT_EQ(reinterpret_cast<int16_t*>(b.words)[63], -2);
    auto missing = b.run({Fill{.step = "f", .buffer = "none", .value = 0, .dtype = DType::f32}});
    ASSERT_FALSE(missing);
    EXPECT_EQ(missing.error().kind, ErrorKind::user);
  });
}

TEST(CudaDevice, AWriteBesideABufferIsFoundWhereNoPageIsMissed) {
  with_driver("good", [] {
    // The first run places buffers at the end of their blocks, so there is room before them.
    Bench b;
    auto report = b.run({bench_launch("outside", 1, 1)});
    ASSERT_TRUE(report) << report.error().text();
    EXPECT_EQ(report->status, RunReport::Status::finding);
    EXPECT_THAT(report->message, HasSubstr("memory before 'out' was written"));
    EXPECT_FALSE(report->device_lost);
  });
}

TEST(CudaDevice, AFaultIsTheKernelsAndTheDeviceIsLost) {
  with_driver("good", [] {
    Bench b;
    auto report = b.run({bench_launch("sevens"), bench_launch("fault")});
    ASSERT_TRUE(report) << report.error().text();
    EXPECT_EQ(report->status, RunReport::Status::finding);
    EXPECT_THAT(report->message, HasSubstr("fault: out_of_bounds"));
    EXPECT_THAT(report->detail, HasSubstr("CUDA_ERROR_ILLEGAL_ADDRESS"));
    EXPECT_TRUE(report->device_lost);
    EXPECT_EQ(report->kernels.size(), 1U);
    auto after = b.run({bench_launch("sevens")});
    ASSERT_FALSE(after);
    EXPECT_EQ(after.error().kind, ErrorKind::world);
  });
}

TEST(CudaDevice, AKernelThatDoesNotEndIsOutOfTime) {
  with_driver("good", [] {
    Bench b;
    RunSettings settings;
    settings.limit = std::chrono::milliseconds(30);
    auto report = b.run({bench_launch("hang")}, settings);
    ASSERT_TRUE(report) << report.error().text();
    EXPECT_EQ(report->status, RunReport::Status::out_of_budget);
    EXPECT_THAT(report->message, HasSubstr("hang: the kernel was still running"));
    EXPECT_TRUE(report->device_lost);
  });
}

TEST(CudaDevice, ALaunchThatIsRefusedBreaksNothing) {
  with_driver("good", [] {
    Bench b;
    auto refused = b.run({bench_launch("sevens", 1, 2048)});
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().kind, ErrorKind::user);
    EXPECT_THAT(refused.error().message, HasSubstr("sevens: the GPU does not take this launch"));
    Launch large = bench_launch("sevens");
    large.shared_bytes = 1 << 20;
    EXPECT_FALSE(b.run({large}));
    auto unknown = b.run({bench_launch("eights")});
    auto good = b.run({bench_launch("sevens")});
    ASSERT_TRUE(good) << good.error().text();
    EXPECT_EQ(b.words[31], 7);
  });
}

TEST(CudaDevice, DynamicSharedMemoryOfFortyEightKibibytesLeavesRoomForStatic) {
  with_driver("good", [] {
    Bench b;
    Launch step = bench_launch("sevens");
    step.shared_bytes = 48 << 10;
    auto ran = b.run({step});
    EXPECT_TRUE(ran) << ran.error().text();
  });
}

TEST(CudaDevice, TimedRunsGiveSamplesAndPatternsFillBuffers) {
  with_driver("good", [] {
    Bench b;
    std::vector<std::byte> room(1000 * 4);
    const int32_t pattern[3] = {1, 2, 3};
    BufferBinding large{.name = "out",
                        .bytes = room,
                        .read_only = false,
                        .content = BufferContent::output,
                        .pattern = std::as_bytes(std::span(pattern)),
                        .copies = 2};
    ASSERT_TRUE(b.device->bind({large}));
    auto untimed = b.device->run(Context(), {bench_launch("sevens")}, {});
    ASSERT_TRUE(untimed) << untimed.error().text();
    EXPECT_THAT(untimed->samples_ns, IsEmpty());
    TimeRequest request;
    request.steps = {bench_launch("sevens")};
    request.samples = 8;  // the last run uses the second copy
    auto report = b.device->time(Context(), request);
    ASSERT_TRUE(report) << report.error().text();
    EXPECT_EQ(report->samples_ns.size(), 8U);
    EXPECT_THAT(report->samples_ns, Each(5e5));
    EXPECT_THAT(report->against_ns, IsEmpty());
    int32_t read[4] = {};
    ASSERT_TRUE(b.device->read("out#1", 30 * 4, std::as_writable_bytes(std::span(read))));
    EXPECT_THAT(read, testing::ElementsAre(7, 7, 3, 1));
    ASSERT_TRUE(b.device->read("out", 30 * 4, std::as_writable_bytes(std::span(read))));
    EXPECT_THAT(read, testing::ElementsAre(7, 7, 3, 1));
    EXPECT_FALSE(b.device->read("out", 3990, std::as_writable_bytes(std::span(read))));
    EXPECT_EQ(room[0], std::byte{0});  // nothing is copied back
  });
}

// Times a program paired with a second one. The buffers have a pattern of -1.
Result<RunReport> time_pair(Device& device, TimeRequest request) {
  static std::vector<std::byte> room(64 * 4);
  static const int32_t pattern = -1;
  BufferBinding own{.name = "out",
                    .bytes = room,
                    .read_only = false,
                    .content = BufferContent::output,
                    .pattern = std::as_bytes(std::span(&pattern, 1)),
                    .copies = 1};
  BufferBinding other = own;
  other.name = "against/out";
  CG_CHECK(device.bind({own, other}));
  Launch second = bench_launch("sevens");
  second.args[0].buffer = other.name;
  request.steps = {bench_launch("sevens")};
  request.against = {second};
  request.paired = true;
  return device.time(Context(), request);
}

int32_t first_word(Device& device, const std::string& buffer) {
  int32_t word = 0;
  EXPECT_TRUE(device.read(buffer, 0, std::as_writable_bytes(std::span(&word, 1))));
  return word;
}

TEST(CudaDevice, TwoProgramsAreTimedInTurn) {
  with_driver("good", [] {
    auto device = *open_device("cuda:0");
    ASSERT_TRUE(device->load({kBenchModule}));
    for (TimeMode mode : {TimeMode::cold, TimeMode::warm, TimeMode::graph, TimeMode::call}) {
      auto report = time_pair(*device, {.mode = mode, .samples = 5});
      ASSERT_TRUE(report) << report.error().text();
      EXPECT_EQ(report->samples_ns.size(), 5U);
      EXPECT_EQ(report->against_ns.size(), 5U);
      // The fake driver does nothing when it launches a graph.
      if (mode == TimeMode::graph) continue;
      EXPECT_EQ(first_word(*device, "out"), 7);
      EXPECT_EQ(first_word(*device, "against/out"), 7);
    }
  });
}

TEST(CudaDevice, AControlDoesEverythingButTheSteps) {
  with_driver("good", [] {
    auto device = *open_device("cuda:0");
    ASSERT_TRUE(device->load({kBenchModule}));
    auto report = time_pair(*device, {.control = true, .samples = 3});
    ASSERT_TRUE(report) << report.error().text();
    EXPECT_EQ(report->against_ns.size(), 3U);
    EXPECT_EQ(first_word(*device, "out"), -1);
  });
}

int count_of(const char* what) {
  void* driver = dlopen(std::getenv("CUTEGEN_CUDA_DRIVER"), RTLD_NOW | RTLD_NOLOAD);
  auto count = reinterpret_cast<int (*)(const char*)>(dlsym(driver, "fake_count"));
  return count ? count(what) : -1;
}

TEST(CudaDevice, RegistersLocalMemoryAndLinesAreOverwrittenBeforeEachRun) {
  with_driver("good", [] {
    auto device = *open_device("cuda:0");
    ASSERT_TRUE(device->load({kBenchModule}));
    auto report = time_pair(*device, {.samples = 3});
    ASSERT_TRUE(report) << report.error().text();
    for (const char* what : {"scrub_registers", "scrub_local_1024", "reset", "soil"})
      EXPECT_EQ(count_of(what), 6) << what;
    // Only the two cooling times: everything was overwritten, and the fake clock does not tick.
    EXPECT_THAT(report->state,
                testing::UnorderedElementsAre(testing::Pair("cooling_ns", 5e5),
                                              testing::Pair("cooling_least_ns", 5e5)));
  });
}

TEST(CudaDevice, AsMuchLocalMemoryIsOverwrittenAsTheProgramUses) {
  with_driver("good", [] {
    auto device = *open_device("cuda:0");
    int runs = 0;
    // Rounded up to a power of two; after a program with much local memory, one with little.
    for (const auto& [used, overwritten] :
         std::map<int, int>{{1025, 2048}, {5000, 8192}, {16384, 16384}, {100000, 16384}}) {
      const std::string more = fmt::format(".visible .entry local_{}() {{ ret; }}\n", used);
      ASSERT_TRUE(
          device->load({kBenchModule, ".version 8.0\n.target sm_80\n.address_size 64\n" + more}));
      const std::string name = fmt::format("scrub_local_{}", overwritten);
      const int before = count_of(name.c_str());
      ASSERT_TRUE(time_pair(*device, {.samples = 3}));
      EXPECT_EQ(count_of(name.c_str()) - before, 6) << used;
      ASSERT_TRUE(device->load({kBenchModule}));
      ASSERT_TRUE(time_pair(*device, {.samples = 3}));
      EXPECT_EQ(count_of("scrub_local_1024"), runs += 6) << used;
    }
  });
}

TEST(CudaDevice, WhatCannotBeOverwrittenIsSaidAndTimedAllTheSame) {
  const std::map<std::string, std::vector<std::string>> kMissing{
      {"no_scrub", {"local memory", "registers"}},
      {"no_local", {"local memory"}},
      {"no_reset", {"persisting L2 lines"}}};
  for (const auto& [how, missing] : kMissing) {
    with_driver(how, [&missing = missing] {
      auto device = *open_device("cuda:0");
      ASSERT_TRUE(device->load({kBenchModule}));
      for (int block = 0; block < 2; ++block) {
        auto report = time_pair(*device, {.samples = 3});
        ASSERT_TRUE(report) << report.error().text();
        EXPECT_EQ(report->samples_ns.size(), 3U);
        EXPECT_EQ(report->state.size(), 2 + missing.size());  // 2: the cooling times
        for (const std::string& what : missing)
          EXPECT_EQ(report->state.count("not_scrubbed." + what), 1U) << what;
      }
    });
  }
}

TEST(CudaDevice, AGraphThatCannotBeMadeIsAnError) {
  with_driver("no_graphs", [] {
    auto device = *open_device("cuda:0");
    ASSERT_TRUE(device->load({kBenchModule}));
    auto report = time_pair(*device, {.mode = TimeMode::graph, .samples = 3});
    ASSERT_FALSE(report);
    EXPECT_THAT(report.error().message, HasSubstr("capturing a graph"));
  });
}

TEST(CudaDevice, AFaultInATimedRunIsAFinding) {
  with_driver("good", [] {
    Bench b;
    ASSERT_TRUE(b.run({bench_launch("sevens")}));
    TimeRequest request;
    request.steps = {bench_launch("fault")};
    auto report = b.device->time(Context(), request);
    ASSERT_TRUE(report) << report.error().text();
    EXPECT_EQ(report->status, RunReport::Status::finding);
    EXPECT_TRUE(report->device_lost);
    EXPECT_FALSE(b.device->time(Context(), request));
  });
}

TEST(CudaDevice, PtxThatIsRefusedHasTheAssemblersWords) {
  with_driver("good", [] {
    auto device = *open_device("cuda:0");
    std::string wrong = std::string(kBenchModule);
    wrong.replace(wrong.find("bra L"), 5, "no.such.opcode");
    auto loaded = device->load({wrong});
    ASSERT_FALSE(loaded);
    EXPECT_EQ(loaded.error().kind, ErrorKind::user);
    EXPECT_THAT(loaded.error().message, HasSubstr("line 9; error   : Not a name"));
    EXPECT_FALSE(device->load({".version x"}));
  });
  with_driver("old_ptx", [] {
    auto device = *open_device("cuda:0");
    auto loaded = device->load({kBenchModule});
    ASSERT_FALSE(loaded);
    EXPECT_EQ(loaded.error().kind, ErrorKind::world);
    EXPECT_THAT(loaded.error().remedy, HasSubstr("CUTEGEN_NVRTC"));
  });
}

TEST(CudaDevice, MachineCodeIsLoadedWhereTheDriverTakesIt) {
  const std::string cubin =
      "\x7f"
      "ELF of a kernel";
  std::string wrong = std::string(kBenchModule);
  wrong.replace(wrong.find("bra L"), 5, "no.such.opcode");
  with_driver("good", [&] {
    auto device = *open_device("cuda:0");
    auto loaded =
        device->load({kBenchModule, wrong}, {"", cubin});  // loads the cubin, not the faulty PTX
    ASSERT_TRUE(loaded) << loaded.error().text();
    EXPECT_EQ((*loaded)[1].entries.size(), (*loaded)[0].entries.size());
    EXPECT_EQ((*loaded)[1].entries[0].static_shared_bytes, 16);
    EXPECT_FALSE(device->load({kBenchModule, wrong}, {cubin}));
    EXPECT_FALSE(device->load({wrong}, {"no cubin"}));
  });
  with_driver("no_cubin", [&] {
    auto device = *open_device("cuda:0");
    EXPECT_TRUE(device->load({kBenchModule}, {cubin}));  // a refused cubin: loads the PTX
    EXPECT_FALSE(device->load({wrong}, {cubin}));
  });
}

TEST(CudaTensorMap, Im2colModeHasTheDriversArguments) {
  with_driver("good", [] {
    const Driver* driver = load_driver().value();
    // rank, dims, strides; the spec; then lower, upper and steps of W and H
    std::vector<int64_t> words{4, 8, 20, 10, 3, 1, 8,  160, 1600, 1,  4,  8,  64, 1, 1,
                               0, 0, 1,  2,  3, 0, 16, 0,   4,    -2, -1, -3, -1, 2, 1};
    const auto map = encode_map(*driver, std::as_bytes(std::span(words)), 1024, "step conv");
    ASSERT_TRUE(map) << map.error().text();
    std::array<int64_t, 6> told{};
    std::memcpy(told.data(), &*map, sizeof told);
    EXPECT_THAT(told, testing::ElementsAre(1024, -2, -3, 8, 64, 2));
    words[24] = -300;
    EXPECT_THAT(
        encode_map(*driver, std::as_bytes(std::span(words)), 1024, "step conv").error().message,
        HasSubstr("lower[0] is -300"));
  });
}

TEST(CudaTensorMap, ADescriptionIsEncodedOrRefusedWithTheRules) {
  with_driver("good", [] {
    const Driver* driver = load_driver().value();
    // rank, dims, strides; version, rank, box, mode, bits, swizzle
    std::vector<int64_t> words{2, 64, 128, 128, 1, 1, 2, 64, 32, 1, 1, 1, 1, 0, 0, 0, 0, 16, 3, 4};
    auto encode = [&] {
      return encode_map(*driver, std::as_bytes(std::span(words)), 1024, "step gemm");
    };
    EXPECT_TRUE(encode());
    words[8] = 512;
    auto large = encode();
    ASSERT_FALSE(large);
    EXPECT_EQ(large.error().kind, ErrorKind::user);
    EXPECT_THAT(large.error().message, HasSubstr("box[1] is 512 (1 to 256)"));
    EXPECT_THAT(large.error().remedy, HasSubstr("multiples of 16 bytes"));
    words[8] = 32;
    words[12] = 7;
    EXPECT_EQ(encode().error().kind, ErrorKind::user);  // a mode beyond the rank
    words[12] = 1, words[17] = 12;
    EXPECT_EQ(encode().error().kind, ErrorKind::unsupported);
    words[17] = 16, words[19] = 5;
    EXPECT_EQ(encode().error().kind, ErrorKind::unsupported);
    words.pop_back();
    EXPECT_EQ(encode().error().kind, ErrorKind::world);
  });
}

}  // namespace
}  // namespace cutegen::device::cuda
