// SPDX-License-Identifier: Apache-2.0
#include "recipes/composites/expansion.h"

#include <fmt/format.h>

#include <algorithm>

namespace cutegen::recipes {
namespace {

bool mentions(const Json& json, const std::string& name) {
  if (reference(json) == name) return true;
  return json.is_array() && std::any_of(json.begin(), json.end(),
                                        [&](const Json& item) { return mentions(item, name); });
}

}  // namespace

std::string Expansion::counting(const Value& like, size_t axis, int64_t start) {
  return as(DType::i64,
            write("counting", kCounting, {start, 1, like.name, axis}, {like.shape[axis]}));
}

Json Expansion::size_of(const Value& value, size_t axis) {
  return tensor_ref(fmt::format("{}{} {}", kSize, axis, value.name));
}

const Value* Expansion::input(size_t index) const {
  const auto name = reference(arg(index));
  return name ? find(*name) : nullptr;
}

void Expansion::sort(const Value& x, int64_t dim, const std::string& values,
                     const std::string& places) {
  Node sorted;
  sorted.id = node.id + "_sorted";
  sorted.op = "aten.sort.default";
  sorted.args = {tensor_ref(x.name), dim, false};
  sorted.outputs = {Value{.name = values, .dtype = x.dtype, .shape = x.shape},
                    Value{.name = places, .dtype = DType::i64, .shape = x.shape}};
  write_.append(std::move(sorted));
}

std::optional<size_t> Expansion::axis(size_t index, size_t rank) const {
  const Json given = arg(index);
  if (!given.is_number_integer()) return std::nullopt;
  const int64_t at = given.get<int64_t>() + (given.get<int64_t>() < 0 ? int64_t(rank) : 0);
  return at >= 0 && at < int64_t(rank) ? std::optional(size_t(at)) : std::nullopt;
}

std::vector<int64_t> Expansion::numbers(size_t index, size_t count) const {
  const Json given = arg(index);
  if (given.is_number_integer()) return std::vector<int64_t>(count, given.get<int64_t>());
  std::vector<int64_t> list;
  if (!given.is_array()) return list;
  for (const Json& item : given) {
    if (!item.is_number_integer()) return {};
    list.push_back(item.get<int64_t>());
  }
  if (list.size() == 1 && count > 1) list.resize(count, list.front());
  return list.size() == count ? list : std::vector<int64_t>{};
}

bool Expansion::is_read(size_t output) const {
  if (output >= node.outputs.size()) return false;
  const std::string& name = node.outputs[output].name;
  for (const Node& other : graph.nodes) {
    for (const Json& arg : other.args)
      if (mentions(arg, name)) return true;
    for (const auto& [key, arg] : other.kwargs.items())
      if (mentions(arg, name)) return true;
  }
  return std::find(graph.outputs.begin(), graph.outputs.end(), name) != graph.outputs.end();
}

}  // namespace cutegen::recipes
