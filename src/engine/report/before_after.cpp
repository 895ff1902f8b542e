// SPDX-License-Identifier: Apache-2.0
#include "engine/report/before_after.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/units.h"

namespace cutegen::engine {
namespace {

constexpr int kMostViews = 64;  // views of views

// Whether an operator such as "aten.view.default" returns a view of its argument's memory.
bool is_view(const std::string& op) {
  static const std::set<std::string> views{
      "view",      "_unsafe_view", "_reshape_alias", "permute",  "transpose", "t",
      "expand",    "unsqueeze",    "squeeze",        "select",   "slice",     "alias",
      "detach",    "split",        "chunk",          "unbind",   "unfold",    "diagonal",
      "narrow",    "as_strided",   "movedim",        "swapaxes", "view_as",   "split_with_sizes",
      "expand_as", "lift_fresh",   "getitem"};
  const size_t first = op.find('.'), second = op.find('.', first + 1);
  if (first == std::string::npos) return false;
  return views.contains(op.substr(first + 1, second - first - 1));
}

void collect_refs(const Json& json, std::set<std::string>& out) {
  if (json.is_object()) {
    if (auto ref = json.find("ref"); ref != json.end() && ref->is_string())
      out.insert(ref->get<std::string>());
    return;
  }
  if (json.is_array())
    for (const Json& item : json) collect_refs(item, out);
}

std::set<std::string> refs_of(const Node& node) {
  std::set<std::string> out;
  for (const Json& arg : node.args) collect_refs(arg, out);
  for (const auto& [name, arg] : node.kwargs.items()) collect_refs(arg, out);
  return out;
}

double bytes_of(const Value& value) {
  auto count = element_count(value.shape);
  return count ? double(*count) * double(size_of(value.dtype)) : 0;
}

// Reading a view costs the bytes of its elements, but no more than the memory behind it.
double bytes_read(const Graph& graph, std::string name) {
  double least = -1;
  for (int depth = 0; depth < kMostViews; ++depth) {
    const Value* value = graph.find(name);
    if (!value) break;
    least = least < 0 ? bytes_of(*value) : std::min(least, bytes_of(*value));
    const Node* node = graph.producer(name);
    if (!node || !is_view(node->op)) break;
    auto refs = refs_of(*node);
    if (refs.empty()) break;
    name = *refs.begin();
  }
  return std::max(least, 0.0);
}

std::optional<double> counted_bytes(const Profile& profile) {
  double sum = 0;
  for (const KernelProfile& k : profile.kernels) {
    auto read = k.counters.find("dram_read_bytes"), written = k.counters.find("dram_write_bytes");
    if (read == k.counters.end() || written == k.counters.end()) return std::nullopt;
    sum += read->second + written->second;
  }
  return profile.kernels.empty() ? std::nullopt : std::optional(sum);
}

}  // namespace

std::string bytes_text(double bytes) {
  return human(Bytes{int64_t(bytes)});
}

OperatorCost cost_of(const Graph& graph) {
  OperatorCost out;
  for (const Node& node : graph.nodes) {
    if (is_view(node.op)) continue;
    ++out.launches;
    for (const std::string& ref : refs_of(node)) out.bytes += bytes_read(graph, ref);
    for (const Value& value : node.outputs) out.bytes += bytes_of(value);
  }
  return out;
}

std::optional<BeforeAfter> before_after(const RunView& view) {
  const RunStep* best = view.incumbent();
  if (!best || !view.task || view.task->task.shapes.empty()) return std::nullopt;
  const Task& task = view.task->task;
  const OperatorCost before = cost_of(task.graph);
  if (before.launches == 0) return std::nullopt;
  BeforeAfter out;
  out.launches_before = before.launches;
  out.bytes_before = before.bytes;
  out.bytes_least = double(task.official().least_bytes.value);
  out.flops = task.official().flops.value;
  const Plan& plan = best->candidate.program.plan;
  out.launches_after = int64_t(plan.prepare.size() + plan.steps.size());
  if (const Profile* profile = view.best_profile()) {
    if (!profile->kernels.empty()) {
      out.launches_after = int64_t(profile->kernels.size());
      out.after = profile->kernels.front().origin;
    }
    out.bytes_after = counted_bytes(*profile);
  }
  return out;
}

std::string to_text(const BeforeAfter& s) {
  std::string out = fmt::format("launches {} -> {}; memory traffic {} (modelled)",
                                s.launches_before, s.launches_after, bytes_text(s.bytes_before));
  out += s.bytes_after ? fmt::format(" -> {} ({})", bytes_text(*s.bytes_after), to_string(s.after))
                       : std::string(" -> not counted");
  return out + ", least " + bytes_text(s.bytes_least);
}

Json to_json(const BeforeAfter& s) {
  return {{"launches_before", s.launches_before},
          {"launches_after", s.launches_after},
          {"bytes_before", s.bytes_before},
          {"bytes_before_origin", to_string(Origin::modelled)},
          {"bytes_after", s.bytes_after ? Json(*s.bytes_after) : Json(nullptr)},
          {"bytes_after_origin", s.bytes_after ? to_string(s.after) : to_string(Origin::skipped)},
          {"bytes_least", s.bytes_least}};
}

}  // namespace cutegen::engine
