// SPDX-License-Identifier: Apache-2.0
// Reductions and scans of a Builder.
#include <fmt/format.h>

#include <algorithm>

#include "recipes/fuse/operators.h"

namespace cutegen::recipes {
namespace {

// Whether indices choose elements of each row from a result that varies along the reduced axes. The
// kernel then reads only these elements again.
bool takes_elements(Builder& builder, const Reduction& r, const View& view) {
  NestWriter& nest = builder.nest();
  if (!r.elementwise || r.scan || view.reshaped || view.starts.empty()) return false;
  if (r.shape.size() != nest.fused().axes.size()) return false;
  for (size_t i = 0; i < view.axes.size(); ++i) {
    const Start& start = view.starts[i];
    const bool reduced = std::find(r.axes.begin(), r.axes.end(), int(i)) != r.axes.end();
    if (start.at > 0 || reduced != (start.index >= 0)) return false;
    if (!reduced && view.axes[i] != int(i) && r.shape[i] != 1) return false;
  }
  return true;
}

// The reduction must run over the nest's own axes, and its result must lie along the kept ones.
Result<void> check_axes(Builder& builder, const Node& node, const Reduction& r, const View& view) {
  NestWriter& nest = builder.nest();
  auto clash = [&] {
    return unsupported_error(node.op + ": its result is used along axes that it does not have",
                             node.id);
  };
  if (view.reshaped) return unsupported_error("a reshape of a reduced value", node.id);
  if (!view.starts.empty()) return unsupported_error("a slice of a reduced value", node.id);
  if (r.shape.size() != nest.fused().axes.size()) return clash();
  size_t v = 0;
  for (size_t e = 0; e < nest.fused().axes.size(); ++e) {
    bool reduced = std::find(r.axes.begin(), r.axes.end(), int(e)) != r.axes.end();
    if (reduced && !r.keepdim && !r.elementwise) continue;
    if (v >= view.axes.size()) return clash();
    int axis = view.axes[v++];
    bool may_drop = r.shape[e] == 1 || (reduced && !r.elementwise);
    if (axis != int(e) && !(axis == -1 && may_drop)) return clash();
  }
  return {};
}

// The view of a value with one element for each row.
View rows_view(Builder& builder) {
  NestWriter& nest = builder.nest();
  View rows;
  for (size_t i = 0; i < nest.fused().axes.size(); ++i)
    if (!nest.fused().axes[i].reduced) rows.axes.push_back(int(i));
  return rows;
}

// Returns an instruction that reads one more element of the row, at the position that an index
// tensor gives. For a position outside the row, its value is 0. Returns -1 if the kernel cannot
// read the element there.
int read_picked(Builder& builder, const Reduction& r, int index) {
  NestWriter& nest = builder.nest();
  const Inst& leaf = nest.fused().insts[size_t(index)];
  if (!nest.region().slices || r.axes.size() != 1 || leaf.kind != InstKind::leaf || !leaf.integer)
    return -1;
  View at;
  for (size_t i = 0; i < nest.fused().axes.size(); ++i)
    at.axes.push_back(nest.fused().axes[i].reduced ? -1 : int(i));
  at.starts.resize(at.axes.size());
  at.starts[size_t(r.axes[0])].index = leaf.operand;
  at.starts[size_t(r.axes[0])].nearest = true;
  const std::string before = nest.cut();
  auto element = builder.value(r.input, at);
  nest.set_cut(before);
  if (!element || nest.fused().insts[size_t(*element)].level != Level::row ||
      nest.fused().insts[size_t(*element)].depth == 0)
    return -1;
  return nest.make("picked", "({1} >= 0 && {1} < {2} ? {0} : 0.0f)",
                   {*element, index, nest.count()});
}

// A sum of integers or truth values, or whether any or all values of a row are true.
Result<int> count_row(Builder& builder, const Node& node, const Reduction& r, int x) {
  NestWriter& nest = builder.nest();
  if (r.base == "sum" && node.outputs.front().dtype != DType::i64)
    return unsupported_error(
        fmt::format("{} of dtype {}", node.op, to_string(node.outputs.front().dtype)), node.id);
  if (r.base == "sum") return nest.reduce("total", ReduceKind::total, x);
  const bool all = r.base == "all";
  const int hit = nest.make("hit", all ? "({0} == 0)" : "({0} != 0)", {x}, true);
  if (r.base == "count_nonzero") return nest.reduce("total", ReduceKind::total, hit);
  return nest.make(r.base, all ? "({0} == 0)" : "({0} != 0)",
                   {nest.reduce("hits", ReduceKind::total, hit)}, true);
}

// One pass computes all scans, so an earlier stage must store the operand of a scan that depends on
// another scan.
Result<int> add_scan(Builder& builder, const Node& node, const Reduction& r, int input) {
  NestWriter& nest = builder.nest();
  if (nest.fused().insts[size_t(input)].depth > 0) {
    nest.cut_before(r.input);
    return unsupported_error(node.op + " of a scan", node.id);
  }
  const Inst& kind = nest.fused().insts[size_t(input)];
  if (r.scan->takes_integers() && !kind.integer)
    input = nest.make("number", "int64_t({0})", {input}, false, true);
  Inst inst;
  inst.integer = r.scan->gives_integers();
  inst.kind = InstKind::scan;
  inst.level = Level::element;
  inst.name = "scan";
  inst.scan = *r.scan;
  inst.depth = 1;
  inst.inputs = {input};
  nest.fused().insts.push_back(std::move(inst));
  return int(nest.fused().insts.size()) - 1;
}

// Adds weight * normalized + bias; weight and bias lie along the last axes.
Result<int> add_affine(Builder& builder, const Reduction& r, const View& view, int normalized) {
  NestWriter& nest = builder.nest();
  for (size_t i = 0; i < r.affine.size(); ++i) {
    if (!r.affine[i]) continue;
    CG_TRY(int w,
           builder.value(*r.affine[i], broadcast(nest.shape_of(*r.affine[i]), r.shape, view)));
    normalized = nest.make(i == 0 ? "scaled" : "shifted", i == 0 ? "{0} * {1}" : "{0} + {1}",
                           {normalized, w});
  }
  return normalized;
}

}  // namespace

Result<int> build_reduction(Builder& builder, const Node& node, const Reduction& r,
                            const View& view) {
  NestWriter& nest = builder.nest();
  DType in = nest.graph().find(r.input)->dtype, out = node.outputs.front().dtype;
  const bool counts =
      r.base == "sum" || r.base == "count_nonzero" || r.base == "any" || r.base == "all";
  const bool best = r.base == "amax" || r.base == "amin" || r.base == "max" || r.base == "min";
  const bool integers = best && is_integer(in);
  bool whole_numbers = is_integer(in) && !counts && !best;
  bool place = r.base == "argmax" || r.base == "argmin";
  if (!r.scan && (whole_numbers || (!is_floating(out) && !place && !counts && !integers)))
    return unsupported_error(
        fmt::format("{} of dtype {}", node.op, to_string(whole_numbers ? in : out)), node.id);
  const bool takes = takes_elements(builder, r, view);
  if (auto fits = check_axes(builder, node, r, view); !fits && !takes)
    return nest.cut_at(node, fits.error().message);
  View whole;
  for (size_t i = 0; i < nest.fused().axes.size(); ++i) whole.axes.push_back(int(i));
  CG_TRY(int x, builder.value(r.input, whole));
  if (r.scan) return add_scan(builder, node, r, x);
  if (counts && !is_floating(out)) return count_row(builder, node, r, x);
  if (integers) {
    if (!nest.fused().insts[size_t(x)].integer)
      x = nest.make("number", "int64_t({0})", {x}, false, true);
    const bool most = r.base == "amax" || r.base == "max";
    return nest.reduce("best", most ? ReduceKind::largest : ReduceKind::smallest, x);
  }
  if (r.index) {
    CG_TRY(int index, builder.value(*r.index, rows_view(builder)));
    if (const int element = read_picked(builder, r, index); element >= 0) return element;
    // Sums the row with all elements but the chosen one set to zero.
    x = nest.make("chosen", "({0} == {1} ? {2} : 0.0f)", {nest.position(), index, x});
  }
  int at = x;
  if (takes) {
    CG_TRY(at, builder.value(r.input, view));
  }
  int result = expand(nest, r, x, at);
  if (result < 0)
    return unsupported_error(fmt::format("{} of order {}", node.op, r.parameter), node.id);
  return add_affine(builder, r, takes ? view : whole, result);
}

// cutegen.inside(x, low, high): a kernel knows the position among all elements of a row, so the row
// must consist of the axes behind the first two.
Result<int> build_inside(Builder& builder, const Node& node, const View& view) {
  NestWriter& nest = builder.nest();
  const std::string from = reference(argument(node, 0, "")).value_or("");
  const Json low = argument(node, 1, ""), high = argument(node, 2, "");
  const size_t rank = view.axes.size();
  bool rows = !view.reshaped && view.starts.empty() && rank == nest.fused().axes.size();
  for (size_t i = 0; rows && i < rank; ++i)
    rows = view.axes[i] == int(i) && nest.fused().axes[i].reduced == (i >= 2);
  if (!rows) return nest.cut_at(node, node.op + ": its axes are not the reduced ones");
  CG_TRY(int x, builder.value(from, view));
  std::vector<int> inputs{x, nest.position()};
  std::string at = "int({1})", test;
  for (size_t axis = rank; axis-- > 2;) {
    CG_TRY(int extent, builder.sizes().size(fmt::format("{} {}", axis, from)));
    const std::string wide = fmt::format("int({{{}}})", inputs.size());
    inputs.push_back(extent);
    const std::string here = axis == 2 ? at : fmt::format("{} % {}", at, wide);
    test += fmt::format("{0}{1} >= {2} && {1} < {3} - {4}", test.empty() ? "" : " && ", here,
                        low.at(axis - 2).get<int64_t>(), wide, high.at(axis - 2).get<int64_t>());
    at = fmt::format("{} / {}", at, wide);
  }
  return nest.make("inside", fmt::format("({} ? {{0}} : 0.0f)", test), std::move(inputs));
}

}  // namespace cutegen::recipes
