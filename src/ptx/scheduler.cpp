// SPDX-License-Identifier: Apache-2.0
#include "ptx/scheduler.h"

#include <algorithm>
#include <mutex>
#include <thread>

#include "ptx/sampling.h"

namespace cutegen::ptx {
namespace {

constexpr int64_t kMostBytes = int64_t{256} << 20;  // machines of a launch that is not cooperative
constexpr int64_t kMostResident = 4096;
constexpr int kHopeless = 2000;  // rounds in which every machine of every thread polled memory

struct Shared {
  Job& job;
  const Grid& grid;
  const RunOptions& options;
  int64_t run = 0;                              // CTAs of this batch
  const std::vector<int64_t>* batch = nullptr;  // which; null: all of the grid
  Sampler* sampler = nullptr;
  std::atomic<int64_t> next{0};
  std::atomic<uint64_t> progress{0};  // rounds in which something happened
  std::atomic<int64_t> resident{0}, idle_threads{0};
  std::mutex mutex;
  int64_t at = INT64_MAX;  // the CTA that ended the launch
  LaunchReport report;
  Totals once, sampled;  // of CTAs that count as themselves; of those that stand for others
};

class Worker {
 public:
  Worker(Shared& shared, int64_t index)
      : s_(shared),
        index_(index),
        once_(s_.job.program, s_.job.memory.buffers.size(), s_.options, s_.sampler != nullptr),
        sampled_(s_.job.program, s_.job.memory.buffers.size(),
                 s_.sampler ? s_.options : RunOptions{.counters = false}, true) {}
  void run();

 private:
  bool start();
  bool start_one(int64_t n);
  // False: the launch has ended.
  bool round(bool& spinning);
  bool wait();
  void fail(const Cta& cta);
  void add_counts();

