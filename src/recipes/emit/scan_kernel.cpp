// SPDX-License-Identifier: Apache-2.0
#include "recipes/emit/scan_kernel.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/text.h"
#include "recipes/text/parameter.h"

namespace cutegen::recipes {
namespace {

constexpr int64_t kMostNarrow = 2'000'000'000;  // elements of a row that 32-bit indices can count

const char* operation_of(ScanKind kind) {
  switch (kind) {
    case ScanKind::sum:
      return "cutegen::Add";
    case ScanKind::product:
      return "cutegen::Multiply";
    case ScanKind::max:
      return "cutegen::Largest";
    case ScanKind::min:
      return "cutegen::Smallest";
  }
  return "";
}

}  // namespace

ScanKernel::ScanKernel(const Task& task, const Fused& fused, const Json& params, const Label& label)
    : fused_(fused),
      params_(params),
      label_(label),
      nest_(make_nest(fused)),
      code_(fused),
      tensors_(fused, nest_, code_) {
  std::vector<int> targets;
  for (const FusedOutput& output : fused.outputs) targets.push_back(output.inst);
  used_ = code_.needed(targets, [](const Inst&) { return true; });
  for (int inst : used_) {
    if (at(inst).kind != InstKind::scan) continue;
    const std::string& id = code_.id(inst);
    scans_.push_back({.inst = inst,
                      .values = code_.word(id + "_tile"),
                      .carry = code_.word(id + "_carry"),
                      .operation = operation_of(at(inst).scan.kind)});
    if (split()) totals_.push_back(code_.word(id + "_totals"));
  }
  for (const Operand& operand : fused.inputs)
    inputs_.push_back(code_.word("g_" + fused.names.at(operand.tensor)));
  std::string members;
  for (int inst : used_) {
    const Inst& i = at(inst);
    if (i.kind != InstKind::leaf) continue;
    const std::string& name = inputs_[size_t(i.operand)];
    views_ +=
        fmt::format("Tensor {} = {};\n", name, tensors_.view(fused.inputs[size_t(i.operand)]));
    if (i.level == Level::element) {
      members += fmt::format("{} {}[kVector];\n", value_type(i), name.substr(2));
      loads_ += fmt::format("cutegen::load({}(_, j), e.{});\n", name, name.substr(2));
    } else if (row()) {
      rows_ += fmt::format("const {0} {1} = cutegen::convert<{0}>({2}(0, 0));\n", value_type(i),
                           code_.id(inst), name);
    } else {
      rows_ += fmt::format("{} {}_row[kVector];\ncutegen::load({}(_, 0), {}_row);\n", value_type(i),
                           name, name, name);
    }
  }
  for (const FusedOutput& output : fused.outputs) {
    const std::string& word = fused.names.at(output.operand.tensor);
    const std::string name = code_.word("g_" + word);
    results_ += fmt::format("Tensor {} = {};\n", name, tensors_.view(output.operand));
    registers_.push_back(name);
  }
  if (split()) add_kernel(label_("totals"), false);
  add_kernel(label_("scan"), true);
  std::map<std::string, std::string> t;
  t["title"] = title(task, fused);
  t["note"] = split() ? "// Several CTAs share a row. The kernel `totals` comes first and writes "
                        "the total of each part.\n"
                      : "";
  t["macro"] = label_("VECTOR");
  t["index"] = nest_.length() > kMostNarrow ? "int64_t" : "int";
  t["threads"] = params.at("threads").dump();
  t[row() ? "width" : "columns"] = params.at(row() ? "width" : "columns").dump();
  t["items"] = params.at("items").dump();
  t["elements"] = indent(members, 2);
  t["kernels"] = kernels_;
  source_ = fill(row() ? "kernels/scan/row.cu" : "kernels/scan/column.cu", t);
}

bool ScanKernel::split() const {
  return int_param(params_, "parts") > 1;
}

bool ScanKernel::exchanges() const {
  return row() ? int_param(params_, "width") > 32
               : int_param(params_, "threads") > int_param(params_, "columns");
}

std::string ScanKernel::shared() const {
  if (!exchanges()) return "";
  return fmt::format("  __shared__ float shared[2][{}][{}];  // of neighbouring tiles",
                     scans_.size(), row() ? "32" : "kThreads * kVector");
}

// Where the threads exchange the totals of a scan.
std::string ScanKernel::room(const std::string& turn, size_t scan) const {
  return exchanges() ? fmt::format("shared[{}][{}]", turn, scan) : "nullptr";
}

// Declares the steps of this CTA, counted in the direction of the scan.
std::string ScanKernel::range() const {
  if (!split()) return "  const Index first = 0, last = steps;";
  return "  // A CTA takes neighbouring steps.\n"
         "  const Index share = (steps + parts - 1) / parts;\n"
         "  const Index first = Index(part) * share < steps ? Index(part) * share : steps;\n"
         "  const Index last = first + share < steps ? first + share : steps;";
}

// Writes what `targets` need of one element: before the scans, or after them.
std::string ScanKernel::elements(const std::vector<int>& targets, bool after) const {
  const auto wanted = [&](const Inst& i) {
    const bool row_leaf = i.kind == InstKind::leaf && i.level == Level::row && row();
    return !row_leaf && i.kind != InstKind::constant;
  };
  std::set<int> known;
  for (const Scanned& scan : scans_) known.insert(scan.inst);
  std::string text;
  for (int inst : code_.needed(targets, wanted, known)) {
    const Inst& i = at(inst);
    const std::string& id = code_.id(inst);
    if (i.kind == InstKind::scan) {
      const auto scan = std::find_if(scans_.begin(), scans_.end(),
                                     [&](const Scanned& s) { return s.inst == inst; });
      CG_ASSERT(after);
      text += fmt::format("const float {} = {}{};\n", id, scan->values, element());
    } else if (i.kind == InstKind::leaf) {
      const std::string& name = inputs_[size_t(i.operand)];
      text += fmt::format("const {} {} = {}[v];\n", value_type(i), id,
                          i.level == Level::row ? name + "_row" : "e[i]." + name.substr(2));
    } else if (i.kind == InstKind::position) {
      text += fmt::format("const int64_t {} = {}{};\n", id, place(), row() ? " * kVector + v" : "");
    } else {
      text += code_.statement(inst);
    }
  }
  return text;
}

// Declares the carries and what is the same for the whole row.
std::string ScanKernel::begin(bool last) const {
  std::string text = rows_;
  for (size_t i = 0; i < scans_.size(); ++i) {
    const Scanned& scan = scans_[i];
    const bool after_parts = last && split();
    if (row()) {
      text += fmt::format("float {} = {};\n", scan.carry,
                          after_parts
                              ? fmt::format("cutegen::carry_of_warp<{}>({} + row, size(across), "
                                            "int(part))",
                                            scan.operation, totals_[i])
                              : scan.operation + "::neutral()");
      continue;
    }
    text += fmt::format("float {}[kVector];\n", scan.carry);
    if (after_parts)
      text += fmt::format(
          "cutegen::carry_of_columns<{}, kRows, kColumns>({}, {} + column * kVector,\n"
          "    size(across) * kVector, int(part), {});\n",
          scan.operation, scan.carry, totals_[i], room("1", i));
    else
      text += fmt::format("CUTE_UNROLL\nfor (int v = 0; v < kVector; ++v) {}[v] = {}::neutral();\n",
                          scan.carry, scan.operation);
  }
  if (exchanges()) text += "int turn = 0;\n";
  return text;
}

// Begins a loop over the elements of a vector, in the direction of the scan.
std::string ScanKernel::each() const {
  if (!row() || !reversed()) return "CUTE_UNROLL\nfor (int v = 0; v < kVector; ++v) {\n";
  return "CUTE_UNROLL\nfor (int n = 0; n < kVector; ++n) {\n  const int v = kVector - 1 - n;\n";
}

// Reads a tile and computes what the scans add up.
std::string ScanKernel::gather() const {
  std::string neutral, values;
  std::vector<int> targets;
  for (const Scanned& scan : scans_) {
    const int input = at(scan.inst).inputs[0];
    targets.push_back(input);
    neutral += fmt::format("{}{} = {}::neutral();\n", scan.values, element(), scan.operation);
    values += fmt::format("{}{} = {};\n", scan.values, element(), code_.use(input));
  }
  return each() + indent(neutral, 2) + "\n}\nif (j < last) {\n" +
         indent(each() + indent(elements(targets, false) + values, 2) + "\n}", 2) + "\n}\n";
}

std::string ScanKernel::combine(const Scanned& scan, size_t number) const {
  const std::string exclusive = at(scan.inst).scan.exclusive ? "true" : "false";
  return fmt::format("cutegen::scan_{}<{}, {}, {}>({}, {}, {});\n", row() ? "row" : "column",
                     scan.operation, row() ? "kWidth" : "kRows, kColumns", exclusive, scan.values,
                     scan.carry, room("turn", number));
}

std::string ScanKernel::write() const {
  std::string registers, results, stores;
  std::vector<int> targets;
  for (size_t i = 0; i < fused_.outputs.size(); ++i) {
    const FusedOutput& output = fused_.outputs[i];
    const std::string name = "r_" + registers_[i].substr(2);
    targets.push_back(output.inst);
    registers += fmt::format("{} {}[kVector];\n", value_type(at(output.inst)), name);
    results += fmt::format("{}[v] = {};\n", name, code_.use(output.inst));
    stores += fmt::format("cutegen::store({}, {}(_, {}));\n", name, registers_[i], place());
  }
  return registers + each() + indent(elements(targets, true) + results, 2) + "\n}\n" + stores;
}

// The loop over the tiles. Without `last`, only the total of the part is wanted.
std::string ScanKernel::body(bool last) const {
  const std::string number = row() ? "start + i * kWidth + lane" : "start + team * kItems + i";
  const std::string step = row() ? "kWidth * kItems" : "kRows * kItems";
  const std::string at =
      fmt::format("const Index j = {}{};\n", number, reversed() ? ", at = steps - 1 - j" : "");
  const std::string items =
      "CUTE_UNROLL\nfor (int i = 0; i < kItems; ++i) {\n" + indent(at, 2) + "\n";
  std::string tile = "Elements e[kItems];\n";
  for (const Scanned& scan : scans_)
    tile += fmt::format("float {}[kItems][kVector];\n", scan.values);
  tile += items + fmt::format("  if (j < last) e[i] = read({});\n}}\n", place());
  tile += items + indent(gather(), 2) + "\n}\n";
  for (size_t i = 0; i < scans_.size(); ++i) tile += combine(scans_[i], i);
  if (exchanges()) tile += "turn ^= 1;\n";
  if (last) tile += items + "  if (j >= last || !live) continue;\n" + indent(write(), 2) + "\n}\n";
  std::string text =
      begin(last) + fmt::format("for (Index start = first; start < last; start += {}) {{\n", step) +
      indent(tile, 2) + "\n}\n";
  if (last) return text;
  for (size_t i = 0; i < scans_.size(); ++i)
    text +=
        row()
            ? fmt::format("if (live && lane == 0) {}[part * size(across) + row] = {};\n",
                          totals_[i], scans_[i].carry)
            : fmt::format(
                  "if (live && team == 0) {{\n  CUTE_UNROLL\n  for (int v = 0; v < kVector; ++v)\n"
                  "    {}[(part * size(across) + column) * kVector + v] = {}[v];\n}}\n",
                  totals_[i], scans_[i].carry);
  return text;
}

void ScanKernel::add_kernel(const std::string& name, bool last) {
  std::vector<std::string> declarations, sizes;
  for (const Parameter& p : parameters(fused_)) declarations.push_back(p.declaration);
  for (const std::string& totals : totals_)
    declarations.push_back(fmt::format("float{}* __restrict__ {}", last ? " const" : "", totals));
  for (size_t i = 0; i < nest_.kept.size(); ++i) sizes.push_back(fmt::format("int64_t k{}", i));
  sizes.emplace_back("int64_t r0");
  for (const auto& [word, expression] : strides()) sizes.push_back("int64_t " + word);
  if (split()) sizes.emplace_back("int64_t parts");
  std::map<std::string, std::string> t;
  t["name"] = name;
  t["params"] = join(declarations, ", ");
  t["sizes"] = join(sizes, ", ") + size_declarations(fused_);
  t["along"] = shape_text(nest_.reduced, 'r', row());
  t["across"] = shape_text(nest_.kept, 'k', !row());
  t["block"] = split() ? "blockIdx.x / parts" : "blockIdx.x";
  t["turn"] = split() ? "  const int64_t part = blockIdx.x % parts;\n" : "";
  t["shared"] = shared();
  t["tensors"] = indent(views_ + (last ? results_ : ""), 2);
  t["range"] = range();
  t["loads"] = indent(loads_, 4);
  t["body"] = indent(body(last), 2);
  const std::string text =
      fill(row() ? "kernels/scan/row_kernel.cu" : "kernels/scan/column_kernel.cu", t);
  if (!kernels_.empty()) kernels_ += "\n";
  kernels_ += text.substr(text.find('\n') + 1);  // without the licence line, which the file has
  launches_.push_back(name);
}

}  // namespace cutegen::recipes
