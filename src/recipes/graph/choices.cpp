// SPDX-License-Identifier: Apache-2.0
#include "recipes/graph/choices.h"

#include <fmt/format.h>

#include "recipes/graph/pointwise.h"

namespace cutegen::recipes {

bool is_choice(const Node& node) {
  const std::string base = base_name(node.op);
  return node.op.rfind("aten.", 0) == 0 && (base == "topk" || base == "sort" || base == "argsort");
}

Result<std::optional<Choice>> find_choice(const Graph& graph, const Node& node) {
  if (!is_choice(node)) return std::optional<Choice>();
  const std::string base = base_name(node.op);
  const Value* input = graph.find(reference(argument(node, 0, "self")).value_or(""));
  if (!input || input->shape.empty())
    return unsupported_error(node.op + ": its input is not a tensor with axes", node.id);
  const bool integers = is_integer(input->dtype);
  if (!is_floating(input->dtype) && !integers)
    return unsupported_error(fmt::format("{} of dtype {}", node.op, to_string(input->dtype)),
                             node.id);
  const bool top = base == "topk", stable = node.op.ends_with(".stable");
  // sort.stable(x, *, stable, dim, descending), argsort.stable alike; sort(x, dim, descending).
  const Json dim = argument(node,
                            top      ? 2
                            : stable ? 99
                                     : 1,
                            "dim"),
             order = argument(node,
                              top      ? 3
                              : stable ? 99
                                       : 2,
                              top ? "largest" : "descending");
  const int64_t given = dim.is_number_integer() ? dim.get<int64_t>() : -1;
  if (given != -1 && given != int64_t(input->shape.size()) - 1)
    return unsupported_error(node.op + " along another axis than the last one", node.id);
  Choice choice{.input = input->name,
                .largest = order.is_null() ? top : number(order).value_or(0) != 0,
                .positions_only = base == "argsort",
                .integers = integers};
  choice.long_row = input->shape.back() > choice.capacity();
  if (top) choice.count = int64_t(number(argument(node, 1, "k")).value_or(0));
  if (!choice.selects() && input->shape.back() > kLongest)
    return unsupported_error(fmt::format("{} of rows of more than {} elements", node.op, kLongest),
                             node.id);
  return std::optional(std::move(choice));
}

}  // namespace cutegen::recipes
