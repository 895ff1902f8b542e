// SPDX-License-Identifier: Apache-2.0
// How fast the simulator is: golden kernels at a million elements, on one thread and on all.
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
  int64_t ctas;
  int last;  // the integer argument
};

Json measure(const Job& job, int threads, std::vector<float>& x, std::vector<float>& y) {
  auto text = read_file(std::string(CUTEGEN_SOURCE_DIR) + "/tests/golden/ptx/" + job.module);
  if (!text) return {{"error", text.error().text()}};
  auto parse_start = Clock::now();
  auto module = ptx::Module::parse(*text);
  if (!module) return {{"error", module.error().text()}};
  const double parse = std::chrono::duration<double>(Clock::now() - parse_start).count();
  ptx::Memory memory;
  const uint64_t in = memory.add("x", std::as_writable_bytes(std::span(x)), ptx::Access::read_only);
  const uint64_t out =
      memory.add("y", std::as_writable_bytes(std::span(y)), ptx::Access::read_write);
  double wall = 1e9, processor = 1e9;
  uint64_t instructions = 0;
  for (int i = 0; i < 15; ++i) {
    ptx::RunOptions options;
    options.threads = threads;
    const double before = processor_seconds();
    auto r = ptx::launch({}, memory, *module, job.entry,
                         {{job.ctas, 1, 1}, {256, 1, 1}, {1, 1, 1}, 0, false},
                         {argument(in), argument(out), argument(job.last)}, options);
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
  std::vector<float> x(n), y(n);
  for (size_t i = 0; i < n; ++i) x[i] = float(i % 1013) * 0.01f - 5;
  Json out = Json::array();
  for (const Job& job :
       {Job{"relu_cute.ptx", "relu", 1024, int(n)}, Job{"softmax.ptx", "softmax", 1024, 1024}}) {
    for (int threads : {1, int(std::thread::hardware_concurrency())})
      out.push_back(measure(job, threads, x, y));
  }
  fmt::print("{}\n", dump_json(out, 2));
}
