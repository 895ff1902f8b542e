// SPDX-License-Identifier: Apache-2.0
#include "recipes/text/kernel_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "base/text.h"
#include "recipes/graph/pointwise.h"

namespace cutegen::recipes {

std::string fill(const std::string& path, const std::map<std::string, std::string>& values) {
  auto it = recipe_templates().find(path);
  CG_ASSERT(it != recipe_templates().end());
  const std::string& text = it->second;
  std::string out;
  for (size_t at = 0; at < text.size();) {
    size_t open = text.find("{{", at);
    out += text.substr(at, open - at);
    if (open == std::string::npos) break;
    size_t close = text.find("}}", open);
    CG_ASSERT(close != std::string::npos);
    auto value = values.find(text.substr(open + 2, close - open - 2));
    CG_ASSERT(value != values.end());
    out += value->second;
    at = close + 2;
  }
  while (out.find("\n\n\n") != std::string::npos) out = replace_all(out, "\n\n\n", "\n\n");
  return out;
}

std::string indent(const std::string& text, int spaces) {
  std::string pad(size_t(spaces), ' '), out;
  for (const std::string& line : split(text, '\n')) {
    if (!out.empty()) out += "\n";
    if (!line.empty()) out += pad + line;
  }
  while (!out.empty() && out.back() == '\n') out.pop_back();
  return out;
}

std::string tuple_of(const std::string& maker, const std::vector<std::string>& items) {
  return items.size() == 1 ? items[0] : fmt::format("{}({})", maker, join(items, ", "));
}

Code::Code(const Fused& fused) : fused_(fused) {
  for (const auto& [tensor, name] : fused.names) (void)names_.unique(name);
  for (const auto& [word, expression] : fused.sizes) (void)names_.unique(word);
  for (const Inst& inst : fused.insts) {
    if (inst.kind == InstKind::constant)
      ids_.push_back(inst.code);
    else if (inst.kind == InstKind::leaf)
      ids_.push_back(names_.unique(fused.names.at(inst.name) + "_value"));
    else
      ids_.push_back(names_.unique(inst.name));
  }
}

std::string Code::use(int inst) const {
  const Inst& i = fused_.insts[size_t(inst)];
  bool array = index_rows_ && i.level == Level::row && i.kind != InstKind::constant;
  return array ? id(inst) + "[v]" : id(inst);
}

std::string Code::expression(int inst) const {
  const Inst& i = fused_.insts[size_t(inst)];
  std::string out;
  for (size_t at = 0; at < i.code.size(); ++at) {
    if (i.code[at] != '{') {
      out += i.code[at];
      continue;
    }
    size_t close = i.code.find('}', at);
    out += use(i.inputs.at(std::stoul(i.code.substr(at + 1, close - at - 1))));
    at = close;
  }
  return out;
}

std::string Code::statement(int inst) const {
  const Inst& i = fused_.insts[size_t(inst)];
  return fmt::format("const {} {} = {};\n", i.boolean ? "bool" : value_type(i), id(inst),
                     expression(inst));
}

std::vector<int> Code::needed(const std::vector<int>& targets,
                              const std::function<bool(const Inst&)>& wanted,
                              const std::set<int>& known) const {
  std::set<int> found;
  std::vector<int> work = targets;
  while (!work.empty()) {
    int inst = work.back();
    work.pop_back();
    const Inst& i = fused_.insts[size_t(inst)];
    if (!wanted(i) || !found.insert(inst).second || known.count(inst) != 0) continue;
    work.insert(work.end(), i.inputs.begin(), i.inputs.end());
  }
  return {found.begin(), found.end()};
}

const char* value_type(const Inst& inst) {
  return inst.integer ? "int64_t" : "float";
}

bool varies(const Fused& fused, const Operand& operand) {
  return std::any_of(operand.axes.begin(), operand.axes.end(),
                     [&](int axis) { return axis >= 0 && fused.axes[size_t(axis)].reduced; });
}

std::string type_of(const Operand& operand) {
  return device_type(operand.dtype);
}

std::vector<Parameter> parameters(const Fused& fused) {
  std::vector<Parameter> list;
  std::set<std::string> seen;
  auto add = [&](const Operand& operand, bool output) {
    if (operand.counts) return;
    if (!seen.insert(operand.tensor).second) return;
    const std::string& name = fused.names.at(operand.tensor);
    const bool both = in_place(fused, operand.tensor);
    list.push_back(
        {.tensor = operand.tensor,
         .name = name,
         .declaration = fmt::format("{}{}*{} {}", type_of(operand), output || both ? "" : " const",
                                    both ? "" : " __restrict__", name)});
  };
  for (const Operand& operand : fused.inputs) add(operand, false);
  for (const FusedOutput& output : fused.outputs) add(output.operand, true);
  return list;
}

bool in_place(const Fused& fused, const std::string& tensor) {
  return std::any_of(fused.inputs.begin(), fused.inputs.end(),
                     [&](const Operand& o) { return !o.counts && o.tensor == tensor; }) &&
         std::any_of(fused.outputs.begin(), fused.outputs.end(),
                     [&](const FusedOutput& o) { return o.operand.tensor == tensor; });
}

std::string size_declarations(const Fused& fused) {
  std::string out;
  for (const auto& [word, expression] : fused.sizes) out += ", int64_t " + word;
  return out;
}

void add_sizes(Json& args, const Fused& fused) {
  for (const auto& [word, expression] : fused.sizes) args.push_back({{"i64", expression}});
}

std::string title(const Task& task, const Fused& fused) {
  std::vector<std::string> words;
  for (const Node& node : task.graph.nodes) {
    if (words.size() == 8) {
      words.push_back("...");
      break;
    }
    words.push_back(base_name(node.op));
  }
  std::vector<std::string> outs;
  outs.reserve(fused.outputs.size());
  for (const FusedOutput& output : fused.outputs) outs.push_back(output.operand.tensor);
  return sanitize(fmt::format("{}: {}", join(outs, ", "), join(words, ", ")), 90);
}

bool computes_functions(const Fused& fused) {
  constexpr std::array<std::string_view, 10> kFunctions{
      "fast_exp", "expf(", "tanh",     "gelu",  "mish",
      "sigmoid",  "silu",  "softplus", "erff(", "logits_loss"};
  return std::any_of(fused.insts.begin(), fused.insts.end(), [&](const Inst& inst) {
    return inst.kind == InstKind::pointwise &&
           std::any_of(kFunctions.begin(), kFunctions.end(),
                       [&](std::string_view f) { return inst.code.find(f) != std::string::npos; });
  });
}

std::string store_of(WriteMode mode) {
  switch (mode) {
    case WriteMode::store:
      return "store_at";
    case WriteMode::add:
      return "add_at";
    case WriteMode::multiply:
      return "merge_at<cutegen::Multiplied>";
    case WriteMode::largest:
      return "merge_at<cutegen::Most>";
    case WriteMode::smallest:
      return "merge_at<cutegen::Least>";
  }
  return "";
}

}  // namespace cutegen::recipes
