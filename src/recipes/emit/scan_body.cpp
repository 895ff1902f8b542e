// SPDX-License-Identifier: Apache-2.0
#include "recipes/emit/scan_body.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "recipes/text/parameter.h"

namespace cutegen::recipes {
namespace {

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
    case ScanKind::log_sum:
      return "cutegen::LogSum";
    case ScanKind::max_place:
      return "cutegen::LargestPlace";
    case ScanKind::min_place:
      return "cutegen::SmallestPlace";
    case ScanKind::integer_sum:
      return "cutegen::AddIntegers";
    case ScanKind::integer_product:
      return "cutegen::MultiplyIntegers";
    case ScanKind::integer_max:
      return "cutegen::LargestInteger";
    case ScanKind::integer_min:
      return "cutegen::SmallestInteger";
  }
  return "";
}

// Begins a loop over the elements of a vector, in the direction of the scan.
std::string each_element(bool backwards) {
  if (!backwards) return "CUTE_UNROLL\nfor (int v = 0; v < kVector; ++v) {\n";
  return "CUTE_UNROLL\nfor (int n = 0; n < kVector; ++n) {\n  const int v = kVector - 1 - n;\n";
}

// Declares an operand that is the same for the whole row: a number, or one for each column, which
// `loads` reads.
std::string row_value(const Inst& inst, const std::string& id, const std::string& tensor,
                      const std::string* loads) {
  const char* type = value_type(inst);
  if (loads) return fmt::format("{} {}_row[kVector];\n{}", type, tensor, *loads);
  return fmt::format("const {0} {1} = cutegen::convert<{0}>({2}(0, 0));\n", type, id, tensor);
}

// Writes the scan of a tile. `room` names the shared memory in which threads exchange totals.
std::string scan_tile(const Scanned& scan, bool row, const std::string& room) {
  return fmt::format("cutegen::scan_{}<{}, {}, {}>({}, {}, {});\n", row ? "row" : "column",
                     scan.operation, row ? "kWidth" : "kRows, kColumns", scan.scan.exclusive,
                     scan.values, scan.carry, room);
}

std::vector<int> results_of(const Fused& fused) {
  std::vector<int> list;
  list.reserve(fused.outputs.size());
  for (const FusedOutput& output : fused.outputs) list.push_back(output.inst);
  return list;
}

}  // namespace

ScanBody::ScanBody(const Fused& fused, const Json& params, const Nest& nest, Code& code)
    : fused_(fused), params_(params), nest_(nest), code_(code) {
  used_ = code_.needed(results_of(fused), [](const Inst&) { return true; });
  for (int inst : used_) {
    if (at(inst).kind != InstKind::scan) continue;
    const std::string& id = code_.id(inst);
    scans_.push_back({.inst = inst,
                      .scan = at(inst).scan,
                      .values = code_.word(id + "_tile"),
                      .carry = code_.word(id + "_carry"),
                      .operation = operation_of(at(inst).scan.kind)});
    if (split()) totals_.push_back(code_.word(id + "_totals"));
  }
  for (const Operand& operand : fused.inputs)
    inputs_.push_back(code_.word("g_" + fused.names.at(operand.tensor)));
  for (const FusedOutput& output : fused.outputs)
    outputs_.push_back(code_.word("g_" + fused.names.at(output.operand.tensor)));
}

bool ScanBody::exchanges() const {
  return row() ? int_param(params_, "width") > 32
               : int_param(params_, "threads") > int_param(params_, "columns");
}

std::string ScanBody::shared() const {
  if (!exchanges()) return "";
  const char* type = wide() ? "uint64_t" : "float";
  return fmt::format("  __shared__ {} shared[2][{}][{}];  // of neighbouring tiles", type,
                     scans_.size(), row() ? "32" : "kThreads * kVector");
}

bool ScanBody::wide() const {
  return std::any_of(scans_.begin(), scans_.end(),
                     [&](const Scanned& scan) { return scan.scan.wide(); });
}

std::string ScanBody::room(const std::string& turn, size_t number) const {
  if (!exchanges()) return "nullptr";
  const std::string place = fmt::format("shared[{}][{}]", turn, number);
  if (!wide()) return place;
  return fmt::format("reinterpret_cast<{}*>({})", scans_[number].type(), place);
}

