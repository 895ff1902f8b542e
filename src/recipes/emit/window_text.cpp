// SPDX-License-Identifier: Apache-2.0
#include "recipes/emit/window_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "base/text.h"
#include "recipes/nest/windowed.h"

namespace cutegen::recipes {
namespace {

bool transposed(const Fused& fused) {
  return fused.window->window.kind == WindowKind::transposed;
}

// Writes the numbers of the input, the result and the weights.
class Geometry {
 public:
  explicit Geometry(const Fused& fused)
      : fused_(fused), leaf_(*fused.window), window_(leaf_.window) {}

  Numbers write() {
    const Operand &in = leaf_.input, &w = leaf_.weight;
    numbers_.emplace_back("batches", size_text(fused_, in, 0));
    numbers_.emplace_back("in_n", stride_text(fused_, in, 0));
    numbers_.emplace_back("in_c", stride_text(fused_, in, 1));
    add_axes("in", "1", [&](size_t i) { return size_text(fused_, in, i + 2); });
    add_axes("in_s", "0", [&](size_t i) { return stride_text(fused_, in, i + 2); });
    add_axes("out", "1", [&](size_t i) { return fused_.axes[i + 2].extent; });
    if (window_.pools()) {
      numbers_.emplace_back("channels", size_text(fused_, in, 1));
      return std::move(numbers_);
    }
    numbers_.emplace_back("groups", groups_text(fused_));
    numbers_.emplace_back("in_of_group", in_of_group_text(fused_));
    numbers_.emplace_back("out_of_group", out_of_group_text(fused_));
    add_axes("kernel", "1", [&](size_t i) { return size_text(fused_, w, i + 2); });
    numbers_.emplace_back("weight_o", stride_text(fused_, w, 0));
    numbers_.emplace_back("weight_i", stride_text(fused_, w, 1));
    add_axes("weight", "0", [&](size_t i) { return stride_text(fused_, w, i + 2); });
    return std::move(numbers_);
  }

 private:
  void add_axes(const char* word, const std::string& missing,
                const std::function<std::string(size_t)>& text) {
    const size_t skipped = 3 - window_.rank();
    for (size_t i = 0; i < 3; ++i)
      numbers_.emplace_back(fmt::format("{}{}", word, i),
                            i < skipped ? missing : text(i - skipped));
  }

