// SPDX-License-Identifier: Apache-2.0
#include "cli/describe_text.h"

#include <fmt/format.h>

#include "base/text.h"
#include "core/floor.h"

namespace cutegen::cli {
namespace {

constexpr size_t kShortGraph = 32;
constexpr size_t kShortList = 24;

std::string scalar_text(const Scalar& scalar) {
  if (auto* b = std::get_if<bool>(&scalar)) return *b ? "true" : "false";
  if (auto* i = std::get_if<int64_t>(&scalar)) return std::to_string(*i);
  if (auto* d = std::get_if<double>(&scalar)) return fmt::format("{}", *d);
  return "'" + std::get<std::string>(scalar) + "'";
}

std::string argument_text(const Json& arg) {
  if (arg.is_object() && arg.contains("ref") && arg["ref"].is_string())
    return arg["ref"].get<std::string>();
  if (arg.is_object() && arg.size() == 1 && arg.begin()->is_string())
    return arg.begin()->get<std::string>();
  if (!arg.is_array()) return arg.is_null() ? "None" : dump_json(arg);
  std::string out;
  for (const Json& item : arg) out += (out.empty() ? "" : ", ") + argument_text(item);
  return "[" + out + "]";
}

// "relu = aten.relu.default(x) -> f32 [4, 8]"
std::string node_text(const Node& node) {
  std::string args, outs;
  for (size_t i = 0; i < node.args.size(); ++i) {
    args += (args.empty() ? "" : ", ") + argument_text(node.args[i]);
    for (const SizeArgument& s : node.sizes)
      if (s.index == i) args += " = " + s.text();
  }
  for (const auto& [key, arg] : node.kwargs.items())
    if (!arg.is_null()) args += (args.empty() ? "" : ", ") + key + "=" + argument_text(arg);
  for (const Value& v : node.outputs)
    outs +=
        fmt::format("{}{} {}", outs.empty() ? "" : ", ", to_string(v.dtype), to_string(v.shape));
  return fmt::format("{} = {}({}) -> {}", node.id, node.op, args, outs);
}

// Appends a block of lines, with the title in the first column of the first line.
void block(std::string& out, const std::string& title, const std::vector<std::string>& lines) {
  for (size_t i = 0; i < lines.size(); ++i)
    out += fmt::format("  {:<11} {}\n", i == 0 ? title : "", lines[i]);
}

std::vector<std::string> shortened(std::vector<std::string> lines, size_t most, const char* hint) {
  if (lines.size() <= most) return lines;
  size_t rest = lines.size() - most;
  lines.resize(most);
  lines.push_back(fmt::format("... {} more{}", rest, hint));
  return lines;
}

std::vector<std::string> tensor_lines(const Task& task, TensorRole role) {
  std::vector<std::string> lines;
  for (const TensorInfo* t : task.with_role(role))
    lines.push_back(fmt::format("{} {} {}{}", t->name, to_string(t->dtype), to_string(t->shape),
                                t->mutated ? " (mutated)" : ""));
  return shortened(std::move(lines), kShortList, " (--json shows all)");
}

std::vector<std::string> scalar_lines(const std::vector<ScalarInfo>& scalars) {
  std::vector<std::string> lines;
  lines.reserve(scalars.size());
  for (const ScalarInfo& s : scalars) lines.push_back(s.name + " = " + scalar_text(s.value));
  return shortened(std::move(lines), kShortList, " (--json shows all)");
}

std::string shape_text(const ShapeCase& shape) {
  std::string constants;
  for (const auto& [name, value] : shape.constants)
    constants += fmt::format("{}{} = {}", constants.empty() ? "" : ", ", name, value);
  return fmt::format("{:<9} {}{}, {}{}", shape.name, constants.empty() ? "as written" : constants,
                     shape.weight == 1 ? "" : fmt::format(", weight {:g}", shape.weight),
                     human(shape.flops), ", " + human(shape.least_bytes));
}

std::vector<std::string> graph_lines(const Task& task, bool whole) {
  std::vector<std::string> lines;
  lines.reserve(task.graph.nodes.size());
  for (const Node& node : task.graph.nodes) lines.push_back(node_text(node));
  std::string results;
  for (const std::string& name : task.graph.outputs)
    results += (results.empty() ? "" : ", ") + name;
  if (!whole) lines = shortened(std::move(lines), kShortGraph, " (--graph shows all)");
  lines.push_back("return " + results);
  for (const std::string& warning : task.graph.warnings) lines.push_back("warning: " + warning);
  return lines;
}

std::string bound_text(const Task& task) {
  return fmt::format("|y - truth| <= {:g} + {:g} |truth|, in addition to cutegen's own tolerance",
                     task.atol.value_or(0), task.rtol.value_or(0));
}

}  // namespace

std::string task_page(const Task& task, const GpuSpec& gpu, PageOptions options) {
  const Roofline bounds = floor_of(gpu, task);
  std::string out = fmt::format("{}  ({})\n", task.name, task.file);
  block(out, "class", {task.workload});
  block(out, "mode",
        {fmt::format("{}; {}", mode_text(task), task.train_mode ? "train mode" : "eval mode")});
  if (task.rtol || task.atol) block(out, "bound", {bound_text(task)});
  block(out, "inputs", tensor_lines(task, TensorRole::input));
  block(out, "arguments", scalar_lines(task.arguments));
  block(out, "parameters", tensor_lines(task, TensorRole::parameter));
  block(out, "buffers", tensor_lines(task, TensorRole::buffer));
  block(out, "attributes", scalar_lines(task.attributes));
  block(out, "outputs", tensor_lines(task, TensorRole::output));
  block(out, "returns", task.returns);
  block(out, "graph", graph_lines(task, options.whole_graph));
  block(out, "work",
        {fmt::format("{}, at least {} of memory traffic", human(task.official().flops),
                     human(task.official().least_bytes))});
  block(out, "floor", {unadmitted_floor_text(bounds), "on " + gpu.name});
  block(out, "roofline", {roofline_text(bounds.roofline_ns, bounds.bound_by)});
  std::vector<std::string> shapes;
  shapes.reserve(task.shapes.size());
  for (const ShapeCase& s : task.shapes) shapes.push_back(shape_text(s));
  block(out, "shapes", shapes);
  block(out, "notes", task.notes);
  return sanitize(out, size_t{64} << 20);
}

std::string table_head() {
  return fmt::format("{:<40} {:<28} {:>6} {:>12} {:>10} {:>10} {:>6} {:>7}\n", "task", "class",
                     "nodes", "work", "traffic", "floor", "shapes", "time");
}

std::string table_row(const Task& task, const GpuSpec& gpu, double seconds) {
  const ShapeCase& s = task.official();
  return sanitize(
      fmt::format("{:<40} {:<28} {:>6} {:>12} {:>10} {:>10} {:>6} {:>7}\n", task.name.substr(0, 40),
                  task.workload, task.graph.nodes.size(), human(s.flops), human(s.least_bytes),
                  human_ns(floor_of(gpu, task).floor_ns), task.shapes.size(),
                  human_ns(seconds * 1e9)),
      4096);
}

Json task_document(const Task& task, const GpuSpec& gpu, double seconds) {
  const Roofline bounds = floor_of(gpu, task);
  Json j = to_json(task);
  j["roofline"] = {{"gpu", gpu.id},
                   {"origin", "modelled"},
                   {"compute_ns", bounds.compute_ns},
                   {"memory_ns", bounds.memory_ns},
                   {"floor_ns", bounds.floor_ns},
                   {"reachable_ns", bounds.reachable_ns},
                   {"roofline_ns", bounds.roofline_ns},
                   {"bound_by", to_string(bounds.bound_by)}};
  j["describe_ns"] = seconds * 1e9;
  return j;
}

}  // namespace cutegen::cli
