// SPDX-License-Identifier: Apache-2.0
#include "ptx/execute/cta.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace cutegen::ptx {

Cta::Cta(Job& job)
    : state_(job),
      barriers_(state_),
      scheduler_(state_, barriers_),
      interpreter_(state_, barriers_, scheduler_) {}

void Cta::begin(int64_t linear, Counting& counting, std::shared_ptr<ClusterState> cluster) {
  state_.begin(linear, counting, std::move(cluster));
  barriers_.begin();
  scheduler_.begin();
}

Cta::Turn Cta::turn() {
  CtaState& s = state_;
  s.counting->enter(s.work, s.linear);
  if (s.job.stop_after.load(std::memory_order_relaxed) < s.first) {
    s.counting->ended(s.executed());
    leave_cluster();
    return Turn::ended;
  }
  bool any = false, all_spin = true;
  if (!run_warps(any, all_spin)) return Turn::failed;
  if (s.alive_warps == 0) return finish();
  if (s.cluster) s.cluster->complete();
  if (!any && s.cluster && s.cluster->can_go_on()) return Turn::spinning;
  if (!any && !end_waits()) {
    if (s.cluster && s.cluster->others_may_go_on(s.rank)) return Turn::spinning;
    scheduler_.deadlock();
    return Turn::failed;
  }
  if (!within_limits()) {
    s.counting->ended(s.executed());
    return Turn::failed;
  }
  return all_spin ? Turn::spinning : Turn::going;
}

bool Cta::end_waits() {
  const bool ended = scheduler_.time_out_waits();
  if (state_.cluster) state_.cluster->set_hopeless(state_.rank, !ended);
  return ended;
}

bool Cta::polls() const {
  return std::any_of(state_.warps.begin(), state_.warps.end(),
                     [](const Warp& w) { return w.state == Warp::State::running; });
}

bool Cta::run_warps(bool& any, bool& all_spin) {
  for (const uint8_t i : scheduler_.next_turns()) {
    Warp& w = state_.warps[i];
    if (w.state != Warp::State::running) continue;
    any = true;
    if (!run_warp(w, all_spin)) return false;
  }
  return true;
}

bool Cta::run_warp(Warp& w, bool& all_spin) {
  using Step = Interpreter::Step;
  const uint64_t before = w.executed;
  const Step step = interpreter_.run(w);
  state_.job.spent.fetch_add(w.executed - before, std::memory_order_relaxed);
  if (step == Step::failed) return false;
  all_spin = all_spin && step == Step::yield && scheduler_.spins(w);
  if (step != Step::done) return true;
  w.state = Warp::State::done;
  --state_.alive_warps;
  if (!interpreter_.ended(w)) return false;
  return barriers_.recheck();
}

bool Cta::within_limits() {
  CtaState& s = state_;
  if (s.job.context.done()) {
    s.status = LaunchStatus::cancelled;
    s.reason = "the launch was cancelled or ran out of time";
  } else if (s.job.spent.load(std::memory_order_relaxed) > s.job.budget) {
    s.status = LaunchStatus::out_of_budget;
    s.reason = fmt::format("more than {} warp instructions: an endless loop, or too much work",
                           s.job.budget);
  }
  return s.status == LaunchStatus::ok;
}

void Cta::leave_cluster() {
  CtaState& s = state_;
  if (!s.cluster) return;
  s.cluster->work += s.work;
  s.cluster->end(s.rank);
}

// All warps have ended.
Cta::Turn Cta::finish() {
  CtaState& s = state_;
  if (!interpreter_.drain()) return Turn::failed;
  if (s.pending) {
    s.finding = *std::exchange(s.pending, std::nullopt);
    s.status = LaunchStatus::finding;
    return Turn::failed;
  }
  uint64_t work = s.executed();
  for (const Warp& w : s.warps) work -= w.polled;
  s.work.instructions = double(work);
  for (const Warp& w : s.warps) s.work.slept_ns = std::max(s.work.slept_ns, w.slept_ns);
  s.counting->ended(work, s.work.slept_ns);
  leave_cluster();
  if (s.linear == s.job.traced && s.job.chain) s.job.chain->ended(work);
  return Turn::ended;
}

}  // namespace cutegen::ptx
