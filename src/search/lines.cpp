// SPDX-License-Identifier: Apache-2.0
#include "search/lines.h"

#include <algorithm>

#include "search/machine.h"

namespace cutegen::search {
namespace {

constexpr int kLinePlateau = 3;  // this many misses end a line before the last phase
constexpr int kMostRewrites = 2;

double known_ns(const Kept& kept) {
  return kept.timing ? kept.timing->time_ns : 0;
}

}  // namespace

bool Line::take(const Kept& now, bool of_run, double min_gain) {
  const bool first = !best;
  const auto gains = of_run ? beats_incumbent : is_gain;
  const bool better =
      first || (now.timing && (!best->timing || gains(*best->timing, *now.timing, min_gain)));
  const bool changed = better && !first && !(now.structure == best->structure);
  fixes = 0;
  misses = better ? 0 : misses + 1;
  if (better) best = now;
  profiling.step(true, changed, known_ns(*best));
  return better;
}

void Line::take_unusable(bool first_program) {
  ++misses;
  if (first_program) ++rewrites;
}

void Line::take_failure() {
  profiling.step(false, false, 0);
}

void Line::give_up_candidate() {
  fixes = 0;
  if (best)
    ++misses;
  else
    ++rewrites;
}

bool Line::is_hopeless() const {
  return !best && rewrites >= kMostRewrites;
}

Stage Line::stage() const {
  return profiling.settled() ? Stage::detail : Stage::structure;
}

void Lines::begin(const StrategySettings& settings, const std::vector<std::string>& approaches,
                  const std::string& workload) {
  const AgentSettings& agents = *settings.agents;
  // A recipe always starts with the same program, so more lines would repeat it.
  const size_t count = agents.start == Start::recipe ? 1 : size_t(std::max(agents.chains, 1));
  for (size_t i = 0; i < count; ++i)
    lines_.push_back(
        {.approach = i < approaches.size() ? approaches[i] : std::string(),
         .profiling = Profiling(agents.profiling, workload, settings.budget.evaluations)});
  share_ = agents.chain_evaluations > 0
               ? agents.chain_evaluations
               : std::max<int64_t>(3, settings.budget.evaluations / 2 / int64_t(count));
  last_phase_ = count == 1;
}

bool Lines::is_over() const {
  if (now().is_hopeless()) return true;
  if (last_phase_) return false;
  return now().evaluations >= share_ || now().misses >= kLinePlateau;
}

bool Lines::next(const std::optional<Kept>& best) {
  if (at_ + 1 < lines_.size()) {
    ++at_;
    return true;
  }
  last_phase_ = true;
  bool found = false;
  for (size_t i = 0; i < lines_.size(); ++i)
    if (best && lines_[i].best && lines_[i].best->id == best->id) {
      at_ = i;
      found = true;
    }
  if (found) now().misses = 0;
  return found;
}

}  // namespace cutegen::search
