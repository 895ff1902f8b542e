// SPDX-License-Identifier: Apache-2.0
// How fast the simulator is: golden kernels at a million elements, and an f16
// matrix product of 1024 x 1024 x 1024, on one thread and on all.
// Prints JSON: the best of several runs by wall clock, and the processor time of that run.
#include <fmt/format.h>
#include <sys/resource.h>

#include <cstring>
#include <thread>

#include "base/file.h"
#include "base/json.h"
#include "ptx/machine.h"

namespace {

using namespace cutegen;

double processor_seconds() {
  rusage u{};
  getrusage(RUSAGE_SELF, &u);
  return double(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
         1e-6 * double(u.ru_utime.tv_usec + u.ru_stime.tv_usec);
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
};

Json measure(const Job& job, int threads, std::vector<std::vector<float>>& buffers) {
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
    arguments.push_back(argument(memory.add(
        last ? "out" : "in " + std::to_string(i), std::as_writable_bytes(std::span(buffers[i])),
        last ? ptx::Access::read_write : ptx::Access::read_only)));
  }
  for (int i : job.integers) arguments.push_back(argument(i));
  double wall = 1e9, processor = 1e9;
  uint64_t instructions = 0;
  for (int i = 0; i < 15; ++i) {
    ptx::RunOptions options;
    options.threads = threads;
    const double before = processor_seconds();
    auto r = ptx::launch({}, memory, *module, job.entry, job.config, arguments, options);
    if (!r || r->status != ptx::LaunchStatus::ok)
      return {{"error", r ? r->reason : r.error().text()}};
    wall = std::min(wall, std::chrono::duration<double>(r->host_time).count());
    processor = std::min(processor, processor_seconds() - before);
    instructions = r->counters.warp_instructions;
  }
  return {{"kernel", job.entry},
          {"threads", threads},
          {"parse_ms", parse * 1e3},
          {"wall_ms", wall * 1e3},
          {"processor_ms", processor * 1e3},
          {"warp_instructions", instructions},
          {"lane_instructions_per_s", double(instructions) * 32 / wall}};
}

}  // namespace

int main() {
  const size_t n = 1 << 20;
  std::vector<float> x(n);
  for (size_t i = 0; i < n; ++i) x[i] = float(i % 1013) * 0.01f - 5;
  // For f16 the same bytes are halves of moderate size.
  std::vector<float> halves(n / 2);
  std::vector<uint16_t> bits(n);
  for (size_t i = 0; i < n; ++i) bits[i] = uint16_t((i * 40503u & 0x83ff) | 0x3800);
  std::memcpy(halves.data(), bits.data(), 2 * n);
  std::vector<std::vector<float>> one{x, std::vector<float>(n)},
      two{halves, halves, std::vector<float>(n)};
  auto line = [](int64_t ctas) { return ptx::LaunchConfig{{ctas, 1, 1}, {256, 1, 1}}; };
  const ptx::LaunchConfig tiles{{8, 8, 1}, {128, 1, 1}, {1, 1, 1}, 49152};
  Json out = Json::array();
  for (int threads : {1, int(std::thread::hardware_concurrency())}) {
    out.push_back(measure({"relu_cute.ptx", "relu", line(1024), {int(n)}}, threads, one));
    out.push_back(measure({"softmax.ptx", "softmax", line(1024), {1024}}, threads, one));
    out.push_back(measure({"gemm_f16.ptx", "gemm", tiles, {1024, 1024, 1024}}, threads, two));
  }
  fmt::print("{}\n", dump_json(out, 2));
}
