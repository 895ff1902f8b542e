// SPDX-License-Identifier: Apache-2.0
// Operators that look for a place in an order: searches, histograms, medians.
#include <fmt/format.h>

#include <map>

#include "recipes/composites/expansion.h"

namespace cutegen::recipes {
namespace {

// The number of boundaries that lie before each value. NaN comes behind all of them.
bool counted(Expansion& e, const Value& sorted, const Value& x, bool right) {
  const Shape shape = e.result().shape;
  const bool lines = sorted.shape.size() > 1;
  if (lines && sorted.shape.size() != x.shape.size()) return false;
  Shape pairs = x.shape, thin = x.shape, row(x.shape.size() + 1, 1);
  pairs.push_back(sorted.shape.back());
  thin.push_back(1);
  row.back() = sorted.shape.back();
  for (size_t i = 0; lines && i + 1 < sorted.shape.size(); ++i) row[i] = sorted.shape[i];
  const std::string value = e.as(x.dtype, e.view(x.name, thin)),
                    bound = e.as(sorted.dtype, e.view(sorted.name, row));
  const std::string behind = e.map(right ? "gt.Tensor" : "ge.Tensor",
                                   {tensor_ref(bound), tensor_ref(value)}, pairs, DType::boolean);
  const std::string before =
      e.map("logical_not.default", {tensor_ref(behind)}, pairs, DType::boolean);
  const bool narrow = e.result().dtype != DType::i64;
  const std::string count =
      e.write("count", "aten.sum.dim_IntList", {tensor_ref(before), Json::array({-1}), false},
              shape, narrow ? "" : e.result().name);
  if (!narrow) return true;
  (void)e.as(DType::i64, count);
  e.write("narrow", "aten._to_copy.default", {tensor_ref(count)}, shape, e.result().name);
  return true;
}

bool to_the_right(const Expansion& e, size_t index) {
  const Json& kwargs = e.node.kwargs;
  return kwargs.value("side", Json()) == "right" || kwargs.value("right", Json()) == true ||
         e.arg(index) == true;
}

// searchsorted(sorted, x, *, out_int32, right, side, sorter)
bool searchsorted(Expansion& e) {
  const Value *sorted = e.input(0), *x = e.input(1);
  if (!sorted || !x || !e.node.kwargs.value("sorter", Json()).is_null()) return false;
  return counted(e, Value(*sorted), Value(*x), to_the_right(e, 3));
}

// bucketize(x, boundaries, *, out_int32, right)
bool bucketize(Expansion& e) {
  const Value *x = e.input(0), *bounds = e.input(1);
  if (!x || !bounds) return false;
  return counted(e, Value(*bounds), Value(*x), to_the_right(e, 3));
}

// histc(x, bins, min, max)
bool histogram(Expansion& e) {
  const Value* x = e.input(0);
  const auto bins = e.number_at(1), low = e.number_at(2), high = e.number_at(3);
  constexpr double kMostBins = 1024;
  if (!x || !bins || !low || !high || *high <= *low || *bins > kMostBins) return false;
  int64_t all = 1;
  for (int64_t size : x->shape) all *= size;
  const Shape flat{all}, pairs{int64_t(*bins), all};
  const std::string seen = x->shape.size() == 1 ? x->name : e.as(x->dtype, e.view(x->name, flat));
  const std::string bin = e.map("histogram_bin", {tensor_ref(seen), *low, *high, *bins}, flat);
  const std::string number =
      e.view(e.write("number", kCounting, {0.0, 1.0}, {int64_t(*bins)}), {int64_t(*bins), 1});
  const std::string hit =
      e.map("eq.Tensor", {tensor_ref(number), tensor_ref(bin)}, pairs, DType::boolean);
  const std::string one = e.map("where.Scalar", {tensor_ref(hit), 1, 0}, pairs);
  e.write("counts", "aten.sum.dim_IntList", {tensor_ref(one), Json::array({1}), false},
          e.result().shape, e.result().name);
  return true;
}

// Writes the element at place `at` (an expression of the axis' size "@") of each sorted row, and
// its position. With `undefined`, a row with a NaN gives NaN.
bool ordered(Expansion& e, const Value& x, size_t dim, const std::string& at, int64_t official,
             bool keepdim, bool undefined) {
  const std::string sorted = e.node.id + "~sorted", positions = e.node.id + "~positions";
  e.sort(x, int64_t(dim), sorted, positions);
  Shape one = x.shape;
  one[dim] = 1;
  const Shape to = e.result().shape;
  const auto element = [&](const std::string& from, DType dtype, const std::string& where,
                           int64_t place) {
    Json axes = Json::array(), sizes = Json::array();
    for (size_t i = 0; i < one.size(); ++i) {
      axes.push_back(i == dim ? Json{Json::array(), where, place}
                              : Json{Json::array({Json{i, 1}}), 0});
      sizes.push_back(i == dim ? "1" : "");
    }
    return e.as(dtype, e.write("element", kAffine, {tensor_ref(from), axes, sizes, nullptr}, one));
  };
  const auto put = [&](const std::string& from, size_t output) {
    e.write("result", keepdim ? "aten.view.default" : "aten.squeeze.dim",
            {tensor_ref(from), keepdim ? Json(to) : Json(int64_t(dim))}, to, e.result(output).name);
  };
  if (e.is_read(0)) {
    std::string value = element(sorted, x.dtype, at, official);
    if (undefined) {
      const std::string last =
          element(sorted, x.dtype, fmt::format("@{}-1", dim), x.shape[dim] - 1);
      const std::string nan = e.map("isnan.default", {tensor_ref(last)}, one, DType::boolean);
      value =
          e.map("where.self", {tensor_ref(nan), tensor_ref(last), tensor_ref(value)}, one, x.dtype);
    }
    put(value, 0);
  }
  if (e.is_read(1)) put(element(positions, DType::i64, at, official), 1);
  return true;
}

// median(x, dim, keepdim): the lower one of two elements in the middle.
bool median(Expansion& e) {
  const Value* x = e.input(0);
  if (!x || !is_floating(x->dtype) || x->shape.empty()) return false;
  if (e.node.op == "aten.median.default") {
    int64_t all = 1;
    for (int64_t size : x->shape) all *= size;
    const Value flat{
        .name = x->shape.size() == 1 ? x->name : e.as(x->dtype, e.view(x->name, {all})),
        .dtype = x->dtype,
        .shape = {all}};
    return ordered(e, flat, 0, "(@0-1)/2", (all - 1) / 2, false, true);
  }
  const auto dim = e.axis(1, x->shape.size());
  if (!dim) return false;
  return ordered(e, Value(*x), *dim, fmt::format("(@{}-1)/2", *dim), (x->shape[*dim] - 1) / 2,
                 e.arg(2) == true, true);
}

// kthvalue(x, k, dim, keepdim)
bool kth_value(Expansion& e) {
  const Value* x = e.input(0);
  const auto k = e.number_at(1);
  const auto dim = e.axis(2, x);
  if (!dim || !k || !is_floating(x->dtype) || !e.node.sizes.empty()) return false;
  const int64_t at = int64_t(*k) - 1;
  return ordered(e, Value(*x), *dim, std::to_string(at), at, e.arg(3) == true, false);
}

}  // namespace

Rule search_rule(const std::string& base) {
  static const std::map<std::string, Rule> rules{{"searchsorted", searchsorted},
                                                 {"bucketize", bucketize},
                                                 {"histc", histogram},
                                                 {"median", median},
                                                 {"kthvalue", kth_value}};
  const auto rule = rules.find(base);
  return rule == rules.end() ? nullptr : rule->second;
}

}  // namespace cutegen::recipes
