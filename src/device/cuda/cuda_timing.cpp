// SPDX-License-Identifier: Apache-2.0
// Timed runs of CudaDevice.
#include <algorithm>
#include <atomic>

#include "device/cuda/cuda_device.h"

namespace cutegen::cuda {
namespace {

constexpr int kLeastSamples = 7;         // the fewest whose range is a 95% interval, and one
constexpr size_t kMostGatedSteps = 256;  // a stream takes about a thousand launches ahead
constexpr size_t kLeastFlush = size_t{128} << 20;
constexpr auto kEnough = std::chrono::milliseconds(120);  // of timed runs, once there are a few

}  // namespace

Result<void> CudaDevice::make_flush() {
  if (flush_) return {};
  flush_bytes_ = std::max(kLeastFlush, 3 * static_cast<size_t>(gpu_.identity.l2_bytes));
  return driver_.check(driver_.allocate(&flush_, flush_bytes_), "taking memory to cool the L2");
}

// Half is written, then copied to the other half: what was in the L2 is neither ours nor all dirty.
Result<void> CudaDevice::cool_l2() {
  const size_t half = flush_bytes_ / 2;
  Status s = driver_.set8(flush_, static_cast<unsigned char>(gates_), half, stream_);
  if (s == kOk) s = driver_.copy(flush_ + half, flush_, half, stream_);
  return driver_.check(s, "cooling the L2");
}

// One timed run: flush, wait at the gate, event, steps, event. The gate opens once all is queued.
Result<double> CudaDevice::sample(const Context& ctx, const Steps& steps,
                                  const RunSettings& settings, RunReport& report) {
  CG_CHECK(cool_l2());
  constexpr unsigned kAtLeast = 0;
  const bool gated = steps.size() <= kMostGatedSteps &&
                     driver_.stream_wait(stream_, gate_address_, ++gates_, kAtLeast) == kOk;
  auto open_gate = [&] { std::atomic_ref(*gate_).store(gates_); };
  Status status = driver_.event_record(begin_, stream_);
  for (size_t i = 0; i < steps.size() && status == kOk; ++i) {
    auto queued = queue(steps[i], i == 0);
    if (!queued && gated) open_gate();
    if (!queued) return fail(queued.error());
    status = *queued;
  }
  if (status == kOk) status = driver_.event_record(end_, stream_);
  if (gated) open_gate();
  if (status == kOk) {
    CG_TRY(status, wait(ctx, settings.limit));
  }
  CG_CHECK(note_fault(status, "a timed run", report));
  if (report.status != RunReport::Status::ok) return 0.0;
  float ms = 0;
  CG_CHECK(driver_.check(driver_.event_elapsed(&ms, begin_, end_), "reading the time"));
  return double(ms) * 1e6;
}

Result<void> CudaDevice::run_timed(const Context& ctx, const Steps& steps,
                                   const RunSettings& settings, RunReport& report) {
  CG_CHECK(make_flush());
  CG_TRY(double warm, sample(ctx, steps, settings, report));  // what the first one pays is not kept
  (void)warm;
  const auto start = Clock::now();
  while (report.status == RunReport::Status::ok) {
    const auto count = static_cast<int>(report.samples_ns.size());
    if (count >= settings.time_samples) break;
    if (count >= kLeastSamples && Clock::now() - start > kEnough) break;
    CG_TRY(double ns, sample(ctx, steps, settings, report));
    if (report.status == RunReport::Status::ok) report.samples_ns.push_back(ns);
  }
  report.state = watch_.read();
  return {};
}

}  // namespace cutegen::cuda
