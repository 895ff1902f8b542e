// SPDX-License-Identifier: Apache-2.0
#include "search/stark.h"

#include <algorithm>
#include <cmath>

namespace cutegen::search {
namespace {

constexpr double kPlanTemperature = 0.8, kCodeTemperature = 0.1;  // as in the paper
constexpr double kPublishedEpsilon = 0.35, kEpsilon = 0.1;
constexpr double kNear = 0.5;  // the least nearness of a near miss
constexpr int kMostFixes = 2;  // repairs in a row before a draw selects the next node

Json ids_of(const Tree& tree, const std::vector<int>& window) {
  Json out = Json::array();
  for (int node : window) out.push_back(tree.at(node).id);
  return out;
}

// The last node, if it almost works and may be repaired once more.
std::optional<int> near_miss(const Tree& tree, const StarkSettings& settings, int fixes) {
  const int last = tree.size() - 1;
  if (!settings.near_misses || last == 0 || fixes >= kMostFixes) return std::nullopt;
  const Node& node = tree.at(last);
  const bool due = node.failed && node.nearness >= kNear && tree.is_selectable(last);
  return due ? std::optional(last) : std::nullopt;
}

// Whether the run has correct first programs, but too few to choose from.
bool needs_start(const Tree& tree, const StarkSettings& settings) {
  const int starts = tree.correct_starts();
  return starts > 0 && starts < settings.starts && tree.is_selectable(0);
}

}  // namespace

StarkSettings stark_settings(const AgentSettings& agents) {
  StarkSettings out = agents.stark;
  if (agents.published) {
    out.near_misses = out.equal_programs = out.bounds = out.families = false;
    out.credit = out.drift = false;
    out.starts = 1;
  }
  if (!out.epsilon) out.epsilon = agents.published ? kPublishedEpsilon : kEpsilon;
  return out;
}

double nearness_of(const Verdict& verdict) {
  double wrong = 0;
  for (const Mismatch& m : verdict.feedback.mismatches)
    if (m.elements > 0) wrong = std::max(wrong, double(m.wrong) / double(m.elements));
  if (!verdict.feedback.mismatches.empty()) return 1 - std::min(wrong, 1.0);
  auto failed = std::ranges::find(verdict.rungs, RungResult::failed, &RungReport::result);
  if (failed == verdict.rungs.end()) return 0;
  // A compiler error names its line, so it is easier to repair than a crash or a race.
  return failed->rung < Rung::load ? 0.6 : failed->rung == Rung::load ? 0.4 : 0.2;
}

// Chooses the node of the next step and records why.
void StarkStrategy::select() {
  if (auto near = near_miss(tree_, stark_, fixes_)) {
    ++fixes_;
    node_ = *near;
    draw_ = {{"near_miss", tree_.at(node_).nearness}};
    return;
  }
  fixes_ = 0;
  if (!has_source_ && needs_start(tree_, stark_)) {
    node_ = 0;
    draw_ = {{"start", tree_.correct_starts() + 1}};
    return;
  }
  const std::vector<int> all = tree_.selectable();
  std::vector<int> leaves = tree_.leaves();
  // A program far from correct is rarely repaired.
  if (stark_.near_misses)
    std::erase_if(
        leaves, [&](int leaf) { return tree_.at(leaf).failed && tree_.at(leaf).nearness < kNear; });
  const double u = draws_.uniform();
  const bool explores = u < *stark_.epsilon;
  draw_ = {{"u", u}, {"explores", explores}};
  if (explores) {
    const std::vector<int>& from = leaves.empty() ? all : leaves;
    node_ = from[draws_.below(from.size())];
    draw_["among"] = from.size();
  } else {
    node_ = tree_.fastest(all);
  }
}

// The source kernel is a child of the root, which stays the reference.
void StarkStrategy::on_source(const Json&, const Candidate& source, const Verdict& verdict) {
  has_source_ = true;
  hash_ = program_id(source.program);
  add_node(source.id, verdict);
  best_ = source.id;
  best_timing_ = verdict.timing;
  decide();
}

void StarkStrategy::decide() {
  std::optional<double> ns;
  if (best_timing_) ns = best_timing_->time_ns;
  if (auto reason = end_of_run(ns)) return open(Finish{.reason = *reason, .best = best()});
  if (ns && stark_.bounds)
    if (auto reason = only_ties(*ns)) return open(Finish{.reason = *reason, .best = best()});
  if (tree_.selectable().empty())
    return open(Finish{.reason = "every branch of the tree is closed", .best = best()});
  select();
  plan_.clear();
  family_.reset();
  if (tree_.at(node_).failed) return ask_debugger();
  ask_planner();
}

void StarkStrategy::ask(Role role, Purpose purpose, double temperature,
                        const std::vector<int>& window) {
  role_ = role;
  Json context{{"purpose", to_string(purpose)},
               {"temperature", temperature},
               {"window", ids_of(tree_, window)}};
  if (node_ != 0) context["parent"] = tree_.at(node_).id;
  if (!draw_.is_null()) context["draw"] = std::exchange(draw_, Json());
  if (!plan_.empty()) context[node_ == 0 ? "approach" : "advice"] = plan_;
  if (node_ != 0 && role != Role::debugger) context["grounded"] = true;
  if (stark_.bounds) {
    bounds_.put(context);
    context["profile"] = true;
    if (best_timing_) context["best_ns"] = best_timing_->time_ns;
  }
  if (role == Role::planner && family_) context["family"] = describe(*family_);
  open(Ask{.role = role, .context = context});
}

void StarkStrategy::ask_planner() {
  if (stark_.families && node_ != 0) family_ = families_.choose();
  ask(Role::planner, node_ == 0 ? Purpose::plan : Purpose::improve, kPlanTemperature,
      tree_.plan_window(node_));
}

void StarkStrategy::ask_coder() {
  ask(Role::coder, node_ == 0 ? Purpose::first : Purpose::improve, kCodeTemperature,
      tree_.code_window(node_));
}

void StarkStrategy::ask_debugger() {
  plan_ = tree_.at(node_).plan;
  ask(Role::debugger, Purpose::repair, kCodeTemperature, tree_.debug_window(node_));
}

void StarkStrategy::on_answer(const Proposed& answer) {
  if (answer.outcome == Outcome::unusable) return on_unusable(answer.reason);
  const Outcome wanted = role_ == Role::planner ? Outcome::advised : Outcome::proposed;
  if (answer.outcome != wanted) return open(Finish{.reason = answer.reason, .best = best()});
  if (role_ != Role::planner) return on_program(answer);
  plan_ = answer.advice.empty() ? std::string() : answer.advice.front();
  ask_coder();
}

// An unusable answer costs only the step; kMostUnusable in a row end the run.
void StarkStrategy::on_unusable(const std::string& reason) {
  if (++unusable_ >= kMostUnusable)
    return open(Finish{.reason = "the model's answers cannot be used: " + reason, .best = best()});
  if (family_) families_.fail(*family_);
  decide();
}

void StarkStrategy::on_program(const Proposed& answer) {
  unusable_ = 0;
  hash_ = answer.candidate ? program_id(answer.candidate->program) : std::string();
  if (stark_.equal_programs && !hash_.empty())
    for (int node = 1; node < tree_.size(); ++node)
      if (tree_.at(node).hash == hash_) {
        ++tree_.at(node_).repeats;
        if (family_) families_.reward(*family_, 0);
        return open(
            Reject{.candidate = answer.id, .reason = "the same program as " + tree_.at(node).id});
      }
  judge(Evaluate{.candidate = answer.id, .up_to = Rung::timing, .profile = stark_.bounds});
}

// Reports a new program to the bandit. A repair is compared with the program before the failed
// change.
void StarkStrategy::reward(const Node& node) {
  if (!node.family) return;
  const bool repair = tree_.at(node_).failed;
  const bool timed = std::isfinite(node.ns) && std::isfinite(node.before_ns);
  if (timed) return families_.reward(*node.family, 1 - node.ns / node.before_ns);
  if (!repair) families_.fail(*node.family);
}

void StarkStrategy::add_node(const std::string& candidate, const Verdict& verdict) {
  const Node& from = tree_.at(node_);
  const bool inherits = from.failed && stark_.credit;
  Node node{.id = candidate, .plan = plan_, .hash = hash_, .family = family_, .before_ns = from.ns};
  if (inherits) {
    node.family = from.family;
    node.before_ns = from.before_ns;
  }
  node.failed = verdict.status != Status::correct;
  if (node.failed) node.nearness = nearness_of(verdict);
  if (!node.failed && verdict.timing) node.ns = verdict.timing->time_ns;
  reward(node);
  tree_.add(std::move(node), node_);
}

void StarkStrategy::on_verdict(const std::string& candidate, const Verdict& verdict) {
  add_node(candidate, verdict);
  if (verdict.status != Status::correct)
    return open(Reject{.candidate = candidate, .reason = fault_text(verdict)});
  ties_ = ties_after(ties_, best_timing_, verdict.timing);
  if (best_ && !verdict.timing)
    return open(Reject{.candidate = candidate, .reason = "correct, but no time is known"});
  if (best_timing_ && !beats_incumbent(*best_timing_, *verdict.timing, settings_.min_gain))
    return open(Reject{.candidate = candidate,
                       .reason = loss_text(incumbent_ns(*best_timing_, *verdict.timing),
                                           verdict.timing->time_ns)});
  std::string why = !best_          ? "first correct candidate"
                    : !best_timing_ ? "first candidate with a time"
                                    : gain_text(incumbent_ns(*best_timing_, *verdict.timing),
                                                verdict.timing->time_ns);
  best_ = candidate;
  best_timing_ = verdict.timing;
  open(Accept{.candidate = candidate, .reason = why});
}

void StarkStrategy::on_set_aside(const std::string& candidate, const std::string& why) {
  open(Reject{.candidate = candidate, .reason = why});
}

}  // namespace cutegen::search
