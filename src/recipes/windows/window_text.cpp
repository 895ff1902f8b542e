// SPDX-License-Identifier: Apache-2.0
#include "recipes/windows/window_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <set>

#include "base/text.h"
#include "recipes/nest/channel_values.h"
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
    if (!window_.weighted()) {
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
    "auto placed = [&](auto... where) {\n"
    "  const Place at = place(where...);\n"
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
    case ReduceKind::total:
    case ReduceKind::largest:
    case ReduceKind::smallest:
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

// The number of groups as a plan expression. If it equals the number of channels, it may differ
// from shape to shape. In a transposed convolution, the number of groups determines the number of
// output channels, so it is a constant.
std::string groups_text(const Fused& fused) {
  const WindowLeaf& leaf = *fused.window;
  if (leaf.window.groups == 1 || leaf.window.kind == WindowKind::transposed)
    return std::to_string(leaf.window.groups);
  return fmt::format("({})/({})", size_text(fused, leaf.input, 1),
                     size_text(fused, leaf.weight, 1));
}

std::string misaligned_pairs(const Fused& fused) {
  std::string sum = fmt::format("({})%2", fused.axes.back().extent);
  for (const FusedOutput& output : fused.outputs) {
    const Operand& o = output.operand;
    for (size_t i = 0; i < o.axes.size(); ++i) {
      const std::string stride = stride_text(fused, o, i);
      if (o.axes[i] + 1 < int(fused.axes.size()))
        sum += fmt::format("+({})%2", stride);
      else
        sum += fmt::format("+max({0},1)-min({0},1)", stride);
    }
    sum += fmt::format("+({})%2", start_text(fused, o));
  }
  return sum;
}

bool along_last(const Fused& fused) {
  return std::all_of(fused.outputs.begin(), fused.outputs.end(), [&](const FusedOutput& output) {
    return output.operand.axes.back() + 1 == int(fused.axes.size());
  });
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

std::string constants(const Window& window, bool kernel) {
  std::string text;
  for (size_t i = 0; i < 3; ++i) {
    text += fmt::format("constexpr int kStride{0} = {1}, kPadding{0} = {2}, kDilation{0} = {3};\n",
                        i, padded(window.stride, i, 1), padded(window.padding, i, 0),
                        padded(window.dilation, i, 1));
    if (kernel)
      text += fmt::format("constexpr int kKernel{} = {};\n", i, padded(window.kernel, i, 1));
  }
  text.pop_back();
  return text;
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

std::vector<int> row_reductions(const Fused& fused) {
  std::vector<int> list;
  for (size_t i = 0; i < fused.insts.size(); ++i)
    if (fused.insts[i].kind == InstKind::reduction) list.push_back(int(i));
  return list;
}

Pieces::Pieces(const Fused& fused, Code& code, std::vector<int> channels)
    : fused_(fused), leaf_(*fused.window), code_(code), reductions_(row_reductions(fused)) {
  // This piece computes the values of a channel, so it does not receive them.
  if (!channels.empty()) of_channel_ = piece(code_.word("of_channel"), channels, leaf_.inst, false);
  of_channel_.source = -1;
  channels_ = std::move(channels);
  for (const FusedOutput& output : fused.outputs) results_.push_back(output.inst);
  int source = leaf_.inst;
  for (size_t i = 0; i < reductions_.size(); ++i) {
    const std::string word = code_.word("before_" + code_.id(reductions_[i]));
    pieces_.push_back(piece(word, at(reductions_[i]).inputs, source, true));
    const int taken = pieces_.back().targets[0];
    if (!replaces(i, taken, source)) continue;
    pieces_.back().replaces = true;
    source = taken;
  }
  pieces_.push_back(piece("compute", results_, source, !by_row()));
  for (const Piece& piece : pieces_) rows_.push_back(rows_piece(piece));
}

bool Pieces::by_row() const {
  return fused_.reduces() &&
         std::none_of(fused_.outputs.begin(), fused_.outputs.end(), [&](const FusedOutput& output) {
           return recipes::varies(fused_, output.operand);
         });
}

// Whether a kernel computes the instruction once for all channels of a position.
bool Pieces::hoisted(const Inst& inst) const {
  return fused_.reduces() && inst.kind == InstKind::pointwise && inst.level == Level::row &&
         !inst.boolean && !inst.integer;
}

// Whether a piece receives the value as a parameter instead of computing it.
bool Pieces::given(int inst, bool hoists) const {
  return at(inst).kind == InstKind::reduction || (hoists && hoisted(at(inst))) ||
         std::find(channels_.begin(), channels_.end(), inst) != channels_.end();
}

// Returns the instructions on the way to `targets` from values that the piece receives: `source`,
// results of reductions and, if `hoists` is true, other values of the row.
std::vector<int> Pieces::beneath(const std::vector<int>& targets, int source, bool hoists) const {
  return code_.needed(targets, [&](const Inst& inst) {
    return !given(int(&inst - fused_.insts.data()), hoists) && &inst != &at(source);
  });
}

// Whether the operand of reduction `index` may replace `source`: nothing later needs `source`
// itself.
bool Pieces::replaces(size_t index, int taken, int source) const {
  const Inst& inst = at(taken);
  if (taken == source || inst.level != Level::element || inst.boolean || inst.integer) return false;
  std::vector<int> later = results_;
  for (size_t i = index + 1; i < reductions_.size(); ++i)
    later.push_back(at(reductions_[i]).inputs[0]);
  for (int needed : beneath(later, taken, false)) {
    const std::vector<int>& inputs = at(needed).inputs;
    if (needed == source || std::find(inputs.begin(), inputs.end(), source) != inputs.end())
      return false;
  }
  return std::find(later.begin(), later.end(), source) == later.end();
}

Piece Pieces::piece(const std::string& name, const std::vector<int>& targets, int source,
                    bool hoists) const {
  Piece piece{.name = name, .targets = targets};
  std::set<int> rows, channels;
  bool takes = !fused_.reduces();
  auto note = [&](const std::vector<int>& insts) {
    for (int inst : insts) {
      const bool channel = std::find(channels_.begin(), channels_.end(), inst) != channels_.end();
      if (given(inst, hoists)) (channel ? channels : rows).insert(inst);
      takes |= inst == source;
    }
  };
  note(targets);
  for (int inst : beneath(targets, source, hoists)) {
    const Inst& i = at(inst);
    note(i.inputs);
    piece.counts |= i.kind == InstKind::constant && i.code == kCount;
    if (i.kind == InstKind::leaf) piece.leaves.push_back(inst);
    if (i.kind == InstKind::pointwise) piece.body.push_back(inst);
  }
  if (takes) piece.source = source;
  // Computes values of the row first: they may have larger instruction numbers than the elements
  // that read them.
  if (fused_.reduces())
    std::stable_partition(piece.body.begin(), piece.body.end(),
                          [&](int inst) { return at(inst).level == Level::row; });
  piece.rows.assign(rows.begin(), rows.end());
  piece.channels.assign(channels.begin(), channels.end());
  return piece;
}

// The piece that computes the values of a row that `piece` needs and no reduction gives.
Piece Pieces::rows_piece(const Piece& piece) {
  std::vector<int> targets;
  for (int inst : piece.rows)
    if (at(inst).kind != InstKind::reduction) targets.push_back(inst);
  return this->piece(code_.word("rows_of_" + piece.name), targets, leaf_.inst, false);
}

std::string Pieces::function(const Piece& piece, const std::vector<std::string>& results) const {
  std::vector<std::string> params;
  if (piece.source >= 0) params.push_back("float " + code_.id(piece.source));
  for (int inst : piece.leaves)
    params.push_back(fmt::format("{} {}", value_type(at(inst)), code_.id(inst)));
  for (int inst : piece.rows) params.push_back("float " + code_.id(inst));
  for (int inst : piece.channels) params.push_back("float " + code_.id(inst));
  for (const auto& [word, expression] : fused_.sizes) params.push_back("int64_t " + word);
  if (piece.counts) params.push_back(std::string("float ") + kCount);
  std::string body, ends;
  for (size_t i = 0; i < results.size(); ++i) {
    params.push_back(fmt::format("{}& {}", value_type(at(piece.targets[i])), results[i]));
    ends += fmt::format("  {} = {};\n", results[i], code_.use(piece.targets[i]));
  }
  for (int inst : piece.body) body += "  " + code_.statement(inst);
  return fmt::format("__device__ __forceinline__ void {}({}) {{\n{}{}}}", piece.name,
                     join(params, ", "), body, ends);
}

std::string Pieces::call(const Piece& piece, const std::vector<std::string>& leaves,
                         const std::string& rows, const std::vector<std::string>& results) const {
  std::vector<std::string> values;
  if (piece.source >= 0) values.emplace_back("window");
  values.insert(values.end(), leaves.begin(), leaves.end());
  for (int inst : piece.rows)
    values.push_back(rows.empty() ? row_text(inst) : rows + code_.id(inst));
  for (int inst : piece.channels)
    values.push_back(
        fmt::format("kept.element[{}]",
                    std::find(channels_.begin(), channels_.end(), inst) - channels_.begin()));
  for (const auto& [word, expression] : fused_.sizes) values.push_back(word);
  if (piece.counts) values.emplace_back("float(out_of_group)");
  values.insert(values.end(), results.begin(), results.end());
  return fmt::format("{}({});\n", piece.name, join(values, ", "));
}

// The result of a reduction at the current position.
std::string Pieces::row_text(int reduction) const {
  const auto found = std::find(reductions_.begin(), reductions_.end(), reduction);
  return fmt::format("conv.row(storage, {}, at.row)", found - reductions_.begin());
}

std::string Pieces::functions() {
  std::string text;
  auto add = [&](const Piece& piece, const std::string& prefix) {
    std::vector<std::string> words;
    words.reserve(piece.targets.size());
    for (int inst : piece.targets) words.push_back(code_.word(prefix + code_.id(inst)));
    if (!words.empty()) text += function(piece, words) + "\n";
  };
  add(of_channel_, "channel_");
  for (const Piece& piece : rows_) add(piece, "row_");
  for (size_t i = 0; i < reductions_.size(); ++i)
    text += function(pieces_[i], {code_.word("result")}) + "\n";
  std::vector<std::string> results;
  results.reserve(fused_.outputs.size());
  for (const FusedOutput& output : fused_.outputs)
    results.push_back(code_.word("result_" + fused_.names.at(output.operand.tensor)));
  return text + function(last(), results);
}

bool differs(const Operand& o) {
  for (int axis : o.axes)
    if (axis >= 0 && axis != 1) return true;
  return false;
}

// The element of an operand at the current position of the nest.
std::string Addresses::element(const Operand& o, const std::string& word, const char* channel_of) {
  return by_place_ ? element_by_place(o, word, channel_of) : element_here(o, word);
}

// Finds the element by the position's indices, or by the channel alone.
std::string Addresses::element_here(const Operand& o, const std::string& word) {
  std::vector<std::string> terms;
  for (size_t i = 0; i < o.axes.size(); ++i) {
    if (o.axes[i] < 0) continue;
    const std::string stride = code_.word(fmt::format("{}_s{}", word, i));
    numbers_.emplace_back(stride, step_text(o, i));
    terms.push_back(fmt::format("{} * {}", axis_text(o.axes[i], "channel"), stride));
  }
  add_start(o, word, terms);
  const std::string at = terms.empty() ? "0" : join(terms, " + ");
  if (o.counts) return fmt::format("int64_t({})", at);
  return fmt::format("{}[{}]", fused_.names.at(o.tensor), at);
}

// The same, relative to the tile's first channel, whose offset a Place has.
std::string Addresses::element_by_place(const Operand& o, const std::string& word,
                                        const char* channel_of) {
  if (!found_.count(&o)) {
    Address address;
    std::vector<std::string> terms;
    for (size_t i = 0; i < o.axes.size(); ++i) {
      if (o.axes[i] < 0) continue;
      const std::string stride = code_.word(fmt::format("{}_s{}", word, i));
      const bool last = o.axes[i] + 1 == int(fused_.axes.size()) && o.axes[i] > 1;
      (last ? constants_ : numbers_).emplace_back(stride, step_text(o, i));
      terms.push_back(fmt::format("{} * {}", axis_text(o.axes[i], "channel"), stride));
      if (o.axes[i] != 1) continue;
      address.channel = code_.word(word + "_bytes");
      numbers_.emplace_back(address.channel, fmt::format("({})*{}", step_text(o, i),
                                                         o.counts ? 1 : size_of(o.dtype)));
      if (!o.counts) requirements_.push_back(fmt::format("{} <= 1000000000", step_text(o, i)));
    }
    add_start(o, word, terms);
    if (!terms.empty()) {
      address.offset = code_.word("at_" + word);
      offsets_.emplace_back(address.offset, join(terms, " + "));
    }
    found_[&o] = address;
  }
  const Address& address = found_.at(&o);
  if (o.counts) {
    const std::string at = address.offset.empty() ? "0" : "at." + address.offset;
    return address.channel.empty() ? fmt::format("int64_t({})", at)
                                   : fmt::format("int64_t({} + cutegen::conv_step({}) * {})", at,
                                                 channel_of, address.channel);
  }
  if (address.offset.empty()) return fused_.names.at(o.tensor) + "[0]";
  if (address.channel.empty())
    return fmt::format("{}[at.{}]", fused_.names.at(o.tensor), address.offset);
  return fmt::format("cutegen::conv_channel({}, at.{}, {}, {})", fused_.names.at(o.tensor),
                     address.offset, channel_of, address.channel);
}

// The plan expression for the step along an axis of an operand.
std::string Addresses::step_text(const Operand& o, size_t axis) const {
  if (!o.counts) return stride_text(fused_, o, axis);
  return std::to_string(o.steps.empty() ? 1 : o.steps[axis]);
}

// Where a part of a tensor begins.
void Addresses::add_start(const Operand& o, const std::string& word,
                          std::vector<std::string>& terms) {
  const std::string start = o.counts ? "0" : start_text(fused_, o);
  if (start == "0") return;
  terms.push_back(code_.word(word + "_start"));
  numbers_.emplace_back(terms.back(), start);
}

// The current position along an axis of the nest.
std::string Addresses::axis_text(int axis, const char* channel) const {
  if (axis == 0) return "n";
  if (axis == 1) return channel;
  return fmt::format("p{}", size_t(axis) + 1 - fused_.window->window.rank());
}

std::string fragment(const std::string& path, const std::map<std::string, std::string>& values) {
  const std::string text = fill(path, values);
  return text.substr(text.find('\n') + 1);
}

TailOperands::TailOperands(const Fused& fused, bool by_place)
    : fused_(fused), leaf_(*fused.window), code_(fused), addresses_(fused, code_, by_place) {
  for (const char* word :
       {"window", "n",      "channel",    "channel0", "p0",    "p1",      "p2",      "sums",
        "pixels", "at",     "c",          "left",     "more",  "read",    "nearest", "result",
        "next",   "store",  "store_pair", "inside",   "lane",  "rows",    "conv",    "Place",
        "Placed", "placed", "Rows",       "rows_at",  "Reads", "Results", "kept"})
    (void)code_.word(word);
  std::vector<int> results;
  results.reserve(fused.outputs.size());
  for (const FusedOutput& output : fused.outputs) results.push_back(output.inst);
  for (int inst : code_.needed(results, [](const Inst&) { return true; }))
    if (inst != leaf_.inst && at(inst).kind == InstKind::leaf) leaves_.push_back(inst);
}

// Loads an operand for a piece at the current position.
std::string TailOperands::load(int inst, const std::string& word, const char* channel_of) {
  const Operand& o = operand(inst);
  return fmt::format("const {0} {1} = {2}cutegen::convert<{0}>({3}){4};\n", value_type(at(inst)),
                     word, differs(o) ? "at.inside ? " : "",
                     addresses_.element(o, name(o), channel_of),
                     differs(o) ? fmt::format(" : {}(0)", value_type(at(inst))) : "");
}

std::string TailOperands::load_of_channel(const std::vector<int>& leaves,
                                          std::vector<std::string>& words) {
  std::string loads;
  for (int inst : leaves) {
    const Operand& o = operand(inst);
    words.push_back(code_.word("r_" + name(o)));
    loads += fmt::format("const {0} {1} = cutegen::convert<{0}>({2});\n", value_type(at(inst)),
                         words.back(), addresses_.element_here(o, name(o)));
  }
  return loads;
}

namespace {

// Where a kernel keeps the values of a channel.
std::vector<std::string> kept_elements(const Piece& piece) {
  std::vector<std::string> list;
  list.reserve(piece.targets.size());
  for (size_t i = 0; i < piece.targets.size(); ++i)
    list.push_back(fmt::format("kept.element[{}]", i));
  return list;
}

}  // namespace

Tail::Tail(const Fused& fused, By by)
    : TailOperands(fused, by == By::place),
      by_(by),
      pieces_(fused, code_, by == By::element ? std::vector<int>() : channel_values(fused)) {}

// Writes the struct `type` with the values of the row that piece `index` takes, and the function
// `rows_at` that reads or computes them at a position.
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

// Reads the values of the channel that a piece needs.
std::string Tail::kept(const Piece& piece) const {
  const bool reads = by_ == By::place && !piece.channels.empty();
  return reads ? "const auto kept = conv.channel(storage, c);\n" : "";
}

std::string Tail::channels(const std::string& tile) {
  const Piece& piece = pieces_.of_channel();
  if (piece.targets.empty()) return "";
  std::vector<std::string> leaves;
  std::map<std::string, std::string> t;
  t["tile"] = tile;
  t["loads"] = indent(load_of_channel(piece.leaves, leaves), 2);
  t["call"] = pieces_.call(piece, leaves, "", kept_elements(piece));
  return fragment("kernels/windows/implicit_channels.cu", t);
}

std::string Tail::of_channel() {
  const Piece& piece = pieces_.of_channel();
  if (piece.targets.empty()) return "";
  std::vector<std::string> leaves;
  const std::string loads = load_of_channel(piece.leaves, leaves);
  return fmt::format("struct {{\n  float element[{}];\n}} kept;\n{}{}", piece.targets.size(), loads,
                     pieces_.call(piece, leaves, "", kept_elements(piece)));
}

int Tail::together() const {
  const std::vector<int>& leaves = pieces_.last().leaves;
  const auto early =
      std::count_if(leaves.begin(), leaves.end(), [&](int inst) { return differs(operand(inst)); });
  return early == 1 ? 16 : 8;
}

std::string Tail::placed() {
  if (!fused_.reduces() || pieces_.by_row()) return "";
  return rows_text(pieces_.reductions().size(), "Rows", "rows_at") + kPlaced;
}

std::string Tail::passes(const std::string& of) {
  std::string text;
  for (size_t i = 0; i < pieces_.reductions().size(); ++i) text += pass(i, of);
  return text;
}

std::string Tail::pass(size_t index, const std::string& of) {
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
  t["of"] = of, t["index"] = std::to_string(index);
  t["finish"] = indent(
      kept(piece) + loads + fmt::format("{} {};\n", value_type(at(piece.targets[0])), result) +
          pieces_.call(piece, leaves, "rows.", {result}) + fmt::format("return {};\n", result),
      6);
  return fragment("kernels/windows/implicit_pass.cu", t);
}

std::string Tail::finish() {
  if (pieces_.by_row()) return finish_row();
  const bool placed = by_ == By::place, strip = by_ == By::strip;
  std::string loads = kept(pieces_.last()), stores;
  std::vector<std::string> leaves, results;
  for (int inst : pieces_.last().leaves) {
    const Operand& o = operand(inst);
    const bool early = placed && differs(o);
    const std::string word = code_.word("r_" + name(o)), type = value_type(at(inst)),
                      from = addresses_.element(o, name(o), placed && !early ? "nearest" : "c");
    if (early) {
      members_ += fmt::format("{} {};\n", type, word);
      const std::string element =
          o.counts ? from : fmt::format("cutegen::load_if(inside, {})", from);
      reads_ += fmt::format("more.{} = cutegen::convert<{}>({});\n", word, type, element);
      leaves.push_back("more." + word);
    } else {
      loads += fmt::format("const {0} {1} = cutegen::convert<{0}>({2});\n", type, word, from);
      leaves.push_back(word);
    }
  }
  for (const FusedOutput& output : fused_.outputs) {
    const std::string word = code_.word("r_" + name(output.operand)),
                      member = placed ? "result." + word : word,
                      to = addresses_.element(output.operand, name(output.operand), "c");
    (placed ? results_of_place_ : loads) +=
        fmt::format("{} {};\n", value_type(at(output.inst)), word);
    if (placed)
      stores += fmt::format("cutegen::store_if(inside, {0}, cutegen::from_float<{1}>({2}));\n", to,
                            type_of(output.operand), member);
    else
      stores += fmt::format("{0} = cutegen::from_float<{1}>({2});\n",
                            strip ? strip_element(output.operand, to) : to, type_of(output.operand),
                            member);
    pair_stores_ += fmt::format(
        "cutegen::store_pair_if(inside, {0}, cutegen::from_float<{1}>({2}),\n"
        "                       cutegen::from_float<{1}>(next.{3}));\n",
        to, type_of(output.operand), member, word);
    results.push_back(member);
  }
  std::string computed = loads + pieces_.call(pieces_.last(), leaves, "at.rows.", results);
  if (!placed) return computed + stores;
  stores_ = stores;
  return computed;
}

// Adds a strip of results, which stores() stores at `to`, and returns its element `v`.
std::string Tail::strip_element(const Operand& output, const std::string& to) {
  const std::string strip = code_.word("strip_" + name(output));
  results_of_place_ += fmt::format("cutegen::Pack<{}, kStrip> {};\n", type_of(output), strip);
  stores_ += fmt::format(
      "if constexpr (kWhole) {{\n"
      "  const int64_t p2 = first2;\n"
      "  cutegen::write_pack({0}, &{1});\n"
      "}} else {{\n"
      "  CUTE_UNROLL\n"
      "  for (int v = 0; v < kStrip; ++v)\n"
      "    if (const int64_t p2 = first2 + v; p2 < out2) {1} = {0}.element[v];\n"
      "}}\n",
      strip, to);
  return strip + ".element[v]";
}

// Writes the statements that compute one value of a position; stores() has those that store it.
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

std::string write_text(Tail& tail, const std::string& of, bool pairs) {
  std::map<std::string, std::string> t;
  t["finish"] = indent(tail.finish(), 2), t["stores"] = indent(tail.stores(), 2);
  t["of"] = of;
  if (tail.by_row()) return fragment("kernels/windows/implicit_rows.cu", t);
  if (t["nearest"] = ""; t["finish"].find("nearest") != std::string::npos)
    t["nearest"] =
        "  const auto nearest = cutegen::conv_nearest(c, left);  // without a branch: several "
        "overlap";
  t["members"] = indent(tail.members(), 2), t["reads"] = indent(tail.reads(), 2);
  t["results"] = indent(tail.results(), 2);
  t["rows"] = tail.placed();
  t["place"] = t["rows"].empty() ? "place" : "placed";
  t["Place"] = t["rows"].empty() ? "Place" : "Placed";
  t["store"] = "store", t["pairs"] = "";
  if (pairs) {
    t["pair_stores"] = indent(tail.pair_stores(), 2);
    t["pairs"] = fragment("kernels/windows/implicit_pairs.cu", t);
    t["store"] = "cutegen::ConvStores{store, store_pair}";
  }
  return fragment("kernels/windows/implicit_elements.cu", t);
}

std::string TailOperands::declare(Json& args) const {
  std::vector<std::string> list, seen;
  auto add = [&](const Operand& o, const char* constness) {
    if (o.counts) return;
    const std::string& word = name(o);
    if (std::find(seen.begin(), seen.end(), word) != seen.end()) return;
    seen.push_back(word);
    args.push_back({{"tensor", word}});
    list.push_back(fmt::format("{}{}* __restrict__ {}", type_of(o), constness, word));
  };
  add(leaf_.input, " const");
  if (leaf_.window.weighted()) add(leaf_.weight, " const");
  for (int inst : leaves_) add(operand(inst), " const");
  for (const FusedOutput& output : fused_.outputs) add(output.operand, "");
  return join(list, ", ");
}

}  // namespace cutegen::recipes
