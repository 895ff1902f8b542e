// SPDX-License-Identifier: Apache-2.0
#include "search/cutegen.h"

#include <fmt/format.h>

#include "base/units.h"

namespace cutegen {
namespace {

constexpr int kMostSetAside = 2;  // in a row: then the machinery is at fault, not the candidates

std::string text_at(const Json& data, const char* key) {
  auto it = data.find(key);
  return it != data.end() && it->is_string() ? it->get<std::string>() : std::string();
}

std::string gain_text(double before, double after) {
  return fmt::format("{:.1f}% faster ({} -> {})", 100 * (1 - after / before), human_ns(before),
                     human_ns(after));
}

std::string loss_text(double best, double time) {
  if (time >= best) return fmt::format("{:.1f}% slower than the best", 100 * (time / best - 1));
  return fmt::format("only {:.2f}% faster than the best", 100 * (1 - time / best));
}

}  // namespace

void CutegenStrategy::open(Action action) {
  open_ = std::move(action);
  issued_ = false;
}

std::vector<Action> CutegenStrategy::next() {
  if (!open_ || issued_) return {};
  issued_ = true;
  return {*open_};
}

// Whether the open action is of kind A and, where it names a candidate, the event's own.
template <class A>
bool CutegenStrategy::awaits(const Event& event) const {
  const A* action = open_ ? std::get_if<A>(&*open_) : nullptr;
  if (!action) return false;
  if constexpr (requires { action->candidate; })
    return action->candidate == text_at(event.data, "candidate");
  return true;
}

void CutegenStrategy::apply(const Event& event) {
  if (!event.data.is_object()) return;
  if (auto it = event.data.find("clock_ms"); it != event.data.end() && it->is_number_integer())
    clock_ms_ = it->get<int64_t>();
  if (event.type == "task") {
    if (auto it = event.data.find("floor_ns"); it != event.data.end() && it->is_number())
      floor_ns_ = it->get<double>();
    decide();
  } else if (event.type == "resumed") {
    issued_ = false;
  } else if (event.type == "answered" && awaits<Ask>(event)) {
    on_answer(event.data);
  } else if (event.type == "evaluated" && awaits<Evaluate>(event)) {
    on_verdict(event.data);
  } else if (event.type == "accepted" && awaits<Accept>(event)) {
    on_accepted();
  } else if (event.type == "rejected" && awaits<Reject>(event)) {
    on_rejected();
  } else if (event.type == "finished" && awaits<Finish>(event)) {
    open_.reset();
  }
}

void CutegenStrategy::on_answer(const Json& data) {
  if (text_at(data, "outcome") != "proposed") return open(Finish{text_at(data, "reason"), best()});
  auto candidate = data.find("candidate");
  attempts_ = 0;
  open(Evaluate{candidate == data.end() ? std::string() : text_at(*candidate, "id")});
}

void CutegenStrategy::on_verdict(const Json& data) {
  Evaluate asked = std::get<Evaluate>(*open_);
  auto verdict = verdict_from_json(data.contains("verdict") ? data["verdict"] : Json());
  if (!verdict) return on_aborted(asked, "the verdict cannot be read: " + verdict.error().message);
  feedback_ = verdict->feedback;
  if (verdict->status == Status::aborted) return on_aborted(asked, feedback_.headline);
  ++evaluations_;
  set_aside_ = 0;
  counts_ = true;
  judged_ = {asked.candidate, std::nullopt};
  if (verdict->timing) judged_.time_ns = verdict->timing->time_ns;
  if (verdict->status == Status::correct) return on_correct(asked.candidate);
  std::string why = to_string(verdict->status);
  if (!feedback_.headline.empty()) why += ": " + feedback_.headline;
  open(Reject{asked.candidate, why});
}

void CutegenStrategy::on_correct(const std::string& candidate) {
  if (!incumbent_) return open(Accept{candidate, "first correct candidate"});
  if (!judged_.time_ns) return open(Reject{candidate, "correct, but no time is known"});
  if (!incumbent_->time_ns) return open(Accept{candidate, "first candidate with a time"});
  double before = *incumbent_->time_ns, after = *judged_.time_ns;
  if (after <= before * (1 - settings_.min_gain) && after < before)
    open(Accept{candidate, gain_text(before, after)});
  else
    open(Reject{candidate, loss_text(before, after)});
}

void CutegenStrategy::on_aborted(const Evaluate& asked, const std::string& why) {
  if (++attempts_ <= settings_.retries) return open(asked);
  ++set_aside_;
  counts_ = false;
  open(Reject{
      asked.candidate,
      fmt::format("set aside: aborted {} times, which says nothing about it: {}", attempts_, why)});
}

void CutegenStrategy::on_accepted() {
  incumbent_ = judged_;
  misses_ = 0;
  decide();
}

void CutegenStrategy::on_rejected() {
  if (counts_) ++misses_;
  decide();
}

std::optional<std::string> CutegenStrategy::reason_to_stop() const {
  if (incumbent_ && incumbent_->time_ns && floor_ns_ > 0 &&
      *incumbent_->time_ns <= floor_ns_ * settings_.floor_ratio)
    return "at the floor";
  if (set_aside_ >= kMostSetAside) return "the evaluator keeps failing: " + feedback_.headline;
  if (evaluations_ >= settings_.budget.evaluations) return "budget: evaluations";
  if (settings_.budget.minutes > 0 &&
      static_cast<double>(clock_ms_) >= settings_.budget.minutes * 60e3)
    return "budget: minutes";
  if (incumbent_ && misses_ >= settings_.plateau) return "plateau";
  if (!incumbent_ && misses_ > settings_.repairs)
    return fmt::format("nothing correct after {} candidates: {}", misses_, feedback_.headline);
  return std::nullopt;
}

void CutegenStrategy::decide() {
  if (auto reason = reason_to_stop()) return open(Finish{*reason, best()});
  open(Ask{"coder", context()});
}

// What a proposer may need; `purpose` says which kind of answer is wanted.
Json CutegenStrategy::context() const {
  Json out;
  out["purpose"] = incumbent_ ? "improve" : misses_ || set_aside_ ? "repair" : "first";
  if (incumbent_) out["parent"] = incumbent_->id;
  if (incumbent_ && incumbent_->time_ns) out["best_ns"] = *incumbent_->time_ns;
  if (floor_ns_ > 0) out["floor_ns"] = floor_ns_;
  if (!feedback_.headline.empty()) out["headline"] = feedback_.headline;
  if (!feedback_.bottleneck.empty()) out["bottleneck"] = feedback_.bottleneck;
  if (!feedback_.resources.empty()) out["resources"] = feedback_.resources;
  return out;
}

}  // namespace cutegen
