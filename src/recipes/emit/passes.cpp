// SPDX-License-Identifier: Apache-2.0
#include "recipes/emit/passes.h"

#include <fmt/format.h>

#include <algorithm>

namespace cutegen::recipes {
namespace {

struct Accumulator {
  const char* type;
  const char* verb;
  int words;  // size in floats
};

Accumulator accumulator(ReduceKind kind, bool plain_sums = false) {
  switch (kind) {
    case ReduceKind::sum:
      if (plain_sums) return {.type = "PlainSum", .verb = "the sum of", .words = 1};
      return {.type = "Sum", .verb = "the sum of", .words = 2};
    case ReduceKind::product:
      return {.type = "Product", .verb = "the product of", .words = 1};
    case ReduceKind::max:
      return {.type = "Max", .verb = "the maximum of", .words = 1};
    case ReduceKind::min:
      return {.type = "Min", .verb = "the minimum of", .words = 1};
    case ReduceKind::total:
      return {.type = "Total", .verb = "the total of", .words = 2};
    case ReduceKind::largest:
      return {.type = "MaxInteger", .verb = "the maximum of", .words = 3};
    case ReduceKind::smallest:
      return {.type = "MinInteger", .verb = "the minimum of", .words = 3};
    case ReduceKind::argmax:
      return {.type = "ArgMax", .verb = "the place of the maximum of", .words = 2};
    case ReduceKind::argmin:
      return {.type = "ArgMin", .verb = "the place of the minimum of", .words = 2};
  }
  return {.type = "", .verb = "", .words = 1};
}

// If the instruction is x - m, returns x and m.
std::optional<std::pair<int, int>> difference(const Fused& fused, int inst) {
  const Inst& i = fused.insts[size_t(inst)];
  const bool differs = i.code == kDifference || i.code == kRoundedDifference;
  if (i.kind != InstKind::pointwise || !differs || i.inputs.size() != 2) return std::nullopt;
  return std::pair{i.inputs[0], i.inputs[1]};
}

// If the instruction is exp(x - m), returns x and m.
std::optional<std::pair<int, int>> exponent_of_difference(const Fused& fused, int inst) {
  const Inst& exp = fused.insts[size_t(inst)];
  if (!is_exponential(exp)) return std::nullopt;
  return difference(fused, exp.inputs[0]);
}

// If the instruction is m, or 0 if m is infinite, returns m.
std::optional<int> finite_shift_of(const Fused& fused, int inst) {
  const Inst& i = fused.insts[size_t(inst)];
  if (i.kind != InstKind::pointwise || i.code != kFiniteShift) return std::nullopt;
  return i.inputs[0];
}

// If the instruction is sum(x) / count, returns the sum.
std::optional<int> sum_of_mean(const Fused& fused, int inst) {
  const Inst& mean = fused.insts[size_t(inst)];
  if (mean.kind != InstKind::pointwise || mean.code != "{0} / {1}") return std::nullopt;
  const Inst& sum = fused.insts[size_t(mean.inputs[0])];
  const Inst& count = fused.insts[size_t(mean.inputs[1])];
  if (sum.kind != InstKind::reduction || sum.reduce != ReduceKind::sum ||
      count.kind != InstKind::constant || count.code != kCount)
    return std::nullopt;
  return mean.inputs[0];
}

// If the instruction is (x - m)^2, returns x and m.
std::optional<std::pair<int, int>> square_of_difference(const Fused& fused, int inst) {
  const Inst& square = fused.insts[size_t(inst)];
  if (square.kind != InstKind::pointwise || square.code != "cutegen::square({0})")
    return std::nullopt;
  return difference(fused, square.inputs[0]);
}

// If one pass can accumulate the sum `inst` and the reduction that it depends on, returns both.
std::optional<Joint> joint_with(const Fused& fused, int inst) {
  const Inst& sum = fused.insts[size_t(inst)];
  auto over = [&](int first) { return fused.insts[size_t(first)].inputs[0]; };
  if (auto d = exponent_of_difference(fused, sum.inputs[0])) {
    const std::optional<int> shifted = finite_shift_of(fused, d->second);
    const int first = shifted.value_or(d->second);
    const Inst& max = fused.insts[size_t(first)];
    if (max.kind == InstKind::reduction && max.reduce == ReduceKind::max && over(first) == d->first)
      return Joint{.first = first, .second = inst, .finite_shift = shifted.has_value()};
  }
  if (auto d = square_of_difference(fused, sum.inputs[0])) {
    auto first = sum_of_mean(fused, d->second);
    // The first element is subtracted from all others, so it must be known before any pass.
    const bool known = fused.insts[size_t(d->first)].depth == 0;
    if (first && known && over(*first) == d->first)
      return Joint{.first = *first, .second = inst, .moments = true, .finite_shift = false};
  }
  return std::nullopt;
}

}  // namespace

std::optional<Joint> find_joint(const Fused& fused) {
  for (size_t i = 0; i < fused.insts.size(); ++i) {
    const Inst& sum = fused.insts[i];
    if (sum.kind != InstKind::reduction || sum.reduce != ReduceKind::sum) continue;
    if (auto joint = joint_with(fused, int(i))) return joint;
  }
  return std::nullopt;
}

Passes::Passes(const Fused& fused, Code& code, const PassOptions& options)
    : fused_(fused), code_(code), options_(options) {
  if (options.online) joint_ = find_joint(fused);
  code_.index_rows(options.column);
  std::vector<int> results;
  results.reserve(fused.outputs.size());
  for (const FusedOutput& output : fused.outputs) results.push_back(output.inst);
  used_ = code_.needed(results, [](const Inst&) { return true; });
  for (const Operand& operand : fused.inputs)
    inputs_.push_back(code_.word("g_" + fused.names.at(operand.tensor)));
  for (const FusedOutput& output : fused.outputs)
    outputs_.push_back(code_.word("g_" + fused.names.at(output.operand.tensor)));
  for (const FusedOutput& output : fused.outputs)
    registers_.push_back(code_.word("r_" + fused.names.at(output.operand.tensor)));
  for (const Operand& operand : fused.inputs)
    slots_.push_back(options.resident ? code_.word("kept_" + fused.names.at(operand.tensor)) : "");
  for (int inst : used_)
    if (at(inst).kind == InstKind::reduction) {
      accumulators_[inst] = code_.word(code_.id(inst) + "_part");
      kept_[inst] = code_.word(code_.id(inst) + "_parts");
      vectors_[inst] = code_.word(code_.id(inst) + "_vector");
      if (sums_few(inst)) few_[inst] = code_.word(code_.id(inst) + "_few");
    }
  if (moments()) {
    shift_ = code_.word("shift");
    exact_count_ = code_.word("exact_count");
  }
  values_ = kept_values(fused, later_targets(), options.room);
  for (const auto& [inst, operand] : values_)
    if (options.packed.count(operand) != 0)
      packed_values_[operand] = code_.word(code_.id(inst) + "_kept");
}

// The values of each element that the passes after the first one compute.
std::vector<int> Passes::later_targets() const {
  std::vector<int> list;
  for (int d = 2; d <= depth(); ++d)
    for (int inst : reductions(d)) list.push_back(at(inst).inputs[0]);
  for (const FusedOutput& output : fused_.outputs)
    if (varies(fused_, output.operand)) list.push_back(output.inst);
  return list;
}

std::vector<int> Passes::leaves(Level level) const {
  std::vector<int> list;
  for (int inst : used_)
    if (at(inst).kind == InstKind::leaf && at(inst).level == level) list.push_back(inst);
  return list;
}

int Passes::words(int inst) const {
  if (is_joint(inst)) return joint_->moments ? 4 : options_.accuracy.plain_sums ? 2 : 3;
  return accumulator(at(inst).reduce, options_.accuracy.plain_sums).words;
}

int Passes::words() const {
  int most = 1;
  for (int d = 1; d <= depth(); ++d)
    for (int inst : reductions(d)) most = std::max(most, words(inst));
  return most;
}

int Passes::all_words() const {
  int all = 0;
  for (const Parts& p : parts()) all += p.words;
  return all;
}

// Where a reduction's accumulator starts among those that CTAs of a cluster read from each other.
int Passes::slot(int inst) const {
  int before = 0;
  for (int d = 1; d <= depth(); ++d)
    for (int other : reductions(d)) {
      if (other == inst) return before;
      before += words(other);
    }
  return before;
}

std::string Passes::type(int inst) const {
  const bool plain_sums = options_.accuracy.plain_sums;
  if (!is_joint(inst)) return accumulator(at(inst).reduce, plain_sums).type;
  if (joint_->moments) return "Moments";
  return plain_sums ? "MaxSumExpOf<cutegen::PlainSum>" : "MaxSumExp";
}

// The reductions that pass `depth` accumulates. A joint counts once, as its first reduction.
std::vector<int> Passes::reductions(int depth) const {
  std::vector<int> list;
  for (int inst : used_)
    if (at(inst).kind == InstKind::reduction && depth_of(inst) == depth &&
        !(joint_ && inst == joint_->second))
      list.push_back(inst);
  return list;
}

int Passes::depth() const {
  int most = 0;
  for (int inst : used_)
    if (at(inst).kind == InstKind::reduction) most = std::max(most, depth_of(inst));
  return most;
}

std::vector<Parts> Passes::parts() const {
  std::vector<Parts> list;
  for (int d = 1; d <= depth(); ++d)
    for (int inst : reductions(d))
      list.push_back(
          {.name = kept_.at(inst), .type = type(inst), .words = words(inst), .depth = d});
  return list;
}

// The pass of a joint's first reduction also computes its second reduction, so values that depend
// on the second have the depth of that pass.
int Passes::depth_of(int inst) const {
  if (joint_ && inst == joint_->second) return at(joint_->first).depth;
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

// The thread's first step along the reduced axis, and the distance between its steps.
std::string Passes::start() const {
  if (options_.split || options_.clustered) return "first";
  return options_.column ? "team" : "lane";
}

std::string Passes::step() const {
  if (options_.split || options_.clustered) return "apart";
  return options_.column ? "kRows" : "kWidth";
}

// Element v of an operand, as a float or an integer.
std::string Passes::element(const Inst& leaf) const {
  const auto operand = size_t(leaf.operand);
  if (options_.packed.count(operand) == 0) return array(operand) + "[v]";
  const char* call = leaf.integer ? "convert<int64_t>" : "to_float";
  return fmt::format("cutegen::{}({}.element[v])", call, array(operand));
}

// The array with the kept values that take the place of an operand.
std::string Passes::value_array(size_t operand) const {
  return options_.packed.count(operand) != 0 ? "e." + packed_values_.at(operand) : array(operand);
}

// Whether a thread adds up a few elements of a column before it compensates for rounding errors.
bool Passes::sums_few(int inst) const {
  return options_.column && options_.cached && at(inst).reduce == ReduceKind::sum &&
         !options_.accuracy.plain_sums && !is_joint(inst);
}

// Gives all threads of a column its total.
std::string Passes::combine_columns(int inst) const {
  const std::string& name = accumulators_.at(inst);
  std::string text =
      fmt::format("cutegen::combine_columns<kColumns, kThreads>({}, shared);\n", name);
  if (options_.clustered)
    text += fmt::format(
        "cutegen::combine_columns_of_cluster<kCluster, kColumns, kThreads>(\n"
        "    {}, in_cluster + {} * 2 * kColumns * kVector);\n",
        name, slot(inst));
  return text;
}

// Writes the loop over this thread's steps along the reduced axis. `late` is the text that loads
// operands that the kernel does not keep in registers. `after` follows each step of a kernel that
// keeps elements in registers. Pass 0 means the last pass, which stores the results.
std::string Passes::loop(const std::string& body, const std::string& late, int pass,
                         const std::string& after) const {
  const bool first = pass == 1;
  if (options_.resident) return resident_loop(body, first);
  if (options_.cached)
    return fmt::format(
        "CUTE_UNROLL\n"
        "for (int i = 0; i < kItems; ++i) {{\n"
        "  const Index j = {} + i * {};\n"
        "  if (j < steps) {{\n"
        "    {}Elements& e = cache[i];\n{}\n  }}\n{}}}\n",
        start(), step(), (first && !values_.empty()) || !late.empty() ? "" : "const ",
        indent(late + body, 4), after);
  return "{\n" + indent(memory_loop(body, goes_backwards(pass == 0 ? depth() + 1 : pass)), 2) +
         "\n}\n";
}

// Writes the loop if each pass reads the elements from memory. The compiler does not move loads
// before the work of an earlier step, so the text loads kUnroll steps together. A loop that goes
// backwards begins with the elements that the pass before it read last, because L2 still holds
// them.
std::string Passes::memory_loop(const std::string& body, bool backwards) const {
  if (!backwards && options_.unroll == 1)
    return fmt::format(
        "for (Index j = {}; j < steps; j += {}) {{\n"
        "  const Elements e = read(j);\n{}\n}}\n",
        start(), step(), indent(body, 2));
  const std::string at = backwards ? fmt::format("{} + (left - 1 - u) * {}", start(), step())
                                   : fmt::format("from + u * {}", step());
  // A group of kUnroll steps. The loads have no branches, so all are in flight together.
  const auto group = [&](const std::string& inside) {
    return fmt::format(
        "  Elements cache[kUnroll];\n"
        "  CUTE_UNROLL\n"
        "  for (int u = 0; u < kUnroll; ++u) {{\n"
        "    const Index j = {0};\n"
        "    cache[u] = read({1});\n"
        "  }}\n"
        "  CUTE_UNROLL\n"
        "  for (int u = 0; u < kUnroll; ++u) {{\n"
        "    const Index j = {0};\n"
        "    {2}{{\n"
        "      const Elements& e = cache[u];\n{3}\n"
        "    }}\n"
        "  }}\n"
        "}}\n",
        at, inside.empty() ? "j" : fmt::format("{} ? j : {}", inside, start()),
        inside.empty() ? "" : fmt::format("if ({}) ", inside), indent(body, 6));
  };
  if (backwards)
    return fmt::format(
        "// From the last step, which L2 still holds.\n"
        "Index left = {0} < steps ? (steps - {0} - 1) / {1} + 1 : 0;  // steps of this thread\n"
        "for (; left >= kUnroll; left -= kUnroll) {{\n{2}"
        "if (left > 0) {{\n{3}",
        start(), step(), group(""), group("u < left"));
  return fmt::format(
      "Index from = {0};\n"
      "for (; from + (kUnroll - 1) * {1} < steps; from += kUnroll * {1}) {{\n{2}"
      "if (from < steps) {{\n{3}",
      start(), step(), group(""), group("j < steps"));
}

// Whether pass `pass` goes from the end of the row to its start.
bool Passes::goes_backwards(int pass) const {
  return !options_.cached && !options_.resident && pass % 2 == 0;
}

// Writes the same loop over slots of shared memory. The first pass waits for the copies group by
// group.
std::string Passes::resident_loop(const std::string& body, bool first) const {
  if (options_.turns)
    return group_loop(first ? "  cutegen::wait_groups(kPlaces - 1 - group);\n" : "",
                      first && !values_.empty() ? "" : "const ", first ? body + keep_slots() : body,
                      "");
  if (!first)
    return fmt::format(
        "#pragma unroll kUnroll\n"
        "for (Index i = 0; i < slots; ++i) {{\n"
        "  const Index j = first + i * apart;\n"
        "  const Elements e = kept(i, j);\n{}\n}}\n",
        indent(body, 2));
  return fmt::format(
      "for (int group = 0; group < kGroups; ++group) {{\n"
      "  cutegen::wait_groups(kGroups - 1 - group);\n"
      "#pragma unroll kUnroll\n"
      "  for (Index i = group * share; i < (group + 1) * share && i < slots; ++i) {{\n"
      "    const Index j = first + i * apart;\n"
      "    {}Elements e = kept(i, j);\n{}\n  }}\n}}\n",
      values_.empty() ? "const " : "", indent(body + keep_slots(), 4));
}

// Writes the loop over the groups of a row, whose slots are in the order in which they were read.
std::string Passes::group_loop(const std::string& before, const std::string& constant,
                               const std::string& body, const std::string& after) const {
  return fmt::format(
      "{}for (int group = 0; group < kGroups; ++group) {{\n{}"
      "  const int at = head + group;\n"
      "  const Index from = group * share, place = (at < kPlaces ? at : at - kPlaces) * share;\n"
      "#pragma unroll kUnroll\n"
      "  for (Index k = 0; k < share && from + k < slots; ++k) {{\n"
      "    const Index i = place + k, j = first + (from + k) * apart;\n"
      "    {}Elements e = kept(i, j);\n{}\n  }}\n{}}}\n",
      before.empty() ? "" : "CUTE_UNROLL\n", before, constant, indent(body, 4), after);
}

// Writes the loop that computes results: each group then makes room for one of the next rows.
std::string Passes::last_loop(const std::string& body, const std::string& late) const {
  if (!options_.turns) return loop(body, late, 0);
  return group_loop("", "const ", body, "  fetch(turn * kGroups + group + kPlaces);\n");
}

// Writes the position of element v of step j along the reduced axis.
std::string Passes::place() const {
  return options_.column ? "int64_t(j)" : "int64_t(j) * kVector + v";
}

// Writes the statements that keep element v of the values of the first pass, for later passes.
std::string Passes::keep_values() const {
  std::string text;
  for (const auto& [inst, operand] : values_)
    text +=
        fmt::format("{}[v] = {};  // for the next passes\n", value_array(operand), code_.use(inst));
  return text;
}

// Writes the statements that store the kept values in the slots of their operands.
std::string Passes::keep_slots() const {
  std::string text;
  for (const auto& [inst, operand] : values_)
    text += fmt::format("\ncutegen::store_slot({}, {}[i * kThreads]);", array(operand),
                        slots_[operand]);
  return text;
}

// The element values that a later pass reads instead of computing them again.
std::set<int> Passes::known(bool later) const {
  std::set<int> list;
  if (later)
    for (const auto& [inst, operand] : values_) list.insert(inst);
  return list;
}

// Writes the loads of the operands of `targets` that registers do not keep.
std::string Passes::late_loads(const std::vector<int>& targets, bool later) const {
  if (!options_.cached) return "";
  std::string text;
  std::set<size_t> loaded;
  const auto needed =
      code_.needed(targets, [](const Inst& i) { return i.level == Level::element; }, known(later));
  for (int inst : needed) {
    const Inst& i = at(inst);
    const auto late =
        i.kind == InstKind::leaf ? late_loads_.find(size_t(i.operand)) : late_loads_.end();
    if (late != late_loads_.end() && loaded.insert(late->first).second) text += late->second;
  }
  return text;
}

// Writes the element values that `targets` need, at element v of the vector. A later pass reads
// the values that the first one has kept.
std::string Passes::elements(const std::vector<int>& targets, bool later) {
  std::string text;
  const std::set<int> known = this->known(later);
  for (int inst :
       code_.needed(targets, [](const Inst& i) { return i.level == Level::element; }, known)) {
    const Inst& i = at(inst);
    if (known.count(inst) != 0)
      text +=
          fmt::format("const float {} = {}[v];\n", code_.id(inst), value_array(values_.at(inst)));
    else if (i.kind == InstKind::leaf)
      text += fmt::format("const {} {} = {};\n", value_type(i), code_.id(inst), element(i));
    else if (i.kind == InstKind::position)
      text += fmt::format("const int64_t {} = {};\n", code_.id(inst), place());
    else
      text += code_.statement(inst);
  }
  return text;
}

// Writes the row values of `depth` that are not reductions: once a row, or for each column.
std::string Passes::row_values(int depth) {
  std::string text;
  for (int inst : used_) {
    const Inst& i = at(inst);
    if (i.level != Level::row || i.kind != InstKind::pointwise || depth_of(inst) != depth) continue;
    if (!options_.column)
      text += code_.statement(inst);
    else
      text +=
          fmt::format("{} {}[kVector];\nCUTE_UNROLL\nfor (int v = 0; v < kVector; ++v) {} = {};\n",
                      i.boolean ? "bool" : value_type(i), code_.id(inst), code_.use(inst),
                      code_.expression(inst));
  }
  return text;
}

// Whether no other reduction of the kernel follows.
bool Passes::is_last(int inst) const {
  return !options_.turns && reductions(depth()).back() == inst;
}

// The threads of a row (or column) combine their accumulators, and all of them get the result.
std::string Passes::result(int inst) {
  const std::string& from = accumulators_.at(inst);
  std::vector<std::pair<int, std::string>> values{{inst, ".value()"}};
  if (is_joint(inst) && moments())
    values = {
        {inst, fmt::format(".total({}, {}{})", exact_count_, shift_, options_.column ? "[v]" : "")},
        {joint_->second, fmt::format(".about_mean({})", exact_count_)}};
  else if (is_joint(inst))
    values = {{inst, ".max.value()"},
              {joint_->second, joint_->finite_shift ? ".sum_of_finite_shift()" : ".sum.value()"}};
  std::string arrays, ends;
  for (const auto& [value, call] : values) {
    const char* type = value_type(at(value));
    if (options_.column) {
      arrays += fmt::format("{} {}[kVector];\n", type, code_.id(value));
      ends += fmt::format("  {} = {}[v]{};\n", code_.use(value), from, call);
    } else {
      ends += fmt::format("const {} {} = {}{};\n", type, code_.id(value), from, call);
    }
  }
  if (!options_.column)
    return fmt::format("cutegen::combine_row<kWidth{}>({}, shared);\n{}{}",
                       is_last(inst) ? ", true" : "", from,
                       options_.resident ? fmt::format("cutegen::combine_cluster<kCluster>({}, "
                                                       "in_cluster + {});\n",
                                                       from, slot(inst))
                                         : "",
                       ends);
  return combine_columns(inst) + arrays +
         fmt::format("CUTE_UNROLL\nfor (int v = 0; v < kVector; ++v) {{\n{}}}\n", ends);
}

// Stores the CTA's accumulator in scratch at (part, row).
std::string Passes::keep(int inst) {
  const std::string& from = accumulators_.at(inst);
  if (!options_.column)
    return fmt::format(
        "cutegen::combine_row<kWidth>({0}, shared);\n"
        "if (live && lane == 0) {1}[part * size(across) + row] = {0};\n",
        from, kept_.at(inst));
  return combine_columns(inst) +
         fmt::format(
             "CUTE_UNROLL\nfor (int v = 0; v < kVector; ++v) {{\n"
             "  if (live && team == 0)\n"
             "    {1}[(part * size(across) + column) * kVector + v] = {0}[v];\n}}\n",
             from, kept_.at(inst));
}

std::string Passes::pass(int depth) {
  std::string comment, declarations, adds, vectors, ends, after;
  std::vector<int> targets;
  for (int inst : reductions(depth)) {
    const Inst& i = at(inst);
    targets.push_back(i.inputs[0]);
    comment += fmt::format("{}{} {}", comment.empty() ? "" : ", ", accumulator(i.reduce).verb,
                           code_.id(i.inputs[0]));
    std::string less;
    if (is_joint(inst) && moments()) {
      comment += ", and of its squares about the mean";
      less = " - " + shift_ + (options_.column ? "[v]" : "");
    } else if (is_joint(inst)) {
      comment += ", and of its exponentials below that";
    }
    const std::string& name = accumulators_.at(inst);
    declarations +=
        fmt::format("cutegen::{} {}{};\n", type(inst), name, options_.column ? "[kVector]" : "");
    const std::string& vector = vectors_.at(inst);
    const bool sums = i.reduce == ReduceKind::sum && !(is_joint(inst) && moments()),
               finds_place = i.reduce == ReduceKind::argmax || i.reduce == ReduceKind::argmin;
    // A vector is rescaled once, and its plain sum is compensated once.
    if ((sums || (is_joint(inst) && !moments())) && !options_.column) {
      vectors += fmt::format("float {}[kVector];\n", vector);
      adds += fmt::format("{}[v] = {};\n", vector, code_.use(i.inputs[0]));
      ends += fmt::format("\n{}.add({});", name, vector);
      continue;
    }
    if (finds_place && !options_.column) {
      vectors += fmt::format("float {}[kVector];\n", vector);
      adds += fmt::format("{}[v] = {};\n", vector, code_.use(i.inputs[0]));
      ends +=
          fmt::format("\n{}.add({}, static_cast<unsigned>(int64_t(j) * kVector));", name, vector);
      continue;
    }
    if (const auto few = few_.find(inst); few != few_.end()) {
      declarations += fmt::format("float {}[kVector] = {{}};\n", few->second);
      adds += fmt::format("{}[v] += {};\n", few->second, code_.use(i.inputs[0]));
      after += fmt::format(
          "  if (i % 4 == 3 || i + 1 == kItems) {{  // a sum of four needs no compensation\n"
          "    CUTE_UNROLL\n"
          "    for (int v = 0; v < kVector; ++v) {0}[v].add({1}[v]), {1}[v] = 0.0f;\n"
          "  }}\n",
          name, few->second);
      continue;
    }
    adds += fmt::format("{}{}.add({}{}{});\n", name, options_.column ? "[v]" : "",
                        code_.use(i.inputs[0]), less,
                        finds_place ? ", static_cast<unsigned>(" + place() + ")" : "");
  }
  if (targets.empty()) return "";
  if (depth == 1) {
    for (const auto& [inst, operand] : values_) targets.push_back(inst);
    adds += keep_values();
  }
  std::string body = vectors + "CUTE_UNROLL\nfor (int v = 0; v < kVector; ++v) {\n" +
                     indent(elements(targets, depth > 1) + adds, 2) + "\n}" + ends;
  return fmt::format("\n// Pass {}: {}.\n", depth, comment) + declarations +
         loop(body, late_loads(targets, depth > 1), depth, after);
}

// Merges what the CTAs of this row wrote in pass `depth`, always in the same order.
std::string Passes::merge(int depth) {
  std::string text = fmt::format("\n// Merges the parts of pass {}.\n", depth);
  const char* start = options_.column ? "team" : "lane";
  const char* step = options_.column ? "kRows" : "kWidth";
  for (int inst : reductions(depth)) {
    const std::string& name = accumulators_.at(inst);
    text +=
        fmt::format("cutegen::{} {}{};\n", type(inst), name, options_.column ? "[kVector]" : "");
    text += fmt::format("for (int64_t p = {}; p < parts; p += {}) {{\n", start, step);
    if (options_.column)
      text += fmt::format(
          "  CUTE_UNROLL\n  for (int v = 0; v < kVector; ++v)\n"
          "    {0}[v].merge({1}[(p * size(across) + column) * kVector + v]);\n",
          name, kept_.at(inst));
    else
      text += fmt::format("  {0}.merge({1}[p * size(across) + row]);\n", name, kept_.at(inst));
    text += "}\n" + result(inst);
  }
  return text;
}

// Writes the statement that stores an output with one value per row.
std::string Passes::row_output(size_t output, const std::string& registers) {
  const FusedOutput& o = fused_.outputs[output];
  const std::string& tensor = outputs_[output];
  if (!options_.column)
    return fmt::format("  {}(0, 0) = cutegen::from_float<{}>({});\n", tensor, type_of(o.operand),
                       code_.use(o.inst));
  if (at(o.inst).kind != InstKind::constant)
    return fmt::format("  cutegen::store({}, {}(_, 0));\n", code_.id(o.inst), tensor);
  return fmt::format(
      "  float {0}[kVector];\n  CUTE_UNROLL\n  for (int v = 0; v < kVector; ++v) {0}[v] = {1};\n"
      "  cutegen::store({0}, {2}(_, 0));\n",
      registers, code_.id(o.inst), tensor);
}

std::string Passes::outputs() {
  std::string rows, results, loops, stores;
  std::vector<int> targets;
  for (size_t i = 0; i < fused_.outputs.size(); ++i) {
    const FusedOutput& output = fused_.outputs[i];
    if (!varies(fused_, output.operand)) {
      rows += row_output(i, registers_[i]);
      continue;
    }
    targets.push_back(output.inst);
    results += fmt::format("{} {}[kVector];\n", value_type(at(output.inst)), registers_[i]);
    loops += fmt::format("{}[v] = {};\n", registers_[i], code_.use(output.inst));
    stores += fmt::format("if (live) cutegen::store({}, {}(_, j));\n", registers_[i], outputs_[i]);
  }
  std::string text;
  if (!rows.empty())
    text += fmt::format(
        "\nif (live && {} == 0{}) {{\n{}}}\n", options_.column ? "team" : "lane",
        options_.split || options_.resident || options_.clustered ? " && part == 0" : "", rows);
  if (targets.empty()) return text;
  std::string body = results + "CUTE_UNROLL\nfor (int v = 0; v < kVector; ++v) {\n" +
                     indent(elements(targets, true) + loops, 2) + "\n}\n" + stores;
  return text + "\n// Computes the results along the row.\n" +
         last_loop(body, late_loads(targets, true));
}

// Reads the values that a row needs once, and computes what depends only on them.
std::string Passes::rows() {
  std::string text;
  for (int inst : leaves(Level::row)) {
    const Inst& i = at(inst);
    const std::string& tensor = inputs_[size_t(i.operand)];
    if (options_.column)
      text += fmt::format("{} {}[kVector];\n", value_type(i), code_.id(inst)) +
              (row_loads_.count(inst)
                   ? row_loads_.at(inst)
                   : fmt::format("cutegen::load({}(_, 0), {});\n", tensor, code_.id(inst)));
    else
      text += fmt::format("const {2} {0} = cutegen::convert<{2}>({1}(0, 0));\n", code_.id(inst),
                          tensor, value_type(i));
  }
  return text + row_values(0) + (moments() ? shift() : "");
}

// Moments are about the row's first element, or about 0 if that element is not finite: subtracting
// it would make every value NaN or infinite.
std::string Passes::shift() {
  const int x = at(joint_->first).inputs[0];
  const bool column = options_.column;
  return fmt::format(
      "const double {0} = double(int64_t(steps){1});\n"
      "float {2}{3};\n"
      "if (steps > 0) {{\n"
      "  const Index j = 0;\n"
      "  const Elements e = read(j);\n"
      "{4}{5}"
      "}}\n",
      exact_count_, column ? "" : " * kVector", shift_, column ? "[kVector] = {}" : " = 0.0f",
      column ? "  CUTE_UNROLL\n  for (int v = 0; v < kVector; ++v) {\n" : "  const int v = 0;\n",
      indent(elements({x}, false) + fmt::format("{0}{1} = cutegen::is_finite({2}) ? {2} : 0.0f;\n",
                                                shift_, column ? "[v]" : "", code_.use(x)),
             column ? 4 : 2) +
          (column ? "\n  }\n" : "\n"));
}

// Writes the loads of all elements that registers keep. A branch for each step of a row would make
// the conversion of an element delay the next load.
std::string Passes::fill_cache() const {
  if (options_.column)
    return fmt::format(
        "Elements cache[kItems];\nCUTE_UNROLL\n"
        "for (int i = 0; i < kItems; ++i) {{\n"
        "  const Index j = {} + i * {};\n"
        "  if (j < steps) cache[i] = read(j);\n}}\n",
        start(), step());
  return fmt::format(
      "Elements cache[kItems];\n"
      "if (steps > 0) {{\n"
      "  CUTE_UNROLL\n"
      "  for (int i = 0; i < kItems; ++i) {{  // no branches, so all loads are in flight together\n"
      "    const Index j = {} + i * {};\n"
      "    cache[i] = read(j < steps ? j : steps - 1);\n  }}\n}}\n",
      start(), step());
}

std::string Passes::text() {
  std::string text = rows();
  if (options_.cached) text += fill_cache();
  for (int d = 1; d <= depth(); ++d) {
    text += pass(d);
    for (int inst : reductions(d)) text += result(inst);
    text += row_values(d);
  }
  return text + outputs();
}

std::string Passes::partial(int depth) {
  std::string text = rows();
  for (int before = 1; before < depth; ++before) text += merge(before) + row_values(before);
  text += pass(depth);
  for (int inst : reductions(depth)) text += keep(inst);
  return text;
}

std::string Passes::finish() {
  std::string text = rows();
  for (int d = 1; d <= depth(); ++d) text += merge(d) + row_values(d);
  return text + outputs();
}

}  // namespace cutegen::recipes