  const Fused& fused_;
  const WindowLeaf& leaf_;
  const Window& window_;
  Numbers numbers_;
};

// A Place with the values of its row.
constexpr const char* kPlaced =
    "struct Placed : Place {\n  Rows rows;\n};\n"
    "auto placed = [&](int x0, int x1, int x2, int row) {\n"
    "  const Place at = place(x0, x1, x2, row);\n"
    "  return Placed{at, rows_at(at)};\n};\n";

// Plain sums: a place has few channels, so errors hardly add up.
const char* accumulator_of(ReduceKind kind) {
  switch (kind) {
    case ReduceKind::sum:
      return "PlainSum";
    case ReduceKind::product:
      return "Product";
    case ReduceKind::max:
      return "Max";
    case ReduceKind::min:
      return "Min";
    case ReduceKind::argmax:
    case ReduceKind::argmin:
      break;
  }
  CG_ASSERT(false);
  return "";
}

}  // namespace

Numbers geometry(const Fused& fused) {
  return Geometry(fused).write();
}

int64_t out_of_group(const Fused& fused) {
  return fused.axes[1].size / std::max<int64_t>(1, fused.window->window.groups);
}

// The groups as a size: modules whose groups are their channels have others at other shapes. The
// groups of a transposed convolution decide its output channels, so they stay constant.
std::string groups_text(const Fused& fused) {
  const WindowLeaf& leaf = *fused.window;
  if (leaf.window.groups == 1 || leaf.window.kind == WindowKind::transposed)
    return std::to_string(leaf.window.groups);
  return fmt::format("({})/({})", size_text(fused, leaf.input, 1),
                     size_text(fused, leaf.weight, 1));
}

// The largest offset of an element inside an image.
std::string last_of_image(const Fused& fused) {
  const Operand& in = fused.window->input;
  std::string sum;
  for (size_t i = 1; i <= fused.window->window.rank() + 1; ++i)
    sum += fmt::format("{}(({})-1)*({})", i == 1 ? "" : "+", size_text(fused, in, i),
                       stride_text(fused, in, i));
  return sum;
}

// Kernels have three axes; the missing ones come first and have size 1.
int64_t padded(const Shape& list, size_t axis, int64_t missing) {
  const size_t skipped = 3 - list.size();
  return axis < skipped ? missing : list[axis - skipped];
}

std::string in_of_group_text(const Fused& fused) {
  const Operand& w = fused.window->weight;
  return transposed(fused) ? size_text(fused, w, 0) + "/(" + groups_text(fused) + ")"
                           : size_text(fused, w, 1);
}

std::string out_of_group_text(const Fused& fused) {
  const Operand& w = fused.window->weight;
  return transposed(fused) ? size_text(fused, w, 1)
                           : size_text(fused, w, 0) + "/(" + groups_text(fused) + ")";
}

std::string add_numbers(Json& args, const Numbers& numbers) {
  std::string text;
  for (const auto& [word, expression] : numbers) {
    args.push_back({{"i64", expression}});
    text += (text.empty() ? "       int64_t " : ", int64_t ") + word;
  }
  return text;
}

std::string fragment(const std::string& path, const std::map<std::string, std::string>& values) {
  const std::string text = fill(path, values);
  return text.substr(text.find('\n') + 1);
}

Tail::Tail(const Fused& fused, By by)
    : fused_(fused),
      leaf_(*fused.window),
      code_(fused),
      by_(by),
      pieces_(fused, code_),
      addresses_(fused, code_, by == By::place) {
  for (const char* word :
       {"window", "n",      "channel", "channel0", "p0",      "p1",      "p2",     "sums", "pixels",
        "at",     "c",      "left",    "more",     "read",    "nearest", "result", "rows", "conv",
        "Place",  "Placed", "placed",  "Rows",     "rows_at", "Reads",   "Results"})
    (void)code_.word(word);
  std::vector<int> results;
  for (const FusedOutput& output : fused.outputs) results.push_back(output.inst);
  for (int inst : code_.needed(results, [](const Inst&) { return true; }))
    if (inst != leaf_.inst && at(inst).kind == InstKind::leaf) leaves_.push_back(inst);
}

// Loads an operand for a piece at the current place.
std::string Tail::load(int inst, const std::string& word, const char* channel_of) {
  const Operand& o = operand(inst);
  return fmt::format("const {0} {1} = {2}cutegen::convert<{0}>({3}){4};\n", value_type(at(inst)),
                     word, differs(o) ? "at.inside ? " : "",
                     addresses_.element(o, name(o), channel_of),
                     differs(o) ? fmt::format(" : {}(0)", value_type(at(inst))) : "");
}

// Writes the struct `type` with the values of the row that piece `index` takes, and the function
// `rows_at` that reads or computes them at a place.
std::string Tail::rows_text(size_t index, const std::string& type, const std::string& rows_at) {
  const Piece &piece = pieces_.piece(index), &hoisted = pieces_.rows(index);
  std::string members, body;
  for (int inst : piece.rows) {
    members += fmt::format("  float {};\n", code_.id(inst));
    if (at(inst).kind == InstKind::reduction)
      body += fmt::format("  rows.{} = {};\n", code_.id(inst), pieces_.row_text(inst));
  }
  std::vector<std::string> leaves, results;
  for (int inst : hoisted.leaves) {
    leaves.push_back(code_.word("r_" + name(operand(inst))));
    body += "  " + load(inst, leaves.back(), "0");
  }
  for (int inst : hoisted.targets) results.push_back("rows." + code_.id(inst));
  if (!results.empty()) body += "  " + pieces_.call(hoisted, leaves, "", results);
  return fmt::format(
      "struct {0} {{\n{1}}};\nauto {2} = [&](Place const& at) {{\n  {0} rows;\n{3}"
      "  return rows;\n}};\n",
      type, members, rows_at, body);
}

std::string Tail::placed() {
  if (!fused_.reduces() || pieces_.by_row()) return "";
  return rows_text(pieces_.reductions().size(), "Rows", "rows_at") + kPlaced;
}

std::string Tail::passes() {
  std::string text;
  for (size_t i = 0; i < pieces_.reductions().size(); ++i) text += pass(i);
  return text;
}

std::string Tail::pass(size_t index) {
  const int reduction = pieces_.reductions()[index];
  const Piece& piece = pieces_.piece(index);
  std::string loads;
  std::vector<std::string> leaves;
  for (int inst : piece.leaves) {
    leaves.push_back(code_.word("r_" + name(operand(inst))));
    loads += load(inst, leaves.back(), "c");
  }
  const std::string result = code_.word("taken");
  std::map<std::string, std::string> t;
  t["pass"] = fmt::format("Pass {}: {} over the channels.", index + 1, code_.id(reduction));
  t["type"] = code_.word(fmt::format("Rows{}", index));
  t["rows_at"] = code_.word(fmt::format("rows{}_at", index));
  t["rows"] = rows_text(index, t["type"], t["rows_at"]);
  t["accumulator"] = accumulator_of(at(reduction).reduce);
  t["replaces"] = piece.replaces ? "true" : "false";
  t["index"] = std::to_string(index);
  t["finish"] = indent(loads + fmt::format("{} {};\n", value_type(at(piece.targets[0])), result) +
                           pieces_.call(piece, leaves, "rows.", {result}) +
                           fmt::format("return {};\n", result),
                       6);
  return fragment("kernels/windows/implicit_pass.cu", t);
}

std::string Tail::finish() {
  if (pieces_.by_row()) return finish_row();
  const bool placed = by_ == By::place;
  std::string loads, stores;
  std::vector<std::string> leaves, results;
  for (int inst : pieces_.last().leaves) {
    const Operand& o = operand(inst);
    const bool early = placed && differs(o);
    const std::string word = code_.word("r_" + name(o)), type = value_type(at(inst)),
                      from = addresses_.element(o, name(o), placed && !early ? "nearest" : "c");
    if (early) {
      members_ += fmt::format("{} {};\n", type, word);
      reads_ += fmt::format("more.{} = cutegen::convert<{}>({});\n", word, type, from);
      leaves.push_back("more." + word);
    } else {
      loads += fmt::format("const {0} {1} = cutegen::convert<{0}>({2});\n", type, word, from);
      leaves.push_back(word);
    }
  }
  for (const FusedOutput& output : fused_.outputs) {
    const std::string word = code_.word("r_" + name(output.operand)),
                      member = placed ? "result." + word : word;
    (placed ? results_of_place_ : loads) +=
        fmt::format("{} {};\n", value_type(at(output.inst)), word);
    stores += fmt::format("{} = cutegen::from_float<{}>({});\n",
                          addresses_.element(output.operand, name(output.operand), "c"),
                          type_of(output.operand), member);
    results.push_back(member);
  }
  const std::string computed = loads + pieces_.call(pieces_.last(), leaves, "at.rows.", results);
  if (!placed) return computed + stores;
  stores_ = stores;
  return computed;
}

// Writes what computes one value of a place; stores() has the statements that store it.
std::string Tail::finish_row() {
  std::string loads;
  std::vector<std::string> leaves, results;
  for (int inst : pieces_.last().leaves) {
    leaves.push_back(code_.word("r_" + name(operand(inst))));
    loads += load(inst, leaves.back(), "0");
  }
  for (const FusedOutput& output : fused_.outputs) {
    results.push_back(code_.word("r_" + name(output.operand)));
    loads += fmt::format("{} {};\n", value_type(at(output.inst)), results.back());
    stores_ += fmt::format("{} = cutegen::from_float<{}>({});\n",
                           addresses_.element(output.operand, name(output.operand), "0"),
                           type_of(output.operand), results.back());
  }
  return loads + pieces_.call(pieces_.last(), leaves, "", results);
}

std::string Tail::declare(Json& args) const {
  std::vector<std::string> list, seen;
  auto add = [&](const Operand& o, const char* constness) {
    const std::string& word = name(o);
    if (std::find(seen.begin(), seen.end(), word) != seen.end()) return;
    seen.push_back(word);
    args.push_back({{"tensor", word}});
    list.push_back(fmt::format("{}{}* __restrict__ {}", type_of(o), constness, word));
  };
  add(leaf_.input, " const");
  if (!leaf_.window.pools()) add(leaf_.weight, " const");
  for (int inst : leaves_) add(operand(inst), " const");
  for (const FusedOutput& output : fused_.outputs) add(output.operand, "");
  return join(list, ", ");
}

}  // namespace cutegen::recipes
