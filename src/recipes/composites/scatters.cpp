// SPDX-License-Identifier: Apache-2.0
// Operators that write elements at indices: all become cutegen.scatter.
#include <algorithm>
#include <limits>
#include <map>

#include "recipes/composites/expansion.h"
#include "recipes/graph/reshape.h"

namespace cutegen::recipes {
namespace {

// If several elements have the same place, the last one counts, as in PyTorch on a CPU.
// cutegen.scatter finds its position, and the result `name` reads the element there.
bool stored(Expansion& e, const std::string& into, const std::string& from, int64_t axis,
            const std::string& index, bool along, const std::string& name) {
  const Value self = *e.find(into), source = *e.find(from), places = *e.find(index);
  const auto dim = size_t(axis);
  for (size_t i = 0; along && i < self.shape.size(); ++i)
    if (i != dim && places.shape[i] != self.shape[i]) return false;
  if (source.shape[dim] < 1) return false;
  const DType i64 = DType::i64;
  const Shape all = self.shape, one{self.shape[dim]};
  const Shape to = along ? all : one;
  std::string none;
  if (along) {
    const std::string same =
        e.map("eq.Tensor", {tensor_ref(into), tensor_ref(into)}, all, DType::boolean);
    none = e.map("where.Scalar", {tensor_ref(same), -1, -1}, all, i64);
  } else {
    const std::string zero = e.map("mul.Scalar", {tensor_ref(e.counting(self, dim)), 0}, one, i64);
    none = e.map("sub.Scalar", {tensor_ref(zero), 1}, one, i64);
  }
  std::string position = e.counting(places, along ? dim : 0);
  if (along) {
    Shape thin(places.shape.size(), 1);
    thin[dim] = places.shape[dim];
    position = e.as(i64, e.view(position, thin));
    position = e.as(i64, e.write("positions", "aten.expand.default",
                                 {tensor_ref(position), Json(places.shape)}, places.shape));
  }
  const std::string last =
      e.as(i64, e.write("last", kScatter,
                        {tensor_ref(none), tensor_ref(position), along ? axis : 0,
                         tensor_ref(index), along, "amax", false},
                        to));
  std::string value;
  if (along) {
    const std::string inside =
        e.map("remainder.Scalar", {tensor_ref(last), source.shape[dim]}, all, i64);
    value = e.as(source.dtype, e.write("value", "aten.take_along_dim.default",
                                       {tensor_ref(from), tensor_ref(inside), axis}, all));
  } else {
    Json list = Json::array();
    for (size_t i = 0; i < dim; ++i) list.push_back(nullptr);
    list.push_back(tensor_ref(last));
    value =
        e.as(source.dtype, e.write("value", "aten.index.Tensor", {tensor_ref(from), list}, all));
  }
  std::string found = e.map("ge.Scalar", {tensor_ref(last), 0}, to, DType::boolean);
  if (!along) {
    Shape thin(all.size(), 1);
    thin[dim] = all[dim];
    found = e.as(DType::boolean, e.view(found, thin));
  }
  e.as(self.dtype, e.write("stored", "aten.where.self",
                           {tensor_ref(found), tensor_ref(value), tensor_ref(into)}, all, name));
  return true;
}

// Truth values take part as integers.
bool stored_bits(Expansion& e, const std::string& into, const std::string& from, int64_t axis,
                 const std::string& index, bool along) {
  const Shape all = e.find(into)->shape, part = e.find(from)->shape, places = e.find(index)->shape;
  const auto dim = size_t(axis);
  for (size_t i = 0; along && i < all.size(); ++i)
    if (i != dim && places[i] != all[i]) return false;
  if (part[dim] < 1) return false;
  const auto number = [&](const std::string& value, const Shape& shape) {
    return e.as(DType::i64, e.write("number", "aten._to_copy.default", {tensor_ref(value)}, shape));
  };
  const std::string whole = number(into, all), source = number(from, part),
                    made = e.result().name + "~bits";
  if (!stored(e, whole, source, axis, index, along, made)) return false;
  e.write("bits", "aten.ne.Scalar", {tensor_ref(made), 0}, all, e.result().name);
  return true;
}

// Writes cutegen.scatter in float32, because half-precision sums of many elements lose accuracy.
bool scattered(Expansion& e, const std::string& into, const std::string& from, int64_t axis,
               const std::string& index, bool along, const std::string& mode, bool wraps = false) {
  const DType dtype = e.result().dtype;
  if (mode == "store" && dtype == DType::boolean)
    return !wraps && stored_bits(e, into, from, axis, index, along);
  if (mode == "store") return !wraps && stored(e, into, from, axis, index, along, e.result().name);
  const bool half = is_floating(dtype) && dtype != DType::f32 && mode != "store";
  if (dtype == DType::boolean || (mode != "store" && !half && dtype != DType::f32 &&
                                  dtype != DType::i64 && dtype != DType::i32))
    return false;
  const auto widened = [&](const std::string& value, const Shape& shape) {
    return half ? e.as(DType::f32,
                       e.write("wide", "aten._to_copy.default", {tensor_ref(value)}, shape))
                : value;
  };
  const Shape shape = e.result().shape;
  const Shape part = e.find(from)->shape;
  const std::string self = widened(into, shape), source = widened(from, part);
  const std::string made =
      e.write("scatter", kScatter,
              {tensor_ref(self), tensor_ref(source), axis, tensor_ref(index), along, mode, wraps},
              shape, half ? "" : e.result().name);
  if (half) e.write("narrow", "aten._to_copy.default", {tensor_ref(made)}, shape, e.result().name);
  return true;
}

// The values of a scatter: a tensor, cut to the shape of the index, or a number.
std::string values(Expansion& e, const Json& given, const Value& index) {
  const DType dtype = e.result().dtype;
  const auto name = reference(given);
  if (!name)
    return e.as(dtype,
                e.write("value", "aten.full.default", {Json(index.shape), given}, index.shape));
  std::string now = *name;
  Shape shape = e.find(now)->shape;
  for (size_t i = 0; i < shape.size(); ++i) {
    if (shape[i] == index.shape[i]) continue;
    shape[i] = index.shape[i];
    now = e.as(dtype, e.write("part", "aten.slice.Tensor",
                              {tensor_ref(now), int64_t(i), 0, shape[i], 1}, shape));
  }
  return now;
}

std::string mode_of(const Json& given) {
  if (given == "sum" || given == "add") return "add";
  if (given == "amax" || given == "amin") return given.get<std::string>();
  if (given == "prod" || given == "multiply") return "multiply";
  return "";
}

// scatter(x, dim, index, values), scatter_add, and both with a reduction.
bool scatter(Expansion& e) {
  const Value *x = e.input(0), *index = e.input(2);
  const auto dim = e.axis(1, x);
  const std::string base = base_name(e.node.op);
  Json reduce = e.node.kwargs.value("reduce", base == "scatter_reduce" ? e.arg(4) : Json());
  const std::string mode = base == "scatter_add" ? "add"
                           : reduce.is_null()    ? "store"
                                                 : mode_of(reduce);
  const Json include = e.node.kwargs.value("include_self", Json(true));
  if (!dim || !index || mode.empty() || include == false || index->shape.size() != x->shape.size())
    return false;
  return scattered(e, x->name, values(e, e.arg(3), *index), int64_t(*dim), index->name, true, mode);
}

// index_add(x, dim, index, source), index_copy, index_fill, index_reduce
bool by_axis(Expansion& e) {
  const Value *x = e.input(0), *index = e.input(2), *source = e.input(3);
  const auto dim = e.axis(1, x);
  const std::string base = base_name(e.node.op);
  if (!dim || !index || index->shape.size() != 1) return false;
  const bool fills = base == "index_fill";
  if (!fills && (!source || source->shape.size() != x->shape.size())) return false;
  const auto alpha = number(e.node.kwargs.value("alpha", Json(1)));
  Shape part = x->shape;
  part[*dim] = index->shape[0];
  std::string from = source ? source->name : "";
  if (fills) {
    if (!e.number_at(3)) return false;
    from = e.as(x->dtype, e.write("value", "aten.full.default", {Json(part), e.arg(3)}, part));
  }
  if (base == "index_add" && alpha.value_or(1) != 1)
    from = e.map("mul.Scalar", {tensor_ref(from), *alpha}, part, x->dtype);
  return scattered(e, x->name, from, int64_t(*dim), index->name, false,
                   base == "index_add" ? "add" : "store");
}

// index_put(x, [mask], values): x[mask] = y. Values may lie along the axes behind the mask's.
bool put_by_mask(Expansion& e, const Value& x, const Value& mask, const Value& from) {
  const size_t rank = mask.shape.size(), behind = x.shape.size() - std::min(x.shape.size(), rank);
  const bool one = product(from.shape) == 1;
  if (rank > x.shape.size() || number(e.arg(3)).value_or(0) != 0 || x.dtype == DType::boolean ||
      !std::equal(mask.shape.begin(), mask.shape.end(), x.shape.begin()) ||
      (!one && from.shape.size() > behind))
    return false;
  Shape thin = mask.shape;
  thin.resize(x.shape.size(), 1);
  const std::string chosen =
      behind == 0 ? mask.name : e.as(DType::boolean, e.view(mask.name, thin));
  const std::string value =
      one && !from.shape.empty() ? e.as(from.dtype, e.view(from.name, {})) : from.name;
  e.write("put", "aten.where.self", {tensor_ref(chosen), tensor_ref(value), tensor_ref(x.name)},
          x.shape, e.result().name);
  return true;
}

// index_put(x, [null, index], values, accumulate) with one index of one axis
bool put(Expansion& e) {
  const Value *x = e.input(0), *from = e.input(2);
  const Json list = e.arg(1);
  if (!x || !from || !list.is_array()) return false;
  int64_t axis = -1;
  for (size_t i = 0; i < list.size(); ++i) {
    if (list[i].is_null()) continue;
    if (axis >= 0) return false;
    axis = int64_t(i);
  }
  const Value* index = axis < 0 ? nullptr : e.find(reference(list[size_t(axis)]).value_or(""));
  if (index && axis == 0 && index->dtype == DType::boolean)
    return put_by_mask(e, *x, *index, *from);
  if (!index || index->shape.size() != 1 ||
      (index->dtype != DType::i64 && index->dtype != DType::i32))
    return false;
  Shape part = x->shape;
  part[size_t(axis)] = index->shape[0];
  std::string source = from->name;
  if (from->shape != part)
    source = e.as(from->dtype,
                  e.write("values", "aten.expand.default", {tensor_ref(source), Json(part)}, part));
  const bool adds = number(e.arg(3)).value_or(0) != 0;
  return scattered(e, x->name, source, axis, index->name, false, adds ? "add" : "store", true);
}

// max_unpool2d(x, indices, size): the indices count within an image.
bool unpool(Expansion& e) {
  const Value *x = e.input(0), *index = e.input(1);
  const size_t rank = base_name(e.node.op) == "max_unpool2d" ? 2 : 3;
  if (!x || !index || x->shape.size() != rank + 2) return false;
  const auto flat = [&](const Shape& shape) {
    int64_t pixels = 1;
    for (size_t i = 2; i < shape.size(); ++i) pixels *= shape[i];
    return Shape{shape[0], shape[1], pixels};
  };
  const Shape to = flat(e.result().shape), from = flat(x->shape);
  const std::string zeros =
      e.as(x->dtype, e.write("zeros", "aten.full.default", {Json(to), 0}, to));
  const std::string source = e.as(x->dtype, e.view(x->name, from)),
                    places = e.as(index->dtype, e.view(index->name, from));
  const std::string made = e.as(x->dtype, e.write("scatter", kScatter,
                                                  {tensor_ref(zeros), tensor_ref(source), 2,
                                                   tensor_ref(places), true, "store", false},
                                                  to));
  return e.finish(made);
}

}  // namespace

Rule scatter_rule(const std::string& base) {
  static const std::map<std::string, Rule> rules{
      {"scatter", scatter},   {"scatter_add", scatter}, {"scatter_reduce", scatter},
      {"index_add", by_axis}, {"index_copy", by_axis},  {"index_fill", by_axis},
      {"index_put", put},     {"max_unpool2d", unpool}, {"max_unpool3d", unpool}};
  const auto rule = rules.find(base);
  return rule == rules.end() ? nullptr : rule->second;
}

}  // namespace cutegen::recipes
