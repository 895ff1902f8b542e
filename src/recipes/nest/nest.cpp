// SPDX-License-Identifier: Apache-2.0
#include "recipes/nest/nest.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"

namespace cutegen::recipes {
namespace {

// Whether the operand has neither `axis` nor the next one, or has both side by side and the inner
// one whole.
bool walks_alike(const Fused& fused, const Operand& operand, int axis) {
  int p = position(operand, axis), q = position(operand, axis + 1);
  if (p < 0) return q < 0;
  if (!operand.steps.empty()) return false;
  const bool whole =
      !operand.sliced() || q < 0 || operand.shape[size_t(q)] == fused.axes[size_t(axis) + 1].size;
  const auto steps = [&](int place) {
    return operand.sliced() && place >= 0 && operand.starts[size_t(place)].step > 1;
  };
  return q == p + 1 && whole && !steps(p) && !steps(q);
}

bool mergeable(const Fused& fused, size_t axis) {
  if (fused.axes[axis].reduced != fused.axes[axis + 1].reduced) return false;
  for (const Operand& operand : fused.inputs)
    if (!walks_alike(fused, operand, int(axis))) return false;
  for (const FusedOutput& output : fused.outputs)
    if (!walks_alike(fused, output.operand, int(axis))) return false;
  return true;
}

// Whether a kernel must access elements one by one along a last axis with this start.
bool one_by_one(const Start& start) {
  return start.index >= 0 || start.step > 1;
}

// Whether a whole vector reads the same element of the operand. The operand then needs no alignment
// for vectors.
bool stays_inside(const Fused& fused, const Nest& nest, const Operand& operand) {
  const Loop& inner = nest.reduced_inside ? nest.reduced.back() : nest.kept.back();
  return !inner.axes.empty() && stride(fused, operand, inner).move == Move::none;
}

int64_t total(const std::vector<Loop>& loops) {
  int64_t n = 1;
  for (const Loop& loop : loops) n *= loop.size;
  return n;
}

// Whether the operand has all elements of a row, one after another.
bool whole_rows(const Fused& fused, const Nest& nest, const Operand& operand) {
  int before = -1;
  for (const Loop& loop : nest.reduced)
    for (int axis : loop.axes) {
      const int p = position(operand, axis);
      if (p < 0 || (before >= 0 && p != before + 1)) return false;
      before = p;
    }
  return stride(fused, operand, nest.reduced.back()).move == Move::next;
}

// Returns the innermost axis whose size is not 1 at every shape, or the last axis if all sizes are
// 1.
int innermost_axis(const Fused& fused) {
  for (size_t i = fused.axes.size(); i-- > 0;)
    if (fused.axes[i].extent != "1") return int(i);
  return int(fused.axes.size()) - 1;
}

// Drops loops that take one step at every shape. The loop of `innermost` stays, and so does the
// last loop of its kind.
void drop_ones(std::vector<Loop>& loops, int innermost) {
  for (size_t i = loops.size(); i-- > 0;)
    if (loops.size() > 1 && loops[i].extent == "1" && loops[i].axes.back() != innermost)
      loops.erase(loops.begin() + std::ptrdiff_t(i));
}

bool differs_along(const Nest& nest, const Operand& operand) {
  return std::any_of(nest.reduced.begin(), nest.reduced.end(), [&](const Loop& loop) {
    return std::any_of(loop.axes.begin(), loop.axes.end(),
                       [&](int axis) { return position(operand, axis) >= 0; });
  });
}

bool walks_in_runs(const Fused& fused, const Nest& nest) {
  if (!nest.reduced_inside || nest.reduced.size() < 2) return false;
  for (const Operand& operand : fused.inputs)
    if (operand.sliced()) return false;
  for (const Operand& operand : fused.inputs)
    if (differs_along(nest, operand) && !whole_rows(fused, nest, operand) &&
        !one_a_run(fused, nest, operand))
      return false;
  return std::all_of(fused.outputs.begin(), fused.outputs.end(), [&](const FusedOutput& output) {
    return !differs_along(nest, output.operand) || whole_rows(fused, nest, output.operand);
  });
}

}  // namespace

bool one_a_run(const Fused& fused, const Nest& nest, const Operand& operand) {
  return differs_along(nest, operand) &&
         stride(fused, operand, nest.reduced.back()).move == Move::none;
}

int64_t Nest::rows() const {
  return total(kept);
}
int64_t Nest::length() const {
  return total(reduced);
}
int64_t Nest::inner() const {
  if (!reduced_inside) return kept.back().size;
  return in_runs ? length() : reduced.back().size;
}

int64_t turns_in(const Nest& nest, const Operand& operand) {
  if (nest.reduced_inside || operand.starts.empty() || operand.gathered() || operand.reshaped)
    return 1;
  const int64_t step = operand.starts.back().step;
  const auto& along = nest.kept.back().axes;
  const bool inner = !along.empty() && operand.axes.back() == along.back();
  return inner && (step == 2 || step == 4) ? step : 1;
}

bool turns_together(const Operand& a, const Operand& b) {
  if (a.tensor != b.tensor || a.axes != b.axes || a.reshaped || b.reshaped) return false;
  if (a.starts.size() != b.starts.size() || a.gathered() || b.gathered()) return false;
  for (size_t i = 0; i < a.starts.size(); ++i)
    if (a.starts[i].step != b.starts[i].step ||
        (a.starts[i].at != b.starts[i].at && i + 1 < a.starts.size()))
      return false;
  return a.starts.back().at < a.starts.back().step && b.starts.back().at < b.starts.back().step;
}

Nest make_nest(const Fused& fused) {
  Nest nest;
  for (size_t i = 0; i < fused.axes.size(); ++i) {
    const Axis& axis = fused.axes[i];
    auto& loops = axis.reduced ? nest.reduced : nest.kept;
    if (i > 0 && mergeable(fused, i - 1)) {
      loops.back().extent += "*" + axis.extent;
    } else {
      loops.emplace_back();
      loops.back().extent = axis.extent;
    }
    loops.back().axes.push_back(int(i));
    loops.back().size *= axis.size;
  }
  const int innermost = innermost_axis(fused);
  nest.reduced_inside = innermost >= 0 && fused.axes[size_t(innermost)].reduced;
  for (auto* loops : {&nest.kept, &nest.reduced}) drop_ones(*loops, innermost);
  if (nest.kept.empty()) nest.kept.emplace_back();  // one row, one element
  nest.in_runs = walks_in_runs(fused, nest);
  return nest;
}

std::vector<int64_t> vector_widths(const Fused& fused, int64_t size) {
  size_t widest = 1, narrowest = 8;  // bytes, without one-byte masks
  auto add = [&](DType dtype) {
    widest = std::max(widest, size_of(dtype));
    if (size_of(dtype) > 1) narrowest = std::min(narrowest, size_of(dtype));
  };
  // An operand with one element for a whole vector, such as an index that chooses a row, does not
  // limit the width.
  const Nest nest = make_nest(fused);
  const Loop& inner = nest.reduced_inside ? nest.reduced.back() : nest.kept.back();
  const auto add_moving = [&](const Operand& operand) {
    if (operand.counts) return;
    if (inner.axes.empty() || stride(fused, operand, inner).move != Move::none) add(operand.dtype);
  };
  for (const FusedOutput& output : fused.outputs) add_moving(output.operand);
  for (const Operand& operand : fused.inputs) add_moving(operand);
  if (widest == 1) narrowest = 2;
  std::vector<int64_t> widths;
  // One access moves the elements of all interleaved lists.
  const auto add_turns = [&](const Operand& operand) {
    if (const int64_t turns = turns_in(nest, operand); turns > 1)
      widest = std::max(widest, size_of(operand.dtype) * size_t(turns));
  };
  for (const Operand& operand : fused.inputs) add_turns(operand);
  for (const FusedOutput& output : fused.outputs) add_turns(output.operand);
  const auto aligned = [&](int64_t width) {
    const auto fits = [&](const Operand& operand) {
      return !operand.sliced() || one_by_one(operand.starts.back()) ||
             stays_inside(fused, nest, operand) ||
             (operand.shape.back() % width == 0 && operand.starts.back().at % width == 0);
    };
    return std::all_of(fused.inputs.begin(), fused.inputs.end(), fits) &&
           std::all_of(fused.outputs.begin(), fused.outputs.end(),
                       [&](const FusedOutput& output) { return fits(output.operand); });
  };
  for (int64_t width : {8, 4, 2, 1})
    if (size % width == 0 && aligned(width) && width * int64_t(narrowest) <= 16 &&
        width * int64_t(widest) <= 32)
      widths.push_back(width);
  return widths;
}

std::string seen_size(const Fused& fused, const Operand& operand, size_t axis) {
  const int along = operand.axes[axis];
  return along < 0 ? std::to_string(operand.shape[axis]) : fused.axes[size_t(along)].extent;
}

std::string size_text(const Fused& fused, const Operand& operand, size_t axis) {
  if (operand.reshaped) return seen_size(fused, operand, axis);
  if (operand.kept) return operand.extents[axis];
  return fmt::format("dim({},{})", fused.names.at(operand.tensor), axis);
}

std::string stride_text(const Fused& fused, const Operand& operand, size_t axis) {
  if (operand.reshaped) {
    std::string product = "1";
    for (size_t i = axis + 1; i < operand.axes.size(); ++i)
      product += "*(" + seen_size(fused, operand, i) + ")";
    return product;
  }
  if (!operand.kept) return fmt::format("stride({},{})", fused.names.at(operand.tensor), axis);
  std::string product = "1";
  for (size_t i = axis + 1; i < operand.extents.size(); ++i)
    product += "*(" + operand.extents[i] + ")";
  return product;
}

namespace {

// Where a slice begins along one axis.
std::string start_along(const Fused& fused, const Operand& operand, size_t axis) {
  const Start& start = operand.starts[axis];
  if (!start.from.empty()) return "(" + start.from + ")";
  if (start.from_end > 0)
    return fmt::format("({}-{})", size_text(fused, operand, axis), start.from_end);
  const int along = operand.axes[axis];
  if (start.to_end && along >= 0)
    return fmt::format("({}-({}))", size_text(fused, operand, axis),
                       fused.axes[size_t(along)].extent);
  if (start.multiple > 0 && along >= 0)
    return fmt::format("{}*({})", start.multiple, fused.axes[size_t(along)].extent);
  return std::to_string(start.at);
}

}  // namespace

std::string start_text(const Fused& fused, const Operand& operand) {
  std::string sum;
  for (size_t i = 0; i < operand.starts.size(); ++i)
    if (operand.starts[i].at > 0 || !operand.starts[i].from.empty())
      sum += fmt::format("{}{}*({})", sum.empty() ? "" : "+", start_along(fused, operand, i),
                         stride_text(fused, operand, i));
  return sum.empty() ? "0" : sum;
}

std::string shift_text(const Fused& fused, const Start& start) {
  const int axis = fused.inputs[size_t(start.index)].axes.back();
  if (axis < 0) return start.shift;
  return replace_all(start.shift, "@", "(" + fused.axes[size_t(axis)].extent + ")");
}

std::string width_text(const Fused& fused, const std::string& size, int64_t wanted) {
  if (wanted == 1) return "1";
  std::vector<std::string> multiples{size};
  const auto add = [&](const std::string& expression) {
    if (std::find(multiples.begin(), multiples.end(), expression) == multiples.end())
      multiples.push_back(expression);
  };
  const Nest nest = make_nest(fused);
  const auto add_slice = [&](const Operand& operand) {
    if (!operand.sliced() || one_by_one(operand.starts.back()) ||
        stays_inside(fused, nest, operand))
      return;
    const size_t last = operand.starts.size() - 1;
    add(size_text(fused, operand, last));
    if (operand.starts[last].at > 0 || !operand.starts[last].from.empty())
      add(start_along(fused, operand, last));
  };
  for (const Operand& operand : fused.inputs) add_slice(operand);
  for (const FusedOutput& output : fused.outputs) add_slice(output.operand);
  const auto factor = [](const std::string& expression) {
    const bool word = expression.find_first_of("+-*/()") == std::string::npos;
    return word ? expression : "(" + expression + ")";
  };
  std::string text = std::to_string(wanted);
  for (auto it = multiples.rbegin(); it != multiples.rend(); ++it) {
    const std::string inner = it == multiples.rbegin() ? text : fmt::format("({})", text);
    text = fmt::format("{} % {} == 0 ? {} : 1", factor(*it), wanted, inner);
  }
  return text;
}

Stride stride(const Fused& fused, const Operand& operand, const Loop& loop) {
  int p = loop.axes.empty() ? -1 : position(operand, loop.axes.back());
  if (p < 0) return {.move = Move::none, .expression = ""};
  if (!operand.steps.empty()) {
    const int64_t step = operand.steps[size_t(p)];
    if (step == 1) return {.move = Move::next, .expression = ""};
    return {.move = Move::stride, .expression = std::to_string(step)};
  }
  std::string product;
  bool last = true, hidden = false;  // hidden: an axis that the nest does not have
  for (size_t i = size_t(p) + 1; i < operand.axes.size(); ++i) {
    if (operand.axes[i] < 0) {
      hidden |= operand.shape[i] != 1;
      last &= operand.shape[i] == 1;
      if (operand.shape[i] == 1) continue;
    } else if (operand.shape[i] == 1 && fused.axes[size_t(operand.axes[i])].extent == "1") {
      continue;
    }
    last = false;
    product += (product.empty() ? "(" : "*(") + seen_size(fused, operand, i) + ")";
  }
  if (const int64_t step = operand.sliced() ? operand.starts[size_t(p)].step : 1; step > 1)
    return {.move = Move::stride,
            .expression = fmt::format("{}*({})", step, stride_text(fused, operand, size_t(p)))};
  if (last) return {.move = Move::next, .expression = ""};
  if (operand.kept && (operand.sliced() || hidden))
    return {.move = Move::stride, .expression = stride_text(fused, operand, size_t(p))};
  if (operand.reshaped || operand.kept) return {.move = Move::stride, .expression = product};
  return {.move = Move::stride,
          .expression = fmt::format("stride({},{})", fused.names.at(operand.tensor), p)};
}

int shared_loop(const Fused& fused, const Nest& nest) {
  int best = -1;
  size_t most = 0;
  for (const Operand& operand : fused.inputs)
    if (operand.gathered()) return best;
  const auto moves = [&](const Operand& operand, size_t loop) {
    return stride(fused, operand, nest.kept[loop]).move != Move::none;
  };
  for (const FusedOutput& output : fused.outputs)
    if (output.operand.gathered() || !moves(output.operand, nest.kept.size() - 1)) return best;
  for (size_t loop = 0; loop + 1 < nest.kept.size(); ++loop) {
    size_t bytes = 0;
    for (const Operand& operand : fused.inputs)
      if (!operand.counts && moves(operand, nest.kept.size() - 1) && !moves(operand, loop))
        bytes += size_of(operand.dtype);
    if (bytes >= most && bytes > 0 && nest.kept[loop].size > 1) best = int(loop), most = bytes;
  }
  return best;
}

}  // namespace cutegen::recipes
