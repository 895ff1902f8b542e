// SPDX-License-Identifier: Apache-2.0
#include "eval/measure.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>

#include "base/hash.h"
#include "base/units.h"

namespace cutegen {
namespace {

constexpr int kSamples = 31;
constexpr auto kGpuLimit = std::chrono::seconds(10);  // of one run of all steps
constexpr auto kRunLimit = std::chrono::seconds(120);
constexpr int64_t kAlign = 256;
constexpr int64_t kProbeBytes = 4096;
constexpr int kProbes = 24;                   // of each output
constexpr int64_t kSpare = int64_t{2} << 30;  // of the GPU's memory, for all else
constexpr double kClockSlack = 0.97;          // of the floor: what an event may miss

struct Stock {  // bytes that lie in the shared memory
  std::string name;
  std::vector<std::byte> bytes;
  int64_t at = 0;
};

// The set whose values fill the official inputs: of the largest test shape.
Result<SetPtr> small_set(const Context& ctx, const Services& services, const Prepared& prepared,
                         const std::string& program_id) {
  const ShapeCase* best = nullptr;
  for (const PreparedShape& s : prepared.shapes())
    if (is_test_shape(*s.shape) && (!best || s.shape->least_bytes.value > best->least_bytes.value))
      best = s.shape;
  if (!best) return world_error("there is no test shape to take values from");
  return services.pool->draw(ctx, *best, services.families.front(), program_id);
}

std::vector<std::byte> pattern_of(const InputSet& set, const std::string& name) {
  for (const TensorSlot& slot : set.inputs)
    if (slot.name == name) {
      auto bytes = set.bytes_of(slot);
      return {bytes.begin(), bytes.end()};
    }
  return {};
}

// A NaN in every float width, eight bytes that no program knows.
std::vector<std::byte> unwritten_pattern() {
  std::vector<std::byte> out(8);
  random_bytes(out);
  for (size_t i = 0; i < 8; i += 2) {
    out[i] |= std::byte{1};
    out[i + 1] |= std::byte{0x7f};
    out[i] |= std::byte{0xf0};
  }
  return out;
}

// The memory file of a measured run: patterns of the buffers, then room for the probes.
class OfficialBuffers {
 public:
  Result<void> add(const std::string& name, int64_t bytes, bool read_only,
                   std::vector<std::byte> pattern) {
    if (__builtin_add_overflow(total_, bytes, &total_))
      return world_error("the official shape has more bytes than can be counted");
    if (pattern.empty()) pattern.resize(8);
    RunBuffer b{name, bytes, place(static_cast<int64_t>(pattern.size())), read_only};
    b.pattern_bytes = static_cast<int64_t>(pattern.size());
    stock_.push_back({name, std::move(pattern), b.offset});
    buffers_.push_back(std::move(b));
    return {};
  }

  // Places of an output that are looked at afterwards: its ends, and some that are drawn.
  void probe(const std::string& name, int64_t bytes) {
    std::random_device entropy;
    std::mt19937_64 random(entropy());
    const int64_t size = std::min(bytes, kProbeBytes);
    for (int i = 0; i < kProbes && size > 0; ++i) {
      const int64_t last = (bytes - size) / 8;
      int64_t offset = 8 * std::uniform_int_distribution<int64_t>(0, last)(random);
      if (i == 0) offset = 0;
      if (i == 1) offset = 8 * last;
      probes_.push_back({name, offset, size, place(size)});
      if (bytes <= size) break;
    }
  }

  Result<void> put(RunRequest& request) {
    CG_TRY(memory_, make_memfd("official", static_cast<size_t>(used_)));
    CG_TRY(mapping_, Mapping::map(memory_.get(), static_cast<size_t>(used_), true));
    for (const Stock& s : stock_)
      std::memcpy(mapping_.data() + s.at, s.bytes.data(), s.bytes.size());
    request.memory = memory_.get();
    request.buffers = buffers_;
    request.probes = probes_;
    return {};
  }

  [[nodiscard]] int64_t total() const { return total_; }

