// SPDX-License-Identifier: Apache-2.0
#include "ptx/execute/scheduler.h"

#include <algorithm>
#include <array>
#include <mutex>
#include <numeric>
#include <random>
#include <thread>

#include "ptx/cta/cta_kinds.h"
#include "ptx/cta/store_reach.h"
#include "ptx/model/sampling.h"

namespace cutegen::ptx {
namespace {

// Limit of the host memory of CTAs at the same time, unless the launch is cooperative.
constexpr int64_t kMostBytes = int64_t{256} << 20;
constexpr int64_t kMostResident = 4096;
constexpr int64_t kMixedWindow = 16;  // CTAs that a random order permutes
constexpr size_t kMixedTogether = 4;  // CTAs that run at once in a random order
constexpr uint64_t kSpinLead = 4096;  // a turn of polling counts as this many warp instructions
constexpr int64_t kMostKinds = 32;    // kinds of CTAs that run although the sample has missed them
constexpr int kHopeless = 2000;       // rounds in which all CTAs of all threads polled memory

struct Shared {
  Job& job;
  const Grid& grid;
  const RunOptions& options;
  int64_t run = 0;                              // clusters of this batch
  const std::vector<int64_t>* batch = nullptr;  // their indices; nullptr: the whole grid
  Sampler* sampler = nullptr;
  std::atomic<int64_t> next{0};
  std::atomic<uint64_t> progress{0};  // rounds in which something happened
  std::atomic<int64_t> resident{0}, idle_threads{0};
  std::mutex mutex;
  // CTAs that the GPU and the host's memory can hold at once.
  int64_t most_together() const {
    const int64_t most = grid.resident > 0 ? grid.resident : kMostResident;
    const int64_t ctas = std::min(most, kMostBytes / std::max<int64_t>(1, CtaState::bytes(job)));
    return std::max<int64_t>(1, ctas);
  }
  int64_t units_together() const { return std::max<int64_t>(1, most_together() / grid.cluster); }
  int64_t at = INT64_MAX;  // the CTA that ended the launch
  LaunchReport report;
  // Counts of CTAs that represent only themselves, and of CTAs that represent others.
  Totals once, sampled;
};

class Worker {
 public:
  Worker(Shared& shared, int64_t index)
      : s_(shared),
        index_(index),
        once_(s_.job.program, s_.job.memory.buffers.size(), s_.options, s_.sampler != nullptr),
        sampled_(s_.job.program, s_.job.memory.buffers.size(),
                 s_.sampler ? s_.options : RunOptions{.counters = false}, true),
        random_(s_.job.order_seed + uint64_t(index)) {}
  void run();

 private:
  bool start();
  bool start_one(int64_t n);
  // Returns the number of the cluster that begins n-th.
  int64_t place(int64_t n) const;
  void start_together();
  bool start_waited_for();
  size_t behind() const;
  // False: the launch has ended.
  bool round(bool& spinning);
  void finish(size_t i);
  bool wait();
  void fail(const CtaState& cta);
  void add_counts();