// Writes the statements that compute `targets` for one element from the results of the scans.
std::string ScanBody::elements(const std::vector<int>& targets) const {
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
      const std::string running = scan->values + element();
      text += i.scan.wide() ? fmt::format("const {} {} = {}::result({});\n", value_type(i), id,
                                          scan->operation, running)
                            : fmt::format("const float {} = {};\n", id, running);
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

// Declares the carries and the values that a whole row shares.
std::string ScanBody::begin(bool last) const {
  std::string text;
  for (int inst : used_)
    if (const Inst& i = at(inst); i.kind == InstKind::leaf && i.level == Level::row)
      text += row_value(i, code_.id(inst), inputs_[size_t(i.operand)],
                        row() ? nullptr : &row_loads_.at(inst));
  for (size_t i = 0; i < scans_.size(); ++i) {
    const Scanned& scan = scans_[i];
    const bool after_parts = last && split();
    if (row()) {
      text += fmt::format("{} {} = {};\n", scan.type(), scan.carry,
                          after_parts
                              ? fmt::format("cutegen::carry_of_warp<{}>({} + row, size(across), "
                                            "int(part))",
                                            scan.operation, totals_[i])
                              : scan.operation + "::neutral()");
      continue;
    }
    text += fmt::format("{} {}[kVector];\n", scan.type(), scan.carry);
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

// Reads a tile and computes the operands of the scans.
std::string ScanBody::gather() const {
  std::string neutral, values;
  std::vector<int> targets;
  for (const Scanned& scan : scans_) {
    const int input = at(scan.inst).inputs[0];
    targets.push_back(input);
    neutral += fmt::format("{}{} = {}::neutral();\n", scan.values, element(), scan.operation);
    std::string value = code_.use(input);
    if (scan.scan.wide())
      value = fmt::format("{}::from({}, {}{})", scan.operation, value, place(),
                          row() ? " * kVector + v" : "");
    values += fmt::format("{}{} = {};\n", scan.values, element(), value);
  }
  return each_element(backwards()) + indent(neutral, 2) + "\n}\nif (j < last) {\n" +
         indent(each_element(backwards()) + indent(elements(targets) + values, 2) + "\n}", 2) +
         "\n}\n";
}

std::string ScanBody::write() const {
  std::string registers, results, stores;
  std::vector<int> targets;
  for (size_t i = 0; i < fused_.outputs.size(); ++i) {
    const int inst = targets.emplace_back(fused_.outputs[i].inst);
    const std::string name = "r_" + outputs_[i].substr(2);
    registers += fmt::format("{} {}[kVector];\n", value_type(at(inst)), name);
    results += fmt::format("{}[v] = {};\n", name, code_.use(inst));
    stores += fmt::format("cutegen::store({}, {}(_, {}));\n", name, outputs_[i], place());
  }
  return registers + each_element(backwards()) + indent(elements(targets) + results, 2) + "\n}\n" +
         stores;
}

// Writes the loop over the tiles. If `last` is false, the loop computes only the total of the CTA's
// part.
std::string ScanBody::text(bool last) const {
  const std::string number = row() ? "start + i * kWidth + lane" : "start + team * kItems + i";
  const std::string step = row() ? "kWidth * kItems" : "kRows * kItems";
  const std::string at =
      fmt::format("const Index j = {}{};\n", number, reversed() ? ", at = steps - 1 - j" : "");
  const std::string items =
      "CUTE_UNROLL\nfor (int i = 0; i < kItems; ++i) {\n" + indent(at, 2) + "\n";
  std::string tile = "Elements e[kItems];\n";
  for (const Scanned& scan : scans_)
    tile += fmt::format("{} {}[kItems][kVector];\n", scan.type(), scan.values);
  tile += items + fmt::format("  if (j < last) e[i] = read({});\n}}\n", place());
  tile += items + indent(gather(), 2) + "\n}\n";
  for (size_t i = 0; i < scans_.size(); ++i) tile += scan_tile(scans_[i], row(), room("turn", i));
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

}  // namespace cutegen::recipes
