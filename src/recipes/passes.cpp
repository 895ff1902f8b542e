// SPDX-License-Identifier: Apache-2.0
#include "recipes/passes.h"

#include <fmt/format.h>

#include <algorithm>

namespace cutegen::recipes {
namespace {

const char* accumulator_type(ReduceKind kind) {
  switch (kind) {
    case ReduceKind::sum:
      return "Sum";
    case ReduceKind::product:
      return "Product";
    case ReduceKind::max:
      return "Max";
    case ReduceKind::min:
      return "Min";
  }
  return "";
}

const char* verb(ReduceKind kind) {
  switch (kind) {
    case ReduceKind::sum:
      return "the sum of";
    case ReduceKind::product:
      return "the product of";
    case ReduceKind::max:
      return "the maximum of";
    case ReduceKind::min:
      return "the minimum of";
  }
  return "";
}

bool contains(const std::vector<int>& list, int value) {
  return std::find(list.begin(), list.end(), value) != list.end();
}

// exp(x - m) written as one or two instructions: x and m.
std::optional<std::pair<int, int>> exponent_of_difference(const Fused& fused, int inst) {
  const Inst& exp = fused.insts[static_cast<size_t>(inst)];
  if (exp.kind != InstKind::pointwise || exp.code != "expf({0})") return std::nullopt;
  const Inst& difference = fused.insts[static_cast<size_t>(exp.inputs[0])];
  if (difference.kind != InstKind::pointwise || difference.code != "{0} - {1}" ||
      difference.inputs.size() != 2)
    return std::nullopt;
  return std::pair{difference.inputs[0], difference.inputs[1]};
}

}  // namespace

std::optional<MaxAndSum> find_max_and_sum(const Fused& fused) {
  for (size_t i = 0; i < fused.insts.size(); ++i) {
    const Inst& sum = fused.insts[i];
    if (sum.kind != InstKind::reduction || sum.reduce != ReduceKind::sum) continue;
    auto difference = exponent_of_difference(fused, sum.inputs[0]);
    if (!difference) continue;
    const Inst& max = fused.insts[static_cast<size_t>(difference->second)];
    if (max.kind == InstKind::reduction && max.reduce == ReduceKind::max &&
        max.inputs[0] == difference->first)
      return MaxAndSum{difference->second, static_cast<int>(i)};
  }
  return std::nullopt;
}

Passes::Passes(const Fused& fused, Code& code, PassOptions options)
    : fused_(fused), code_(code), options_(options) {
  if (options.online) pair_ = find_max_and_sum(fused);
  code_.index_rows(options.column);
  std::vector<int> results;
  for (const FusedOutput& output : fused.outputs) results.push_back(output.inst);
  used_ = code_.needed(results, [](const Inst&) { return true; });
  for (const Operand& operand : fused.inputs)
    inputs_.push_back(code_.word("g_" + fused.names.at(operand.tensor)));
  for (const FusedOutput& output : fused.outputs)
    outputs_.push_back(code_.word("g_" + fused.names.at(output.operand.tensor)));
}

std::vector<int> Passes::operands(Level level) const {
  std::vector<int> list;
  for (int inst : used_)
    if (at(inst).kind == InstKind::leaf && at(inst).level == level)
      list.push_back(at(inst).operand);
  return list;
}

int Passes::words() const {
  if (pair_) return 3;
  for (int inst : used_)
    if (at(inst).kind == InstKind::reduction && at(inst).reduce == ReduceKind::sum) return 2;
  return 1;
}

// With a pair, the sum is known after the pass that finds the maximum, and so is what follows it.
int Passes::depth_of(int inst) const {
  if (pair_ && inst == pair_->sum) return at(pair_->max).depth;
  if (at(inst).kind == InstKind::reduction) {
    int depth = 0;
    std::vector<int> work = at(inst).inputs;
    while (!work.empty()) {
      int next = work.back();
      work.pop_back();
      if (at(next).kind == InstKind::reduction)
        depth = std::max(depth, depth_of(next));
      else
        work.insert(work.end(), at(next).inputs.begin(), at(next).inputs.end());
    }
    return depth + 1;
  }
  int depth = 0;
  for (int input : at(inst).inputs) depth = std::max(depth, depth_of(input));
  return depth;
}

std::string Passes::loop(const std::string& body) const {
  const char* start = options_.column ? "team" : "lane";
  const char* step = options_.column ? "kRows" : "kWidth";
  if (options_.cached)
    return fmt::format(
        "CUTE_UNROLL\n"
        "for (int i = 0; i < kItems; ++i) {{\n"
        "  const int64_t j = {} + i * {};\n"
        "  if (j < steps) {{\n"
        "    const Elements& e = cache[i];\n{}\n  }}\n}}\n",
        start, step, indent(body, 4));
  return fmt::format(
      "#pragma unroll kUnroll\n"
      "for (int64_t j = {}; j < steps; j += {}) {{\n"
      "  const Elements e = read(j);\n{}\n}}\n",
      start, step, indent(body, 2));
}

// Statements for the element values that `targets` need, at element v of the vector.
std::string Passes::elements(const std::vector<int>& targets) {
  std::string text;
  for (int inst : code_.needed(targets, [](const Inst& i) { return i.level == Level::element; })) {
    if (at(inst).kind == InstKind::leaf)
      text += fmt::format("const float {} = e.{}[v];\n", code_.id(inst),
                          inputs_[static_cast<size_t>(at(inst).operand)].substr(2));
    else
      text += code_.statement(inst);
  }
  return text;
}

// Row values of `depth` that are not reductions: once a row, or for each column.
std::string Passes::row_values(int depth) {
  std::string text;
  for (int inst : used_) {
    const Inst& i = at(inst);
    if (i.level != Level::row || i.kind != InstKind::pointwise || depth_of(inst) != depth ||
        contains(done_, inst))
      continue;
    done_.push_back(inst);
    if (!options_.column)
      text += code_.statement(inst);
    else
      text += fmt::format(
          "float {}[kVector];\nCUTE_UNROLL\nfor (int v = 0; v < kVector; ++v) {} = {};\n",
          code_.id(inst), code_.use(inst), code_.expression(inst));
  }
  return text;
}

std::string Passes::combine(int inst, const std::string& type, const std::string& accumulator) {
  bool pair = type == "MaxSumExp";
  auto value = [&](const std::string& from, bool sum) {
    return pair ? fmt::format("{}.{}.value()", from, sum ? "sum" : "max") : from + ".value()";
  };
  if (!options_.column) {
    std::string text = fmt::format("cutegen::combine_row<kWidth>({}, shared);\n", accumulator);
    text += fmt::format("const float {} = {};\n", code_.id(inst), value(accumulator, false));
    if (pair)
      text += fmt::format("const float {} = {};\n", code_.id(pair_->sum), value(accumulator, true));
    return text;
  }
  std::string from = accumulator + "[v]";
  std::string text = fmt::format("float {}[kVector];\n", code_.id(inst));
  if (pair) text += fmt::format("float {}[kVector];\n", code_.id(pair_->sum));
  text += "CUTE_UNROLL\nfor (int v = 0; v < kVector; ++v) {\n";
  text += fmt::format("  cutegen::combine_column<kColumns, kRows>({}, shared);\n", from);
  text += fmt::format("  {} = {};\n", code_.use(inst), value(from, false));
  if (pair) text += fmt::format("  {} = {};\n", code_.use(pair_->sum), value(from, true));
  return text + "}\n";
}

std::string Passes::pass(int depth) {
  std::vector<int> reductions, targets;
  for (int inst : used_)
    if (at(inst).kind == InstKind::reduction && depth_of(inst) == depth &&
        !(pair_ && inst == pair_->sum)) {
      reductions.push_back(inst);
      targets.push_back(at(inst).inputs[0]);
    }
  if (reductions.empty()) return "";
  std::string comment, declarations, adds, ends;
  for (int inst : reductions) {
    const Inst& i = at(inst);
    bool pair = pair_ && pair_->max == inst;
    std::string type = pair ? "MaxSumExp" : accumulator_type(i.reduce);
    std::string accumulator = code_.word(code_.id(inst) + "_part");
    const std::string& input = code_.id(i.inputs[0]);
    comment += fmt::format("{}{} {}", comment.empty() ? "" : ", ", verb(i.reduce), input);
    if (pair) comment += ", and of its exponentials below that";
    const char* each = options_.column ? "[kVector]" : "";
    declarations += fmt::format("cutegen::{} {}{};\n", type, accumulator, each);
    adds += fmt::format("{}{}.add({});\n", accumulator, options_.column ? "[v]" : "",
                        code_.use(i.inputs[0]));
    ends += combine(inst, type, accumulator);
  }
  std::string body = "CUTE_UNROLL\nfor (int v = 0; v < kVector; ++v) {\n" +
                     indent(elements(targets) + adds, 2) + "\n}";
  return fmt::format("\n// Pass {}: {}.\n", depth, comment) + declarations + loop(body) + ends;
}

std::string Passes::outputs() {
  std::string rows, results, loops, stores;
  std::vector<int> targets;
  for (size_t i = 0; i < fused_.outputs.size(); ++i) {
    const FusedOutput& output = fused_.outputs[i];
    bool varies = false;  // along the reduced axis
    for (int axis : output.operand.axes)
      varies |= axis >= 0 && fused_.axes[static_cast<size_t>(axis)].reduced;
    std::string registers = code_.word("r_" + fused_.names.at(output.operand.tensor));
    if (varies) {
      targets.push_back(output.inst);
      results += fmt::format("float {}[kVector];\n", registers);
      loops += fmt::format("{}[v] = {};\n", registers, code_.use(output.inst));
      stores += fmt::format("if (live) cutegen::store({}, {}(_, j));\n", registers, outputs_[i]);
    } else if (options_.column) {
      std::string from = code_.id(output.inst);
      if (at(output.inst).kind == InstKind::constant) {
        rows += fmt::format(
            "  float {}[kVector];\n  CUTE_UNROLL\n  for (int v = 0; v < kVector; ++v) {}[v] = "
            "{};\n",
            registers, registers, from);
        from = registers;
      }
      rows += fmt::format("  cutegen::store({}, {}(_, 0));\n", from, outputs_[i]);
    } else {
      rows += fmt::format("  {}(0, 0) = cutegen::from_float<{}>({});\n", outputs_[i],
                          type_of(output.operand), code_.use(output.inst));
    }
  }
  std::string text;
  if (!rows.empty())
    text +=
        fmt::format("\nif (live && {} == 0) {{\n{}}}\n", options_.column ? "team" : "lane", rows);
  if (targets.empty()) return text;
  std::string body = results + "CUTE_UNROLL\nfor (int v = 0; v < kVector; ++v) {\n" +
                     indent(elements(targets) + loops, 2) + "\n}\n" + stores;
  return text + "\n// The results along the row.\n" + loop(body);
}

std::string Passes::text() {
  std::string text;
  for (int inst : used_) {
    const Inst& i = at(inst);
    if (i.kind != InstKind::leaf || i.level != Level::row) continue;
    const std::string& tensor = inputs_[static_cast<size_t>(i.operand)];
    if (options_.column)
      text += fmt::format("float {0}[kVector];\ncutegen::load({1}(_, 0), {0});\n", code_.id(inst),
                          tensor);
    else
      text +=
          fmt::format("const float {} = cutegen::to_float({}(0, 0));\n", code_.id(inst), tensor);
  }
  if (options_.cached)
    text += fmt::format(
        "Elements cache[kItems];\nCUTE_UNROLL\n"
        "for (int i = 0; i < kItems; ++i) {{\n"
        "  const int64_t j = {} + i * {};\n"
        "  if (j < steps) cache[i] = read(j);\n}}\n",
        options_.column ? "team" : "lane", options_.column ? "kRows" : "kWidth");
  text += row_values(0);
  for (int depth = 1; depth <= fused_.max_depth(); ++depth) {
    text += pass(depth);
    text += row_values(depth);
  }
  return text + outputs();
}

}  // namespace cutegen::recipes
