// SPDX-License-Identifier: Apache-2.0
#include "ptx/scheduler.h"

#include <algorithm>
#include <mutex>
#include <thread>

namespace cutegen::ptx {
namespace {

constexpr int64_t kMostBytes = int64_t{256} << 20;  // machines of a launch that is not cooperative
constexpr int64_t kMostResident = 4096;
constexpr int kHopeless = 2000;  // rounds in which every machine of every thread polled memory

struct Shared {
  Job& job;
  const Grid& grid;
  std::atomic<int64_t> next{0};
  std::atomic<uint64_t> progress{0};  // rounds in which something happened
  std::atomic<int64_t> resident{0}, idle_threads{0};
  std::mutex mutex;
  int64_t at = INT64_MAX;  // the CTA that ended the launch
  LaunchReport report;
};

int64_t nth_cta(int64_t n, const Grid& grid) {
  if (grid.run == grid.total) return n;
  if (grid.run == 1) return 0;
  return int64_t(__int128(n) * (grid.total - 1) / (grid.run - 1));
}

class Worker {
 public:
  Worker(Shared& shared, int64_t index) : s_(shared), index_(index) {}
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
  std::vector<std::unique_ptr<Cta>> live_, free_;
  int64_t done_ = 0;
  int hopeless_ = 0;
  uint64_t seen_ = 0;
};

bool Worker::start_one(int64_t n) {
  const int64_t linear = nth_cta(n, s_.grid);
  if (linear > s_.job.stop_after.load()) return false;
  if (free_.empty()) free_.push_back(std::make_unique<Cta>(s_.job));
  live_.push_back(std::move(free_.back()));
  free_.pop_back();
  live_.back()->begin(linear);
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
  return n < s_.grid.run && start_one(n);
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
    for (int64_t n = index_; n < s_.grid.run; n += s_.grid.threads) start_one(n);
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
  for (auto& cta : live_) free_.push_back(std::move(cta));
  std::lock_guard lock(s_.mutex);
  for (const auto& cta : free_) {
    cta->add_counters(s_.report.counters);
    for (size_t i = 0; i < cta->traffic().size(); ++i) {
      s_.report.traffic[i].load_sectors += cta->traffic()[i][0];
      s_.report.traffic[i].store_sectors += cta->traffic()[i][1];
    }
  }
  s_.report.ctas_run += done_;
}

}  // namespace

LaunchReport run_grid(Job& job, const Grid& grid) {
  Shared shared{job, grid};
  shared.report.ctas_total = grid.total;
  for (const Buffer& b : job.memory.buffers) shared.report.traffic.push_back({b.name, b.size});
  const auto start = Clock::now();
  {
    std::vector<std::jthread> helpers;
    for (int64_t i = 1; i < grid.threads; ++i)
      helpers.emplace_back([&shared, i] { Worker(shared, i).run(); });
    Worker(shared, 0).run();
  }
  shared.report.host_time = Clock::now() - start;
  std::erase_if(shared.report.traffic,
                [](const BufferTraffic& t) { return t.load_sectors + t.store_sectors == 0; });
  return std::move(shared.report);
}

}  // namespace cutegen::ptx