  Shared& s_;
  int64_t index_;
  Counting once_, sampled_;
  std::vector<std::unique_ptr<Cta>> live_, free_;
  int64_t done_ = 0;
  int hopeless_ = 0;
  uint64_t seen_ = 0;
};

bool Worker::start_one(int64_t n) {
  const int64_t linear = s_.batch ? (*s_.batch)[size_t(n)] : n;
  if (linear > s_.job.stop_after.load()) return false;
  if (free_.empty()) free_.push_back(std::make_unique<Cta>(s_.job));
  live_.push_back(std::move(free_.back()));
  free_.pop_back();
  const bool stands_for_others = s_.sampler && !s_.sampler->is_end(linear);
  live_.back()->begin(linear, stands_for_others ? sampled_ : once_);
  ++s_.resident;
  return true;
}

// The next CTA of the grid, if there is one and it could be resident.
bool Worker::start() {
  if (s_.grid.cooperative) return false;
  if (!live_.empty()) {
    int64_t most = s_.grid.resident > 0 ? s_.grid.resident : kMostResident;
    most = std::min(most, kMostBytes / std::max<int64_t>(1, Cta::bytes(s_.job)));
    if (s_.resident.load() >= most) return false;
  }
  const int64_t n = s_.next.fetch_add(1);
  return n < s_.run && start_one(n);
}

bool Worker::round(bool& spinning) {
  spinning = true;
  for (size_t i = 0; i < live_.size();) {
    const Cta::Turn turn = live_[i]->turn();
    spinning = spinning && turn == Cta::Turn::spinning;
    if (turn == Cta::Turn::failed) {
      fail(*live_[i]);
      return false;
    }
    if (turn != Cta::Turn::ended) {
      ++i;
      continue;
    }
    ++done_, --s_.resident;
    if (s_.sampler) {
      std::lock_guard lock(s_.mutex);
      s_.sampler->add(live_[i]->linear(), live_[i]->work());
    }
    free_.push_back(std::move(live_[i]));
    live_.erase(live_.begin() + int64_t(i));
  }
  return true;
}

// All poll memory. False: nobody is left who could write it.
bool Worker::wait() {
  const uint64_t now = s_.progress.load();
  hopeless_ = now == seen_ ? hopeless_ + 1 : 0;
  seen_ = now;
  if (hopeless_ == kHopeless) ++s_.idle_threads;
  if (hopeless_ >= kHopeless && s_.idle_threads.load() >= s_.grid.threads) {
    live_[0]->fail_spinning(s_.resident.load());
    fail(*live_[0]);
    return false;
  }
  if (s_.grid.threads > 1) std::this_thread::sleep_for(std::chrono::microseconds(20));
  return true;
}

void Worker::run() {
  if (s_.grid.cooperative) {
    for (int64_t n = index_; n < s_.run; n += s_.grid.threads) start_one(n);
  }
  while (true) {
    if (live_.empty() && !start()) break;
    bool spinning = false;
    if (!round(spinning)) break;
    if (live_.empty()) continue;
    if (!spinning) {
      if (hopeless_ >= kHopeless) --s_.idle_threads;
      hopeless_ = 0;
      if (s_.grid.threads > 1 || live_.size() > 1) ++s_.progress;
    } else if (!start() && !wait()) {
      break;
    }
  }
  if (hopeless_ < kHopeless) ++s_.idle_threads;  // a thread that has ended writes nothing either
  add_counts();
}

void Worker::fail(const Cta& cta) {
  std::lock_guard lock(s_.mutex);
  if (cta.linear() >= s_.at) return;
  s_.at = cta.linear();
  const bool finding = cta.status() == LaunchStatus::finding;
  s_.report.status = cta.status();
  s_.report.reason = finding ? cta.finding().message : cta.reason();
  s_.report.finding.reset();
  if (finding) s_.report.finding = cta.finding();
  s_.job.stop_after = s_.grid.cooperative ? -1 : cta.linear();
}

void Worker::add_counts() {
  std::lock_guard lock(s_.mutex);
  s_.once.add(once_);
  s_.sampled.add(sampled_);
  s_.report.ctas_run += done_;
}

void run_batch(Shared& shared, int64_t run, const std::vector<int64_t>* batch) {
  shared.run = run, shared.batch = batch;
  shared.next = 0, shared.progress = 0, shared.resident = 0, shared.idle_threads = 0;
  std::vector<std::jthread> helpers;
  for (int64_t i = 1; i < shared.grid.threads; ++i)
    helpers.emplace_back([&shared, i] { Worker(shared, i).run(); });
  Worker(shared, 0).run();
}

// Batches until the error is small enough or the budget ends. Returns what a sampled CTA stands
// for.
double run_sample(Shared& shared) {
  Sampler sampler(shared.grid.total, shared.options);
  shared.sampler = &sampler;
  int64_t affordable = INT64_MAX;
  while (shared.report.status == LaunchStatus::ok) {
    const std::vector<int64_t> batch = sampler.next(affordable);
    if (batch.empty()) break;
    if (shared.job.traced < 0) shared.job.traced = batch[batch.size() / 2];
    run_batch(shared, int64_t(batch.size()), &batch);
    const double spent = double(shared.job.spent.load()), budget = double(shared.job.budget);
    const double each = std::max(1.0, spent / double(std::max<int64_t>(1, shared.report.ctas_run)));
    affordable = int64_t(std::clamp((budget - spent) / each / 2, 0.0, 1e15));
  }
  shared.sampler = nullptr;
  shared.report.sample_error = sampler.error(), shared.report.sample_errors = sampler.errors();
  return sampler.weight();
}

}  // namespace

LaunchReport run_grid(Job& job, const Grid& grid, const RunOptions& options) {
  Shared shared{job, grid, options};
  LaunchReport& report = shared.report;
  report.ctas_total = grid.total;
  for (const Buffer& b : job.memory.buffers) report.traffic.push_back({b.name, b.size});
  const auto start = Clock::now();
  double weight = 1;
  if (options.latency) job.chain = std::make_unique<Chain>(job.program, *options.latency);
  if (grid.sampled) {
    weight = run_sample(shared);
  } else {
    job.traced = grid.total / 2;
    run_batch(shared, grid.total, nullptr);
  }
  report.host_time = Clock::now() - start;
  report_counts(job.program, shared.once, shared.sampled, weight, options.line_counters, report);
  if (job.chain && job.chain->cta_instructions() > 0) {
    const double longer =
        double(report.counters.max_cta_instructions) / double(job.chain->cta_instructions());
    report.chain_clocks = job.chain->clocks() * std::max(1.0, longer);
  }
  std::erase_if(report.traffic,
                [](const BufferTraffic& t) { return t.load_sectors + t.store_sectors == 0; });
  return std::move(report);
}

}  // namespace cutegen::ptx