  // Elements of a probed output that still hold its pattern.
  [[nodiscard]] int64_t unwritten(const TensorInfo& out, int64_t& looked_at) const {
    auto stock = std::find_if(stock_.begin(), stock_.end(),
                              [&](const Stock& s) { return s.name == out.name; });
    const size_t size = size_of(out.dtype);
    int64_t left = 0;
    for (const Probe& p : probes_) {
      if (p.buffer != out.name) continue;
      int64_t here = 0;
      for (int64_t i = 0; i + int64_t(size) <= p.bytes; i += int64_t(size), ++looked_at)
        here += std::memcmp(mapping_.data() + p.at + i, stock->bytes.data() + i % 8, size) == 0;
      // A byte is what it is by chance: only a whole stretch tells.
      if (size > 1 || here == p.bytes) left += here;
    }
    return left;
  }

 private:
  int64_t place(int64_t bytes) {
    int64_t at = used_;
    used_ += (bytes + kAlign - 1) / kAlign * kAlign;
    return at;
  }
  std::vector<RunBuffer> buffers_;
  std::vector<Probe> probes_;
  std::vector<Stock> stock_;
  int64_t used_ = kAlign, total_ = 0;
  UniqueFd memory_;
  Mapping mapping_;
};

Result<int64_t> bytes_of(const TensorInfo& info, const ShapeCase& shape) {
  auto at = shape.tensors.find(info.name);
  if (at == shape.tensors.end()) return world_error("the official shape lacks '" + info.name + "'");
  CG_TRY(int64_t count, element_count(at->second));
  return count * static_cast<int64_t>(size_of(info.dtype));
}

TimingOutcome ended(RungResult result, RungEnd end) {
  TimingOutcome out;
  out.result = result;
  out.end = std::move(end);
  return out;
}
TimingOutcome failed(RungEnd end) {
  return ended(RungResult::failed, std::move(end));
}

Result<void> fill_buffers(OfficialBuffers& buffers, const Task& task, const PreparedShape& official,
                          const InputSet& set) {
  for (const TensorInfo& info : task.tensors) {
    CG_TRY(int64_t bytes, bytes_of(info, *official.shape));
    const bool output = info.role == TensorRole::output;
    CG_CHECK(buffers.add(info.name, bytes, !output,
                         output ? unwritten_pattern() : pattern_of(set, info.name)));
    if (output) buffers.probe(info.name, bytes);
  }
  for (const ScratchBuffer& s : official.plan.scratch)
    CG_CHECK(buffers.add(s.name, s.bytes, false,
                         s.zero ? std::vector<std::byte>() : unwritten_pattern()));
  return {};
}

// What ended the run before there were times, if anything did.
std::optional<TimingOutcome> not_timed(const RunOutcome& outcome) {
  if (outcome.kind != RunOutcome::Kind::reported)
    return failed(rung_failed(
        fmt::format("the runner {} while running this program at the official shape: {}",
                    outcome.kind == RunOutcome::Kind::died ? "died" : "hung", outcome.text)));
  const RunReport& report = outcome.report;
  const std::string on = fmt::format("{} (official shape)", report.message);
  switch (report.status) {
    case RunReport::Status::ok:
      break;
    case RunReport::Status::finding:
      return failed(rung_failed(on, report.detail));
    case RunReport::Status::unsupported:
      return failed(rung_ended(Status::unsupported, on, report.detail));
    case RunReport::Status::out_of_budget:
      return failed(rung_failed("the program does not end within its time at the official shape",
                                report.message));
  }
  if (report.samples_ns.empty())
    return ended(RungResult::skipped, rung_passed("no time: the device measured nothing"));
  return std::nullopt;
}

std::string clock_text(const RunReport& report) {
  auto at = report.state.find("sm_clock_hz");
  return at == report.state.end() ? std::string(", clock unknown")
                                  : fmt::format(", SM clock {:.0f} MHz", at->second / 1e6);
}

TimingOutcome judged(const Roofline& floor, RunReport report, const std::string& shape) {
  TimingOutcome out;
  const Median m = median_of(report.samples_ns);
  Timing t;
  t.origin = Origin::measured;
  t.shape = shape;
  t.time_ns = m.value, t.low_ns = m.low, t.high_ns = m.high;
  t.floor_ns = floor.floor_ns, t.bound_by = floor.bound_by;
  t.samples = static_cast<int>(report.samples_ns.size());
  if (auto at = report.state.find("sm_clock_hz"); at != report.state.end())
    t.sm_clock_hz = at->second;
  out.end = rung_passed(fmt::format("{} measured ({}-{}, {} runs, cold L2{}), floor {} ({:.2f}x)",
                                    human_ns(m.value), human_ns(m.low), human_ns(m.high), t.samples,
                                    clock_text(report), human_ns(t.floor_ns),
                                    t.time_ns / std::max(t.floor_ns, 1e-9)));
  out.timing = t;
  out.kernels = std::move(report.kernels);
  for (KernelProfile& k : out.kernels) k.origin = Origin::measured;
  out.marks.push_back(
      "at the official shape writing was checked, values were not: correctness is judged on "
      "smaller shapes");
  if (t.time_ns < floor.memory_ns * kClockSlack) {
    out.result = RungResult::failed;
    out.end = rung_ended(Status::rejected,
                         fmt::format("{} is below the {} that moving the least bytes takes: it "
                                     "leaves work out",
                                     human_ns(t.time_ns), human_ns(floor.memory_ns)),
                         "Nothing runs faster than the floor.");
  } else if (t.time_ns < floor.compute_ns * kClockSlack) {
    out.marks.push_back(fmt::format(
        "faster than the {} that the task's own operations take at the peak: fewer were done",
        human_ns(floor.compute_ns)));
  }
  return out;
}

}  // namespace

Median median_of(std::vector<double> samples) {
  CG_ASSERT(!samples.empty());
  std::sort(samples.begin(), samples.end());
  const size_t n = samples.size();
  Median out;
  out.value = n % 2 ? samples[n / 2] : (samples[n / 2 - 1] + samples[n / 2]) / 2;
  // The largest k with P(Binomial(n, 1/2) < k) <= 2.5%: samples k and n - 1 - k hold the median.
  double chance = std::pow(0.5, static_cast<double>(n)), below = chance;
  size_t k = 0;
  while (below <= 0.025 && k + 1 < n / 2) {
    ++k;
    chance *= static_cast<double>(n - k + 1) / static_cast<double>(k);
    below += chance;
  }
  if (k > 0) --k;
  out.low = samples[k], out.high = samples[n - 1 - k];
  return out;
}

Result<TimingOutcome> measure_official(const Context& ctx, const Services& services,
                                       const Task& task, const Prepared& prepared,
                                       const std::string& program_id) {
  auto official = std::find_if(prepared.shapes().begin(), prepared.shapes().end(),
                               [](auto& s) { return s.shape->kind == ShapeKind::official; });
  if (official == prepared.shapes().end())
    return ended(RungResult::skipped, rung_passed("the official shape is not there"));
  CG_TRY(SetPtr set, small_set(ctx, services, prepared, program_id));
  OfficialBuffers buffers;
  CG_CHECK(fill_buffers(buffers, task, *official, *set));
  if (buffers.total() > services.identity.memory_bytes - kSpare)
    return ended(RungResult::skipped,
                 rung_passed(fmt::format("no time: the official shape needs {}, {} has {}",
                                         human(Bytes{buffers.total()}), services.identity.gpu,
                                         human(Bytes{services.identity.memory_bytes}))));
  RunRequest request;
  CG_CHECK(buffers.put(request));
  request.steps = official->all_steps();
  request.settings.time_samples = kSamples;
  request.settings.limit = kGpuLimit;
  request.limit = kRunLimit;
  CG_TRY(RunOutcome outcome, services.runner->run(ctx, request));
  if (outcome.kind == RunOutcome::Kind::died) {
    CG_TRY(outcome, services.runner->run(ctx, request));  // once more, in a fresh process
  }
  if (auto end = not_timed(outcome)) return *end;
  for (const TensorInfo* out : task.with_role(TensorRole::output)) {
    int64_t looked_at = 0;
    if (int64_t left = buffers.unwritten(*out, looked_at); left > 0)
      return failed(rung_failed(
          fmt::format("at the official shape the output '{}' is not written: {} of the {} elements "
                      "that were looked at",
                      out->name, left, looked_at)));
  }
  return judged(floor_of(services.gpu, task), std::move(outcome.report), official->shape->name);
}

}  // namespace cutegen
