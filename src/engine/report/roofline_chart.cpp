// SPDX-License-Identifier: Apache-2.0
#include "engine/report/roofline_chart.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/units.h"
#include "engine/report/before_after.h"
#include "gpu/spec.h"

namespace cutegen::engine {
namespace {

constexpr double kPlotLeft = 92, kPlotRight = 744, kPlotTop = 14, kPlotBottom = 250;

struct Point {
  bool before = false;             // true: the baseline; false: the best program
  std::string name;                // in the legend
  double intensity = 0, rate = 0;  // FLOP per byte, FLOP per second
};

// The GPU that the best program's time belongs to.
std::optional<GpuSpec> gpu_of(const RunView& view, const RunStep& best) {
  const std::string device = view.settings.evaluator.device.text();
  auto spec = best.imported && !best.verdict->gpu.empty() ? gpu_of_product(best.verdict->gpu)
              : !view.task->gpu.empty()                   ? find_gpu(view.task->gpu)
                                        : find_gpu(device.substr(device.find(':') + 1));
  return spec ? std::optional(std::move(*spec)) : std::nullopt;
}

Point point(bool before, const std::string& name, const BeforeAfter& s, double ns,
            const std::optional<double>& bytes) {
  const double moved = bytes && *bytes > 0 ? *bytes : s.bytes_least;
  return {.before = before,
          .name = name +
                  (bytes ? "" : ", placed at the least bytes, because its traffic was not counted"),
          .intensity = s.flops / std::max(moved, 1.0),
          .rate = s.flops / ns * 1e9};
}

std::optional<Point> before_of(const RunView& view, const RunStep& best, const BeforeAfter& s) {
  if (best.imported) return std::nullopt;  // timed on another device
  if (view.baselines)
    if (const BaselineTime* b = best_baseline(view.baselines->times, view.task->task.math_mode))
      return point(
          true,
          fmt::format("{}, {} ({}), placed at the bytes that its operators move (modelled)",
                      b->kind, human_ns(b->time_ns), to_string(b->origin)),
          s, b->time_ns, s.bytes_before);
  if (!view.first_ns || *view.first_ns <= 0) return std::nullopt;
  return point(true, "the first correct program, " + human_ns(*view.first_ns), s, *view.first_ns,
               std::nullopt);
}

// Both axes are logarithmic and span whole decades.
struct Axes {
  double x0 = 0, x1 = 1, y0 = 0, y1 = 1;
  double x(double v) const {
    return kPlotLeft + (kPlotRight - kPlotLeft) * (std::log10(v) - x0) / (x1 - x0);
  }
  double y(double v) const {
    return kPlotBottom - (kPlotBottom - kPlotTop) * (std::log10(v) - y0) / (y1 - y0);
  }
};

Axes axes_of(const std::vector<Point>& points, double knee, double peak) {
  double low = knee, high = knee, least = peak, most = peak;
  for (const Point& p : points) {
    low = std::min(low, p.intensity), high = std::max(high, p.intensity);
    least = std::min(least, p.rate), most = std::max(most, p.rate);
  }
  Axes a{.x0 = std::floor(std::log10(low) - 0.3),
         .x1 = std::ceil(std::log10(high) + 0.3),
         .y0 = std::floor(std::log10(least) - 0.3),
         .y1 = std::ceil(std::log10(most) + 0.05)};
  return a;
}

std::string rate_text(double per_s) {
  return human(Flops{per_s}) + "/s";
}

std::string grid(const Axes& a) {
  std::string out;
  for (int d = int(a.y0); d <= int(a.y1); ++d) {
    const double v = std::pow(10.0, d);
    out += fmt::format(
        "<line class=\"axis\" x1=\"{0:.0f}\" x2=\"{1:.0f}\" y1=\"{2:.1f}\" y2=\"{2:.1f}\"/>"
        "<text x=\"{3:.0f}\" y=\"{4:.1f}\" text-anchor=\"end\">{5}</text>\n",
        kPlotLeft, kPlotRight, a.y(v), kPlotLeft - 8, a.y(v) + 4, rate_text(v));
  }
  for (int d = int(a.x0); d <= int(a.x1); ++d)
    out += fmt::format("<text x=\"{:.1f}\" y=\"{:.0f}\" text-anchor=\"middle\">{:g}</text>\n",
                       a.x(std::pow(10.0, d)), kPlotBottom + 18, std::pow(10.0, d));
  return out +
         fmt::format("<text x=\"{:.0f}\" y=\"{:.0f}\" text-anchor=\"end\">FLOP per byte</text>\n",
                     kPlotRight, kPlotBottom + 34);
}

// Draws the slope of the memory bandwidth up to the knee, then the peak of the arithmetic.
std::string roof(const Axes& a, double knee, double peak) {
  const double bandwidth = peak / knee, left = std::pow(10.0, a.x0), right = std::pow(10.0, a.x1);
  const double start = std::max(left, std::pow(10.0, a.y0) / bandwidth);
  return fmt::format("<path class=\"roof\" d=\"M{:.1f} {:.1f}L{:.1f} {:.1f}H{:.1f}\"/>\n",
                     a.x(start), a.y(start * bandwidth), a.x(knee), a.y(peak), a.x(right));
}

}  // namespace

RooflineChart roofline_chart(const RunView& view) {
  const RunStep* best = view.incumbent();
  auto s = before_after(view);
  if (!s || s->flops <= 0 || !best->time_ns() || *best->time_ns() <= 0) return {};
  auto gpu = gpu_of(view, *best);
  if (!gpu) return {};
  const char* mode = to_string(view.task->task.math_mode);
  auto peak = gpu->flops_per_s.find(mode);
  if (peak == gpu->flops_per_s.end() || gpu->dram_bytes_per_s <= 0) return {};
  std::vector<Point> points;
  if (auto before = before_of(view, *best, *s)) points.push_back(*before);
  const Timing& t = *best->verdict->timing;
  points.push_back(point(
      false,
      fmt::format("{}, {} ({})", best->candidate.id, human_ns(t.time_ns), to_string(t.origin)), *s,
      t.time_ns, s->bytes_after));
  const double knee = peak->second / gpu->dram_bytes_per_s;
  const Axes axes = axes_of(points, knee, peak->second);
  RooflineChart out;
  out.svg = fmt::format("<svg viewBox=\"0 0 760 {:.0f}\" role=\"img\" aria-label=\"roofline\">\n",
                        kPlotBottom + 40) +
            grid(axes) + roof(axes, knee, peak->second);
  for (const Point& p : points)
    out.svg += fmt::format("<circle class=\"{}\" cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"5.5\"/>\n",
                           p.before ? "before" : "kept", axes.x(p.intensity), axes.y(p.rate));
  out.svg += "</svg>";
  out.legend = fmt::format("The roof is the peak of {} in {}: {} of memory, {} of arithmetic.",
                           gpu->name, mode, human(Bytes{int64_t(gpu->dram_bytes_per_s)}) + "/s",
                           rate_text(peak->second));
  for (const Point& p : points)
    out.legend +=
        fmt::format(" {}: {}; {}.", p.before ? "Hollow" : "Filled", p.name, rate_text(p.rate));
  return out;
}

}  // namespace cutegen::engine
