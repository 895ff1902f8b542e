// SPDX-License-Identifier: Apache-2.0
#include "engine/report/report_chart.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/units.h"

namespace cutegen::engine {
namespace {

constexpr double kLeft = 78, kRight = 744, kTop = 14, kBottom = 250;

// Positions in the chart: steps from left to right, times on a logarithmic scale.
struct Scale {
  double low = 0, high = 1;  // log10 of the times at the bottom and the top
  size_t steps = 1;
  double x(size_t i) const { return kLeft + (kRight - kLeft) * (double(i) + 0.5) / double(steps); }
  double y(double ns) const {
    return kBottom - (kBottom - kTop) * (std::log10(ns) - low) / (high - low);
  }
};

Scale scale_of(const RunView& view, const std::vector<double>& times) {
  auto [least, most] = std::minmax_element(times.begin(), times.end());
  double bottom = *least, floor = view.task ? view.task->floor_ns : 0;
  if (floor > 0) bottom = std::min(bottom, floor);
  return {.low = std::log10(bottom * 0.85),
          .high = std::log10(*most * 1.15),
          .steps = std::max<size_t>(1, view.steps.size())};
}

// Returns round values between bottom and top: evenly spaced over a small range, else per decade.
std::vector<double> ticks(const Scale& scale) {
  std::vector<double> out;
  double least = std::pow(10.0, scale.low), most = std::pow(10.0, scale.high);
  if (most < 4 * least) {
    double step = std::pow(10.0, std::floor(std::log10(most - least)));
    if ((most - least) / step > 5) step *= 2;
    if ((most - least) / step < 2) step /= 2;
    for (double ns = std::ceil(least / step) * step; ns <= most; ns += step) out.push_back(ns);
    return out;
  }
  bool many = scale.high - scale.low > 2.5;  // decades
  for (int decade = int(std::floor(scale.low)); decade <= scale.high; ++decade)
    for (double digit : {1.0, 2.0, 5.0}) {
      double ns = digit * std::pow(10.0, decade);
      if (ns >= least && ns <= most && (!many || digit == 1)) out.push_back(ns);
    }
  return out;
}

std::string grid(const Scale& scale) {
  std::string out;
  for (double ns : ticks(scale)) {
    out += fmt::format(
        "<line class=\"axis\" x1=\"{0:.0f}\" x2=\"{1:.0f}\" y1=\"{2:.1f}\" y2=\"{2:.1f}\"/>"
        "<text x=\"{3:.0f}\" y=\"{4:.1f}\" text-anchor=\"end\">{5}</text>\n",
        kLeft, kRight, scale.y(ns), kLeft - 8, scale.y(ns) + 4, human_ns(ns));
  }
  return out;
}

std::string marks(const RunView& view, const Scale& scale) {
  std::string out;
  size_t every = 1 + view.steps.size() / 20;  // so that labels do not overlap
  for (size_t i = 0; i < view.steps.size(); ++i) {
    const RunStep& step = view.steps[i];
    if (step.imported) continue;  // timed on another device
    double x = scale.x(i);
    std::string id = html_escape(step.candidate.id);
    if (i % every == 0)
      out += fmt::format("<text x=\"{:.1f}\" y=\"{:.0f}\" text-anchor=\"middle\">{}</text>\n", x,
                         kBottom + 18, id);
    if (auto ns = step.time_ns()) {
      bool kept = step.decision == Decision::accepted;
      out += fmt::format(
          "<circle class=\"{}\" cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"4.5\"><title>{}: {}</title>"
          "</circle>\n",
          kept ? "kept" : "tried", x, scale.y(*ns), id, human_ns(*ns));
    } else {
      out += fmt::format(
          "<path class=\"wrong\" d=\"M{0:.1f} {1:.0f}l8 8m0 -8l-8 8\"><title>{2}</title>"
          "</path>\n",
          x - 4, kTop, id);
    }
  }
  return out;
}

// Draws a horizontal line at one of the task's own times, with its name `below` it (above if
// negative).
std::string level(const Scale& scale, const std::string& name, double ns, double right, int below) {
  const double y = scale.y(ns);
  return fmt::format(
      "<line class=\"{0}\" x1=\"{1:.0f}\" x2=\"{2:.0f}\" y1=\"{3:.1f}\" y2=\"{3:.1f}\"/>"
      "<text x=\"{2:.0f}\" y=\"{4:.1f}\" text-anchor=\"end\">{0} {5}</text>\n",
      name, kLeft, right, y, y + below, human_ns(ns));
}

// Draws the best time so far as a staircase.
std::string staircase(const RunView& view, const Scale& scale) {
  std::string path;
  for (size_t i = 0; i < view.steps.size(); ++i) {
    auto ns = view.steps[i].time_ns();
    if (!ns || view.steps[i].imported || view.steps[i].decision != Decision::accepted) continue;
    if (path.empty())
      path = fmt::format("M{:.1f} {:.1f}", scale.x(i), scale.y(*ns));
    else
      path += fmt::format("H{:.1f}V{:.1f}", scale.x(i), scale.y(*ns));
  }
  if (path.empty()) return {};
  return fmt::format("<path class=\"best\" d=\"{}H{:.0f}\"/>\n", path, kRight);
}

}  // namespace

std::string html_escape(const std::string& text) {
  std::string out;
  out.reserve(text.size() + 16);
  for (char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      case '\'':
        out += "&#39;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

std::string chart_svg(const RunView& view) {
  std::vector<double> times;
  for (const RunStep& step : view.steps)
    if (auto ns = step.time_ns(); ns && *ns > 0 && !step.imported) times.push_back(*ns);
  if (times.empty()) return {};
  Scale scale = scale_of(view, times);
  std::string out = fmt::format(
      "<svg viewBox=\"0 0 760 {:.0f}\" role=\"img\" aria-label=\"time of each "
      "step against the bounds\">\n",
      kBottom + 28);
  out += grid(scale);
  if (view.task) {
    const eval::OpenedTask& o = *view.task;
    if (o.floor_ns > 0) out += level(scale, "floor", o.floor_ns, kRight, 14);
    if (o.reachable_ns > 0) out += level(scale, "reachable", o.reachable_ns, kRight, -6);
  }
  return out + staircase(view, scale) + marks(view, scale) + "</svg>";
}

}  // namespace cutegen::engine