  Shared& s_;
  int64_t index_;
  Counting once_, sampled_;
  std::vector<std::unique_ptr<Cta>> live_, free_;
  std::vector<uint64_t> lead_;  // for each entry of live_: added to its instructions (Job::fair)
  std::mt19937_64 random_;
  int64_t done_ = 0;
  int hopeless_ = 0;
  uint64_t seen_ = 0;
};

// Permutes clusters only within a window of clusters that are resident together.
int64_t Worker::place(int64_t n) const {
  const Order order = s_.job.order;
  if (order == Order::in_order) return n;
  const int64_t most = order == Order::mixed ? kMixedWindow : s_.units_together();
  const int64_t window = std::min(most, s_.units_together()), first = n / window * window,
                size = std::min(window, s_.run - first);
  if (order == Order::reversed) return first + size - 1 - (n - first);
  std::array<int64_t, kMixedWindow> places;
  std::iota(places.begin(), places.begin() + size, first);
  std::mt19937_64 random(s_.job.order_seed + uint64_t(first));
  std::shuffle(places.begin(), places.begin() + size, random);
  return places[size_t(n - first)];
}

// Starts all CTAs of the n-th cluster.
bool Worker::start_one(int64_t n) {
  const int64_t unit = s_.batch ? (*s_.batch)[size_t(n)] : place(n);
  if (s_.job.cta_of(unit, 0) > s_.job.stop_after.load()) return false;
  std::shared_ptr<ClusterState> cluster;
  if (s_.job.has_clusters()) cluster = std::make_shared<ClusterState>(unit);
  const bool stands_for_others = s_.sampler && !s_.sampler->stands_alone(unit);
  for (int64_t rank = 0; rank < s_.grid.cluster; ++rank) {
    if (free_.empty()) free_.push_back(std::make_unique<Cta>(s_.job));
    live_.push_back(std::move(free_.back()));
    lead_.push_back(0);
    free_.pop_back();
    live_.back()->begin(s_.job.cta_of(unit, rank), stands_for_others ? sampled_ : once_, cluster);
    ++s_.resident;
  }
  return true;
}

// Starts the next cluster of the grid, if there is one and it could be resident.
bool Worker::start() {
  if (s_.grid.cooperative) return false;
  if (!live_.empty() && s_.resident.load() >= s_.most_together()) return false;
  const int64_t n = s_.next.fetch_add(1);
  return n < s_.run && start_one(n);
}

// Starts the CTAs that have to begin before any of them runs.
void Worker::start_together() {
  size_t wanted = 1;
  if (s_.job.order == Order::mixed) wanted = kMixedTogether;
  const bool wait = s_.job.program.waits && s_.options.latency && !s_.sampler;
  if (s_.job.fair || wait)  // else a CTA might poll for one that has not begun
    wanted = size_t(s_.run * s_.grid.cluster);
  while (live_.size() < wanted && start()) {
  }
}

void Worker::finish(size_t i) {
  ++done_, --s_.resident;
  if (s_.sampler) {
    const CtaState& cta = live_[i]->state();
    std::lock_guard lock(s_.mutex);
    if (!cta.cluster) s_.sampler->add(cta.linear, cta.work);
    if (cta.cluster && cta.cluster->ended()) s_.sampler->add(cta.cluster->unit, cta.cluster->work);
  }
  free_.push_back(std::move(live_[i]));
  live_.erase(live_.begin() + int64_t(i)), lead_.erase(lead_.begin() + int64_t(i));
}

// The CTA that has executed the fewest instructions.
size_t Worker::behind() const {
  size_t best = 0;
  for (size_t i = 1; i < live_.size(); ++i)
    if (live_[i]->state().executed() + lead_[i] < live_[best]->state().executed() + lead_[best])
      best = i;
  return best;
}

// Gives each CTA a turn. With Job::fair, each turn goes to the CTA that has executed the fewest
// instructions.
bool Worker::round(bool& spinning) {
  spinning = true;
  if (s_.job.order == Order::mixed) std::shuffle(live_.begin(), live_.end(), random_);
  const bool up = s_.job.order == Order::in_order;
  size_t i = 0;
  for (size_t left = live_.size(); left > 0; --left) {
    const size_t at = s_.job.fair ? behind() : up ? i : left - 1;
    const Cta::Turn turn = live_[at]->turn();
    spinning = spinning && turn == Cta::Turn::spinning;
    if (turn == Cta::Turn::failed) {
      fail(live_[at]->state());
      return false;
    }
    if (turn == Cta::Turn::ended) {
      finish(at);
    } else {
      ++i;
      if (turn == Cta::Turn::spinning) lead_[at] += kSpinLead;
    }
  }
  return true;
}

// Call it if all CTAs poll memory. False: no other CTA could write the memory that they poll.
bool Worker::wait() {
  const uint64_t now = s_.progress.load();
  hopeless_ = now == seen_ ? hopeless_ + 1 : 0;
  seen_ = now;
  if (hopeless_ == kHopeless) ++s_.idle_threads;
  if (hopeless_ >= kHopeless && s_.idle_threads.load() >= s_.grid.threads) {
    const auto polls =
        std::find_if(live_.begin(), live_.end(), [](const auto& cta) { return cta->polls(); });
    if (polls == live_.end()) return true;  // they wait; the next turn reports what they wait for
    (*polls)->fail_spinning(s_.resident.load());
    fail((*polls)->state());
    return false;
  }
  if (s_.grid.threads > 1) std::this_thread::sleep_for(std::chrono::microseconds(20));
  return true;
}

// Call it if all CTAs poll memory. Starts one more CTA, or doubles their number if the order is not
// in_order, because they may wait for the last CTA.
bool Worker::start_waited_for() {
  const size_t before = live_.size();
  const size_t wanted = s_.job.order == Order::in_order ? before + 1 : 2 * before;
  while (live_.size() < wanted && start()) {
  }
  return live_.size() > before;
}

void Worker::run() {
  if (s_.grid.cooperative) {
    for (int64_t n = index_; n < s_.run; n += s_.grid.threads) start_one(n);
  }
  while (true) {
    start_together();
    if (live_.empty()) break;
    bool spinning = false;
    if (!round(spinning)) break;
    if (live_.empty()) continue;
    if (!spinning) {
      if (hopeless_ >= kHopeless) --s_.idle_threads;
      hopeless_ = 0;
      if (s_.grid.threads > 1 || live_.size() > 1) ++s_.progress;
    } else if (!start_waited_for() && !wait()) {
      break;
    }
  }
  if (hopeless_ < kHopeless) ++s_.idle_threads;  // a host thread that has ended writes nothing
  add_counts();
}

void Worker::fail(const CtaState& cta) {
  std::lock_guard lock(s_.mutex);
  if (cta.linear >= s_.at) return;
  s_.at = cta.linear;
  const bool finding = cta.status == LaunchStatus::finding;
  s_.report.status = cta.status;
  s_.report.reason = finding ? cta.finding.message : cta.reason;
  s_.report.finding.reset();
  if (finding) s_.report.finding = cta.finding;
  s_.job.stop_after = s_.grid.cooperative ? -1 : cta.linear;
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

// Gives each CTA of a batch an equal share of the grid, and resets the counters of Pulls.
void take_share(Shared& shared, size_t batch) {
  auto& pulls = shared.job.pulls;
  if (!pulls) pulls = std::make_unique<Pulls>();
  pulls->restore();
  pulls->stands_for = double(shared.grid.units()) / double(batch);
}

std::vector<int64_t> ctas_of(const Shared& shared, const std::vector<int64_t>& units) {
  std::vector<int64_t> out;
  for (int64_t unit : units)
    for (int64_t rank = 0; rank < shared.grid.cluster; ++rank)
      out.push_back(shared.job.cta_of(unit, rank));
  return out;
}

// Runs a CTA of each kind that the sample has missed, unless CTAs depend on the order of the grid.
void run_missing_kinds(Shared& shared, const CtaKinds& kinds, Sampler& sampler,
                       int64_t affordable) {
  Job& job = shared.job;
  const uint64_t seed = shared.options.sample_seed;
  const auto missing = [&] {
    return kinds.members_of_kinds_without(ctas_of(shared, sampler.chosen()), seed);
  };
  std::vector<int64_t> left = missing();
  if (!left.empty() && !job.pulls && !job.program.waits) {
    std::vector<int64_t> units;
    for (int64_t cta : left) {
      if (int64_t(units.size()) >= std::min(affordable, kMostKinds)) break;
      const auto& g = job.config.grid;
      units.push_back(job.unit_of({cta % g[0], cta / g[0] % g[1], cta / (g[0] * g[1])}));
    }
    const std::vector<int64_t> batch = sampler.run_alone(units);
    run_batch(shared, int64_t(batch.size()), &batch);
    left = missing();
  }
  shared.report.kinds = kinds.count(), shared.report.kinds_missed = int64_t(left.size());
  shared.report.kinds_known = kinds.known();
}

// What the CTAs of the sample wrote.
StoreReach::Ran writes_of(const Shared& shared) {
  StoreReach::Ran ran;
  uint64_t by_stores = 0, all = 0;
  for (size_t pc = 0; pc < shared.job.program.code.size(); ++pc) {
    if (shared.job.program.code[pc].op != Op::store) continue;
    uint64_t sectors = 0, runs = 0;
    for (const Totals* totals : {&shared.once, &shared.sampled}) {
      if (pc < totals->counts.size()) sectors += totals->counts[pc].sectors;
      if (pc < totals->executed.size()) runs += totals->executed[pc].runs;
    }
    if (runs > 0 && sectors == 0) ran.elsewhere.insert(pc);
    by_stores += sectors;
  }
  for (const Totals* totals : {&shared.once, &shared.sampled})
    for (size_t buffer = 0; buffer < totals->traffic.size(); ++buffer) {
      all += totals->traffic[buffer][1];
      if (totals->traffic[buffer][1] > 0) ran.buffers.insert(buffer);
    }
  ran.other_writes = by_stores == 0 || by_stores != all;
  return ran;
}

// Finds the parts of the buffers that no CTA of the grid writes.
void find_unreached(Shared& shared, const CtaKinds& kinds) {
  LaunchReport& report = shared.report;
  if (!kinds.known()) return;
  const StoreReach reach =
      StoreReach::find(shared.job, kinds, writes_of(shared), shared.options.sample_seed);
  if (!reach.known()) return;
  for (const auto& [buffer, reached] : reach.buffers()) {
    BufferTraffic& traffic = report.traffic[buffer];
    const StoreReach::Parts& parts = reached.parts;
    traffic.reach_known = true;
    traffic.unreached = double(parts.size() - parts.count()) / double(parts.size());
    if (parts.all() && reached.bytes < traffic.bytes)
      traffic.unreached = double(traffic.bytes - reached.bytes) / double(traffic.bytes);
    size_t first = 0;
    while (first < parts.size() && parts[first]) ++first;
    traffic.unreached_from = double(first) / double(parts.size());
  }
}

// Runs batches until the error is small enough or the budget ends. Returns how many CTAs each
// sampled CTA represents.
double run_sample(Shared& shared) {
  Sampler sampler(shared.grid.units(), shared.options, shared.job.program.waits);
  shared.sampler = &sampler;
  const bool pulls = shared.job.fair && !shared.job.program.waits;
  int64_t affordable = INT64_MAX;
  bool whole = false;
  while (shared.report.status == LaunchStatus::ok) {
    const std::vector<int64_t> batch = whole ? sampler.rest() : sampler.next(affordable);
    if (batch.empty()) break;
    if (shared.job.traced < 0) shared.job.traced = shared.job.cta_of(batch[batch.size() / 2], 0);
    if (pulls) take_share(shared, batch.size());
    run_batch(shared, int64_t(batch.size()), &batch);
    const double spent = double(shared.job.spent.load()), budget = double(shared.job.budget);
    const double each = std::max(1.0, spent / double(std::max<int64_t>(1, shared.report.ctas_run)));
    const double unit = each * double(shared.grid.cluster);
    affordable = int64_t(std::clamp((budget - spent) / unit / 2, 0.0, 1e15));
    whole = each * double(shared.grid.total) <= double(shared.options.whole_instructions);
  }
  const bool sampled = int64_t(sampler.chosen().size()) < shared.grid.units();
  if (shared.options.every_kind && shared.report.status == LaunchStatus::ok && sampled) {
    const CtaKinds kinds = CtaKinds::find(shared.job);
    run_missing_kinds(shared, kinds, sampler, affordable);
    if (shared.report.status == LaunchStatus::ok) find_unreached(shared, kinds);
  }
  shared.sampler = nullptr;
  shared.report.stored_error = sampler.stored_error();
  shared.report.sample_error = sampler.error(), shared.report.sample_errors = sampler.errors();
  return sampler.weight();
}

// Repeats a sample without Pulls, in case the counter hands out places in a buffer instead of work.
LaunchReport run_alone(Job& job, const Grid& grid, const RunOptions& options) {
  job.pulls->restore();
  job.pulls.reset();
  job.fair = false, job.stop_after = INT64_MAX, job.traced = -1, job.spent = 0;
  return run_grid(job, grid, options);
}

}  // namespace

LaunchReport run_grid(Job& job, const Grid& grid, const RunOptions& options) {
  Shared shared{.job = job, .grid = grid, .options = options};
  LaunchReport& report = shared.report;
  report.ctas_total = grid.total;
  for (const Buffer& b : job.memory.buffers)
    report.traffic.push_back({.buffer = b.name, .bytes = b.size});
  const auto start = Clock::now();
  double weight = 1;
  if (options.latency) job.chain = std::make_unique<Chain>(job.program, *options.latency);
  if (grid.sampled) {
    weight = run_sample(shared);
    if (report.status == LaunchStatus::finding && job.pulls) return run_alone(job, grid, options);
  } else {
    job.traced = job.cta_of(grid.units() / 2, 0);
    run_batch(shared, grid.units(), nullptr);
  }
  report.host_time = Clock::now() - start;
  report_counts(job.program, shared.once, shared.sampled, weight, options, report);
  for (size_t i = 0; i < report.traffic.size(); ++i)
    report.traffic[i].stored_once = job.memory.buffers[i].stored.count();
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
