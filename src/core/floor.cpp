// SPDX-License-Identifier: Apache-2.0
#include "core/floor.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "core/weighted.h"

namespace cutegen {
namespace {

// "aten.addmm.default" -> "addmm". Strips underscores, so in-place and private names match too.
std::string bare_name(const std::string& op) {
  const size_t from = op.find('.');
  std::string name = op.substr(from == std::string::npos ? 0 : from + 1);
  name = name.substr(0, name.find('.'));
  while (!name.empty() && name.front() == '_') name.erase(0, 1);
  while (!name.empty() && name.back() == '_') name.pop_back();
  return name;
}

bool is_convolution(const std::string& name) {
  return name.find("conv") != std::string::npos;
}

bool is_product(const std::string& name) {
  static const std::set<std::string> names{"mm",     "bmm",    "mv",    "dot",      "vdot",
                                           "linear", "matmul", "addmm", "baddbmm",  "addmv",
                                           "addbmm", "lstm",   "gru",   "rnn_tanh", "rnn_relu"};
  return names.contains(name) || name.find("scaled_dot_product") != std::string::npos;
}

std::string bounds_text(double floor_ns, double reachable_ns, RooflineBound bound_by,
                        const char* exception) {
  return fmt::format(
      "{} ({}): no kernel is faster{}; reachable {} (a copy's bandwidth)", human_ns(floor_ns),
      bound_by == RooflineBound::launch ? "a launch" : "least traffic at the nominal bandwidth",
      exception, human_ns(reachable_ns));
}

}  // namespace

Bytes written_bytes(const Task& task, const ShapeCase& shape) {
  int64_t total = 0;
  for (const TensorInfo& t : task.tensors) {
    if (t.role != TensorRole::output && !t.mutated) continue;
    auto at = shape.tensors.find(t.name);
    if (at == shape.tensors.end()) continue;
    auto count = element_count(at->second);
    int64_t bytes = 0;
    if (!count || __builtin_mul_overflow(*count, int64_t(size_of(t.dtype)), &bytes) ||
        __builtin_add_overflow(total, bytes, &total))
      return Bytes{INT64_MAX};
  }
  return Bytes{total};
}

Work work_of(const Task& task, const ShapeCase& shape) {
  const double official = task.official().flops.value;
  const double scale = official > 0 ? shape.flops.value / official : 1;
  Work w;
  for (const Node& node : task.graph.nodes) {
    const std::string name = bare_name(node.op);
    if (is_convolution(name))
      w.convolutions.value += scale * node.flops;
    else if (is_product(name))
      w.products.value += scale * node.flops;
    else
      w.other.value += scale * node.flops;
  }
  if (task.graph.nodes.empty()) w.products = shape.flops;
  w.least = shape.least_bytes;
  w.written = written_bytes(task, shape);
  w.math_mode = task.math_mode;
  w.tf32_convolutions = task.tf32_convolutions;
  return w;
}

Roofline floor_of(const GpuSpec& gpu, const Task& task, const ShapeCase& shape) {
  return roofline(gpu, work_of(task, shape));
}

Roofline floor_of(const GpuSpec& gpu, const Task& task) {
  Roofline out = floor_of(gpu, task, task.official());
  const auto shapes = timed_shapes(task);
  if (shapes.size() < 2) return out;
  for (auto field : {&Roofline::floor_ns, &Roofline::reachable_ns, &Roofline::roofline_ns,
                     &Roofline::compute_ns, &Roofline::memory_ns}) {
    std::vector<Weighted> values;
    values.reserve(shapes.size());
    for (const ShapeCase* shape : shapes)
      values.push_back({.weight = shape->weight, .value = floor_of(gpu, task, *shape).*field});
    out.*field = geometric_mean(values);
  }
  return out;
}

std::string floor_text(double floor_ns, double reachable_ns, RooflineBound bound_by) {
  if (floor_ns <= 0) return "unknown";
  if (reachable_ns <= 0)
    return fmt::format("{} (bound by {}), the roofline as an older version computed it",
                       human_ns(floor_ns), to_string(bound_by));
  return bounds_text(floor_ns, reachable_ns, bound_by, "");
}

std::string unadmitted_floor_text(const Roofline& bounds) {
  return bounds_text(bounds.floor_ns, bounds.reachable_ns, bounds.bound_by,
                     " unless a degenerate solution (such as zeros) is correct");
}

std::string roofline_text(double roofline_ns, RooflineBound bound_by) {
  if (roofline_ns <= 0) return {};
  return fmt::format(
      "{} (bound by {}), an estimate for the operations as written; algebraic rewrites can beat it",
      human_ns(roofline_ns), to_string(bound_by));
}

}  // namespace cutegen
