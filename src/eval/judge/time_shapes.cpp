// SPDX-License-Identifier: Apache-2.0
#include "eval/judge/time_shapes.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/units.h"
#include "core/weighted.h"

namespace cutegen::eval {
namespace {

std::string detail_of(const Timing& t) {
  std::vector<std::string> each;
  each.reserve(t.shapes.size());
  for (const ShapeTiming& s : t.shapes)
    each.push_back(fmt::format("{} {} (weight {:g})", s.shape, human_ns(s.time_ns), s.weight));
  std::string out =
      fmt::format("{} {}: weighted geometric mean of {} shapes: {}; floor {} ({:.2f}x)",
                  human_ns(t.time_ns), to_string(t.origin), t.shapes.size(), fmt::join(each, ", "),
                  human_ns(t.floor_ns), t.time_ns / std::max(t.floor_ns, 1e-9));
  for (const PairedRatio& p : t.paired)
    out += fmt::format(", {:.3f}x as fast as the {} ({:.3f}-{:.3f}, {} pairs, {})", p.speedup,
                       p.against, p.low, p.high, p.pairs, p.stopped);
  return out;
}

// Adds the marks of one of several shapes, with the shape's name as a prefix.
void add_marks(std::vector<std::string>& to, const std::vector<std::string>& from,
               const ShapeCase& shape) {
  for (const std::string& mark : from)
    to.push_back(shape.kind == ShapeKind::official ? mark : name_of(shape).substr(4) + ": " + mark);
}

}  // namespace

Result<ShapesTimed> time_shapes(const Prepared& prepared, const TimeShape& time) {
  std::vector<const ShapeCase*> shapes;
  std::map<const ShapeCase*, const PreparedShape*> of;
  for (const PreparedShape* shape : timed_shapes(prepared))
    shapes.push_back(shape->shape), of[shape->shape] = shape;
  return time_cases(shapes, [&](const ShapeCase& shape) { return time(*of.at(&shape)); });
}

Result<ShapesTimed> time_cases(const std::vector<const ShapeCase*>& shapes, const TimeCase& time) {
  ShapesTimed out;
  std::vector<ShapeTimed> timed;
  std::vector<std::string> marks;
  for (const ShapeCase* shape : shapes) {
    CG_TRY(TimingOutcome one, time(*shape));
    add_marks(marks, one.marks, *shape);
    const bool official = shape->kind == ShapeKind::official;
    if (one.timing) timed.push_back({.shape = shape, .timing = *one.timing});
    const bool goes_on = one.end.passed && one.timing;
    if (official) {
      out.official = one.timing;
      out.outcome = std::move(one);
    } else if (!goes_on) {
      one.kernels = std::move(out.outcome.kernels);
      one.timing.reset();
      if (one.end.passed) one.end.detail += fmt::format(" ({})", name_of(*shape).substr(4));
      out.outcome = std::move(one);
    }
    if (!goes_on) break;
  }
  out.outcome.marks = std::move(marks);
  if (shapes.empty()) {
    out.outcome.result = RungResult::skipped;
    out.outcome.end = rung_passed("the official shape was not prepared");
  }
  if (timed.size() < 2 || timed.size() < shapes.size() || !out.outcome.timing) return out;
  out.outcome.timing = headline_of(timed);
  out.outcome.end.detail = detail_of(*out.outcome.timing);
  return out;
}

}  // namespace cutegen::eval
