// SPDX-License-Identifier: Apache-2.0
#include "engine/report/fail_under.h"

#include <fmt/format.h>

#include "base/words.h"

namespace cutegen::engine {
namespace {

// The smallest ratio within the two medians' intervals; without intervals, the ratio of the
// medians.
double least_ratio(double other_ns, double other_low, double own_ns,
                   const std::optional<double>& own_high) {
  return (other_low > 0 ? other_low : other_ns) / (own_high ? *own_high : own_ns);
}

std::optional<BestGain> over_baseline(const RunView& view, const Timing& own) {
  auto gain = view.gain();
  if (!gain) return std::nullopt;
  double low = 0;
  for (const BaselineTime& t : view.baselines->times)
    if (t.kind == gain->kind) low = t.low_ns;
  return BestGain{.ratio = gain->speedup,
                  .low = least_ratio(gain->time_ns, low, own.time_ns, own.high_ns),
                  .against = gain->kind,
                  .by = GainFrom::baselines};
}

std::optional<BestGain> over_first(const RunView& view, const RunStep& best) {
  auto ratio = view.over_first(best);
  if (!ratio) return std::nullopt;
  BestGain out{.ratio = *ratio, .low = *ratio, .against = first_name(view), .by = GainFrom::first};
  for (const RunStep& step : view.steps) {
    if (step.decision != Decision::accepted || !step.time_ns()) continue;
    const Timing& first = *step.verdict->timing;
    const Timing& own = *best.verdict->timing;
    if (&step != &best && first.low_ns && own.high_ns) out.low = *first.low_ns / *own.high_ns;
    break;
  }
  return out;
}

}  // namespace

Names<GainFrom> enum_names(GainFrom) {
  static constexpr Name<GainFrom> names[] = {{GainFrom::certificate, "certificate"},
                                             {GainFrom::baselines, "baselines"},
                                             {GainFrom::first, "first"}};
  return names;
}

std::optional<BestGain> certified_gain(const Certificate& certificate, MathMode mode) {
  for (CertifiedMode cold : certificate.modes) {
    if (cold.mode != TimeMode::cold) continue;
    std::erase_if(cold.against, [&](auto& p) {
      const BaselineAccuracy* known = accuracy_of(certificate, p.against);
      return !in_math_mode(baseline_kind(p.against), known ? *known : BaselineAccuracy{}, mode);
    });
    if (const PairedRatio* p = hardest(cold))
      return BestGain{
          .ratio = p->speedup, .low = p->low, .against = p->against, .by = GainFrom::certificate};
  }
  return std::nullopt;
}

std::optional<BestGain> best_gain(const RunView& view) {
  const RunStep* best = view.incumbent();
  if (!best || !best->time_ns() || !view.task) return std::nullopt;
  if (const Certificate* c = view.best_certificate())
    if (auto gain = certified_gain(*c, view.task->task.math_mode)) return gain;
  if (view.settings.evaluator.device.is_gpu()) return over_baseline(view, *best->verdict->timing);
  return over_first(view, *best);
}

bool reaches(const std::optional<BestGain>& gain, double wanted) {
  return gain && gain->low >= wanted;
}

std::string to_text(const std::optional<BestGain>& gain) {
  if (!gain) return "there is no baseline to compare with";
  const std::string how = gain->by == GainFrom::certificate ? "certified, cold"
                          : gain->by == GainFrom::baselines ? "measured, not alternately"
                                                            : "modelled";
  return fmt::format("at least {:.3f}x over {} ({}; median {:.3f}x)", gain->low,
                     one_line(gain->against, 60), how, gain->ratio);
}

Json to_json(const BestGain& gain) {
  return {{"ratio", gain.ratio},
          {"low", gain.low},
          {"against", gain.against},
          {"by", to_string(gain.by)}};
}

}  // namespace cutegen::engine
