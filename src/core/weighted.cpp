// SPDX-License-Identifier: Apache-2.0
#include "core/weighted.h"

#include <algorithm>
#include <cmath>
#include <filesystem>

namespace cutegen {
namespace {

constexpr const char* kHeadlineShape = "weighted shapes";

const PairedRatio* find(const std::vector<PairedRatio>& ratios, const PairedRatio& like) {
  for (const PairedRatio& p : ratios)
    if (p.against == like.against && p.program_id == like.program_id) return &p;
  return nullptr;
}

struct WeightedRatios {
  double weight = 1;
  const std::vector<PairedRatio>* ratios = nullptr;
};

// Averages the ratios that every shape has, in the order of the first shape.
std::vector<PairedRatio> mean_ratios(const std::vector<WeightedRatios>& of) {
  std::vector<PairedRatio> out;
  for (const PairedRatio& first : *of.front().ratios) {
    PairedRatio mean = first;
    mean.pairs = 0;
    std::vector<Weighted> speedup, low, high, other;
    for (const auto& [weight, ratios] : of) {
      const PairedRatio* p = find(*ratios, first);
      if (!p) break;
      speedup.push_back({.weight = weight, .value = p->speedup});
      low.push_back({.weight = weight, .value = p->low});
      high.push_back({.weight = weight, .value = p->high});
      other.push_back({.weight = weight, .value = p->other_ns});
      mean.pairs += p->pairs;
      if (p->stopped != mean.stopped) mean.stopped = "enough";
    }
    if (speedup.size() < of.size()) continue;
    mean.speedup = geometric_mean(speedup), mean.other_ns = geometric_mean(other);
    mean.low = geometric_mean(low), mean.high = geometric_mean(high);
    out.push_back(std::move(mean));
  }
  return out;
}

double mean_of(const std::vector<ShapeTimed>& timed, double Timing::* field) {
  std::vector<Weighted> values;
  values.reserve(timed.size());
  for (const ShapeTimed& t : timed)
    values.push_back({.weight = t.shape->weight, .value = t.timing.*field});
  return geometric_mean(values);
}

std::optional<double> mean_of(const std::vector<ShapeTimed>& timed,
                              std::optional<double> Timing::* field) {
  std::vector<Weighted> values;
  for (const ShapeTimed& t : timed) {
    if (!(t.timing.*field)) return std::nullopt;
    values.push_back({.weight = t.shape->weight, .value = *(t.timing.*field)});
  }
  return geometric_mean(values);
}

// The lowest value of the field over all shapes; empty if one shape lacks it.
std::optional<double> least_of(const std::vector<ShapeTimed>& timed,
                               std::optional<double> Timing::* field) {
  std::optional<double> out;
  for (const ShapeTimed& t : timed) {
    if (!(t.timing.*field)) return std::nullopt;
    out = std::min(out.value_or(*(t.timing.*field)), *(t.timing.*field));
  }
  return out;
}

std::optional<ClockCheck> clock_of(const std::vector<ShapeTimed>& timed) {
  ClockCheck out;
  out.agrees = true;
  for (const ShapeTimed& t : timed) {
    if (!t.timing.clock) return std::nullopt;
    out.claimed_ns += t.timing.clock->claimed_ns;
    out.seen_ns += t.timing.clock->seen_ns;
    out.agrees = out.agrees && t.timing.clock->agrees;
  }
  return out;
}

std::vector<PairedRatio> paired_of(const std::vector<ShapeTimed>& timed) {
  std::vector<WeightedRatios> all;
  all.reserve(timed.size());
  for (const ShapeTimed& t : timed)
    all.push_back({.weight = t.shape->weight, .ratios = &t.timing.paired});
  return mean_ratios(all);
}

const CertifiedMode* find(const CertifiedShape& shape, TimeMode mode) {
  for (const CertifiedMode& m : shape.modes)
    if (m.mode == mode) return &m;
  return nullptr;
}

}  // namespace

bool is_timed(const ShapeCase& shape) {
  return shape.kind == ShapeKind::official || (shape.kind == ShapeKind::user && shape.weight > 0);
}

std::vector<const ShapeCase*> timed_shapes(const Task& task) {
  std::vector<const ShapeCase*> out;
  for (const ShapeCase& shape : task.shapes)
    if (is_timed(shape)) out.push_back(&shape);
  return out;
}

std::string advice_to_shrink(const Task& task, const ShapeCase& shape) {
  if (shape.kind == ShapeKind::user)
    return "give it weight = 0 or smaller constants in the side file";
  const std::string file = std::filesystem::path(task.file).filename().string();
  return "use smaller sizes in " + (file.empty() ? "the task file" : file);
}

double geometric_mean(const std::vector<Weighted>& values) {
  double most = 0;
  for (const Weighted& v : values) most = std::max(most, v.weight);
  if (!(most > 0)) return 0;
  double logs = 0, weights = 0;
  for (const Weighted& v : values) {
    if (!(v.value > 0)) return 0;
    logs += v.weight / most * std::log(v.value);  // relative weights: the sum cannot overflow
    weights += v.weight / most;
  }
  return std::exp(logs / weights);
}

Timing headline_of(const std::vector<ShapeTimed>& timed) {
  CG_ASSERT(!timed.empty());
  Timing out = timed.front().timing;
  if (timed.size() == 1) return out;
  out.shape = kHeadlineShape;
  for (auto field :
       {&Timing::time_ns, &Timing::floor_ns, &Timing::roofline_ns, &Timing::reachable_ns})
    out.*field = mean_of(timed, field);
  out.low_ns = mean_of(timed, &Timing::low_ns), out.high_ns = mean_of(timed, &Timing::high_ns);
  out.sm_clock_hz = least_of(timed, &Timing::sm_clock_hz);
  out.sm_clock_least_hz = least_of(timed, &Timing::sm_clock_least_hz);
  out.clock = clock_of(timed);
  out.paired = paired_of(timed);
  out.samples = 0;
  for (const auto& [shape, t] : timed) {
    out.samples += t.samples;
    out.shapes.push_back({.shape = shape->name,
                          .weight = shape->weight,
                          .time_ns = t.time_ns,
                          .floor_ns = t.floor_ns,
                          .low_ns = t.low_ns,
                          .high_ns = t.high_ns,
                          .paired = t.paired});
  }
  return out;
}

std::vector<CertifiedMode> headline_modes(const std::vector<CertifiedShape>& shapes) {
  std::vector<CertifiedMode> out;
  if (shapes.empty()) return out;
  for (const CertifiedMode& first : shapes.front().modes) {
    std::vector<Weighted> time, low, high;
    std::vector<WeightedRatios> ratios;
    for (const CertifiedShape& shape : shapes) {
      const CertifiedMode* m = find(shape, first.mode);
      if (!m) break;
      time.push_back({.weight = shape.weight, .value = m->time_ns});
      low.push_back({.weight = shape.weight, .value = m->low_ns});
      high.push_back({.weight = shape.weight, .value = m->high_ns});
      ratios.push_back({.weight = shape.weight, .ratios = &m->against});
    }
    if (time.size() < shapes.size()) continue;
    out.push_back({.mode = first.mode,
                   .time_ns = geometric_mean(time),
                   .low_ns = geometric_mean(low),
                   .high_ns = geometric_mean(high),
                   .against = mean_ratios(ratios)});
  }
  return out;
}

}  // namespace cutegen
