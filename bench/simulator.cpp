// SPDX-License-Identifier: Apache-2.0
// Measures the speed of the simulator: golden kernels at a million elements, and matrix products of
// 1024 x 1024 x 1024 (f32, f16, and by wgmma bf16 and three tf32 products), bare and with checks,
// on one thread and on all. The arguments name the kernels to measure; none means all. Prints JSON:
// the least wall time of several runs, the processor time of that run, and the most memory of the
// process so far.
#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <cstring>
#include <string_view>
#include <thread>

#include "base/file.h"
#include "base/json.h"
#include "ptx/machine/machine.h"
#include "ptx/ops/tensor_map.h"

namespace {

using namespace cutegen;

double processor_seconds() {
  rusage u{};
  getrusage(RUSAGE_SELF, &u);
  return double(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
         1e-6 * double(u.ru_utime.tv_usec + u.ru_stime.tv_usec);
}

double most_memory_mb() {
  rusage u{};
  getrusage(RUSAGE_SELF, &u);
  return double(u.ru_maxrss) / 1024;
}

template <class T>
std::vector<std::byte> argument(T value) {
  std::vector<std::byte> out(sizeof value);
  std::memcpy(out.data(), &value, sizeof value);
  return out;
}

struct Job {
  const char* module;
  const char* entry;
  ptx::LaunchConfig config;
  std::vector<int> integers;  // the arguments after the buffers
  int runs = 15;
  std::vector<bool> maps = {};  // whether a buffer is passed as a tensor map
  ptx::TensorType type = ptx::TensorType::bf16;
};

// Rows of 1024 elements, in boxes of 64 rows of 128 bytes.
std::vector<std::byte> tensor_map(uint64_t address, ptx::TensorType type) {
  ptx::TensorMap map;
  map.type = type, map.rank = 2, map.address = address, map.swizzle = 3;
  map.sizes[0] = map.sizes[1] = 1024, map.strides[1] = 1024 * map.element();
  map.box[0] = 128 / map.element(), map.box[1] = 64;
  const auto bytes = ptx::encode(map);
  return {bytes.begin(), bytes.end()};
}

struct Mode {
  const char* name = "";
  int threads = 1;
  bool counters = true;
  ptx::Checks checks;
};

Json measure(const Job& job, const Mode& mode, std::vector<std::vector<float>>& buffers) {
  auto text = read_file(std::string(CUTEGEN_SOURCE_DIR) + "/tests/golden/ptx/" + job.module);
  if (!text) return {{"error", text.error().text()}};
  auto parse_start = Clock::now();
  auto module = ptx::Module::parse(*text);
  if (!module) return {{"error", module.error().text()}};
  const double parse = std::chrono::duration<double>(Clock::now() - parse_start).count();
  ptx::Memory memory;
  std::vector<std::vector<std::byte>> arguments;
  for (size_t i = 0; i < buffers.size(); ++i) {
    const bool last = i + 1 == buffers.size();
    const uint64_t at = memory.add(last ? "out" : "in " + std::to_string(i),
                                   std::as_writable_bytes(std::span(buffers[i])),
                                   last ? ptx::Access::read_write : ptx::Access::read_only,
                                   last ? ptx::Content::output : ptx::Content::given);
    const bool by_map = i < job.maps.size() && job.maps[i];
    arguments.push_back(by_map ? tensor_map(at, job.type) : argument(at));
  }
  for (int i : job.integers) arguments.push_back(argument(i));
  double wall = 1e9, processor = 1e9;
  uint64_t instructions = 0;
  for (int i = 0; i < job.runs; ++i) {
    ptx::RunOptions options;
    options.threads = mode.threads;
    options.counters = mode.counters;
    options.checks = mode.checks;
    const double before = processor_seconds();
    auto r = ptx::launch({}, memory, *module, job.entry, job.config, arguments, options);
    if (!r || r->status != ptx::LaunchStatus::ok)
      return {{"error", r ? r->reason : r.error().text()}};
    wall = std::min(wall, std::chrono::duration<double>(r->host_time).count());
    processor = std::min(processor, processor_seconds() - before);
    instructions = r->counters.warp_instructions;
  }
  return {{"kernel", job.entry},
          {"mode", mode.name},
          {"threads", mode.threads},
          {"parse_ms", parse * 1e3},
          {"wall_ms", wall * 1e3},
          {"processor_ms", processor * 1e3},
          {"most_memory_mb", most_memory_mb()},
          {"warp_instructions", instructions},
          {"lane_instructions_per_s", double(instructions) * 32 / wall}};
}

std::vector<Mode> modes() {
  ptx::Checks undefined = ptx::Checks::none(), races = undefined;
  undefined.uninitialised = true, races.races = true;
  const int cores = int(std::thread::hardware_concurrency());
  return {{"bare", 1, false, ptx::Checks::none()},
          {"counters", 1, true, ptx::Checks::none()},
          {"counters, undefined values", 1, true, undefined},
          {"counters, races", 1, true, races},
          {"all", 1, true, {}},
          {"all", cores, true, {}}};
}

}  // namespace

int main(int argc, char** argv) {
  const size_t n = 1 << 20;
  std::vector<float> x(n);
  for (size_t i = 0; i < n; ++i) x[i] = float(i % 1013) * 0.01f - 5;
  // The f16 inputs: half values of moderate size, stored in f32 buffers.
  std::vector<float> halves(n / 2);
  std::vector<uint16_t> bits(n);
  for (size_t i = 0; i < n; ++i) bits[i] = uint16_t((i * 40503u & 0x83ff) | 0x3800);
  std::memcpy(halves.data(), bits.data(), 2 * n);
  std::vector<std::vector<float>> one{x, std::vector<float>(n)}, two{x, x, std::vector<float>(n)},
      two_halves{halves, halves, std::vector<float>(n)};
  auto line = [](int64_t ctas) { return ptx::LaunchConfig{{ctas, 1, 1}, {256, 1, 1}}; };
  const ptx::LaunchConfig simt{{8, 8, 1}, {256, 1, 1}},
      tiles{{8, 8, 1}, {128, 1, 1}, {1, 1, 1}, 49152}, producer{{16, 16, 1}, {160, 1, 1}},
      warpgroup{{16, 16, 1}, {128, 1, 1}};
  const std::pair<Job, std::vector<std::vector<float>>*> jobs[] = {
      {{"relu_cute.ptx", "relu", line(1024), {int(n)}}, &one},
      {{"softmax.ptx", "softmax", line(1024), {1024}}, &one},
      {{"sgemm_cute.ptx", "sgemm", simt, {1024, 1024, 1024}, 3}, &two},
      {{"gemm_f16.ptx", "gemm", tiles, {1024, 1024, 1024}, 3}, &two_halves},
      {{"hopper/gemm.ptx", "gemm_k_major", producer, {1024, 1024, 1024, 0}, 3, {true, true}},
       &two_halves},
      {{"hopper/products.ptx",
        "gemm_tf32x3",
        warpgroup,
        {1024, 1024, 1024, 0},
        3,
        {false, true},
        ptx::TensorType::f32},
       &two}};
  Json out = Json::array();
  for (const auto& [job, buffers] : jobs) {
    const char* name = job.entry;
    const bool wanted = argc == 1 || std::any_of(argv + 1, argv + argc, [&](const char* a) {
                          return std::string_view(a) == name;
                        });
    for (const Mode& mode : modes()) {
      if (wanted) out.push_back(measure(job, mode, *buffers));
    }
  }
  fmt::print("{}\n", dump_json(out, 2));
}
