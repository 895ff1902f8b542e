// SPDX-License-Identifier: Apache-2.0
#include "recipes/text/sizes_at_shapes.h"

#include <algorithm>
#include <set>

#include "core/plan_scope.h"
#include "core/weighted.h"
#include "recipes/nest/nest.h"

namespace cutegen::recipes {

Result<int64_t> size_at(const Task& task, const std::map<std::string, std::string>& names,
                        const ShapeCase& shape, const std::string& expression) {
  Plan plan;
  for (const auto& [tensor, name] : names) plan.bind.emplace_back(name, tensor);
  const DeviceFacts device;
  const PlanScope scope({.plan = plan, .task = task, .shape = shape, .device = device}, nullptr);
  CG_TRY(const Expr parsed, Expr::parse(expression));
  return parsed.integer(scope);
}

bool same_size(const Task& task, const std::map<std::string, std::string>& names,
               const std::string& a, const std::string& b) {
  return a == b || std::all_of(task.shapes.begin(), task.shapes.end(), [&](const auto& shape) {
           const auto first = size_at(task, names, shape, a),
                      second = size_at(task, names, shape, b);
           return first && second && *first == *second;
         });
}

std::vector<int64_t> timed_lengths(const Task& task, const Fused& fused) {
  std::set<int64_t> lengths;
  for (const ShapeCase* shape : timed_shapes(task)) {
    int64_t length = 1;
    for (const Loop& loop : make_nest(fused).reduced) {
      const auto size = size_at(task, fused.names, *shape, loop.extent);
      if (!size) return {};
      length *= *size;
    }
    lengths.insert(length);
  }
  if (lengths.size() < 2) return {};
  return {lengths.begin(), lengths.end()};
}

}  // namespace cutegen::recipes
