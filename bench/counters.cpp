// SPDX-License-Identifier: Apache-2.0
// Measures the cost of the simulator's counters: runs golden kernels at a million elements and a
// SIMT matrix product of 512^3, each time without one kind of counter. Prints JSON: the least wall
// time and the least processor time of several runs.
#include <fmt/format.h>
#include <sys/resource.h>

#include <cstring>

#include "base/file.h"
#include "base/json.h"
#include "ptx/machine/machine.h"

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

// The variants of counting, from everything to nothing.
struct Counted {
  const char* name;
  bool counters, sectors, wavefronts;
};
constexpr Counted kVariants[] = {{"all", true, true, true},
                                 {"no sectors", true, false, true},
                                 {"no wavefronts", true, true, false},
                                 {"instructions only", true, false, false},
                                 {"none", false, false, false}};

struct Job {
  const char *module, *entry;
  ptx::LaunchConfig config;
  std::vector<std::vector<std::byte>> arguments;
  int repeats;
};

Json measure(ptx::Memory& memory, const Job& job, const Counted& counted) {
  auto text = read_file(std::string(CUTEGEN_SOURCE_DIR) + "/tests/golden/ptx/" + job.module);
  if (!text) return {{"error", text.error().text()}};
  auto module = ptx::Module::parse(*text);
  if (!module) return {{"error", module.error().text()}};
  double wall = 1e9, processor = 1e9;
  uint64_t instructions = 0;
  for (int i = 0; i < job.repeats; ++i) {
    ptx::RunOptions options;
    options.threads = 1, options.checks = ptx::Checks::none();
    options.counters = counted.counters;
    options.sector_counters = counted.sectors, options.wavefront_counters = counted.wavefronts;
    const double before = processor_seconds();
    auto r = ptx::launch({}, memory, *module, job.entry, job.config, job.arguments, options);
    if (!r || r->status != ptx::LaunchStatus::ok)
      return {{"error", r ? r->reason : r.error().text()}};
    wall = std::min(wall, std::chrono::duration<double>(r->host_time).count());
    processor = std::min(processor, processor_seconds() - before);
    instructions = r->counters.warp_instructions;
  }
  return {{"kernel", job.entry},
          {"counters", counted.name},
          {"wall_ms", wall * 1e3},
          {"processor_ms", processor * 1e3},
          {"warp_instructions", instructions}};
}

}  // namespace

int main() {
  const size_t n = 1 << 20;
  std::vector<float> x(n), w(n), y(n);
  for (size_t i = 0; i < n; ++i) x[i] = float(i % 1013) * 0.01f - 5, w[i] = float(i % 7) * 0.1f;
  ptx::Memory memory;
  auto buffer = [&](const char* name, std::vector<float>& v, ptx::Access access) {
    return argument(memory.add(name, std::as_writable_bytes(std::span(v)), access));
  };
  const auto in = buffer("x", x, ptx::Access::read_only),
             other = buffer("w", w, ptx::Access::read_only),
             out = buffer("y", y, ptx::Access::read_write);
  const ptx::LaunchConfig rows{{1024, 1, 1}, {256, 1, 1}, {1, 1, 1}, 0, false};
  const ptx::LaunchConfig tiles{{8, 8, 1}, {256, 1, 1}, {1, 1, 1}, 0, false};
  const Job jobs[] = {
      {"relu_cute.ptx", "relu", rows, {in, out, argument(int(n))}, 15},
      {"softmax.ptx", "softmax", rows, {in, out, argument(1024)}, 15},
      {"sgemm.ptx", "sgemm", tiles, {in, other, out, argument(512), argument(512)}, 5}};
  Json results = Json::array();
  for (const Job& job : jobs) {
    for (const Counted& counted : kVariants) results.push_back(measure(memory, job, counted));
  }
  fmt::print("{}\n", dump_json(results, 2));
}
