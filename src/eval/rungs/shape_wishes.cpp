// SPDX-License-Identifier: Apache-2.0
#include "eval/rungs/shape_wishes.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"

namespace cutegen::eval {
namespace {

constexpr int64_t kTiles = 3;  // full tiles that an axis should have, in addition to a tail
constexpr int64_t kMuchMore = int64_t{1} << 40;

int64_t largest_tensor(const ShapeCase& shape) {
  int64_t most = 0;
  for (const auto& [name, dims] : shape.tensors)
    if (auto n = element_count(dims); n) most = std::max(most, *n);
  return most;
}

bool enough(const std::optional<PlanReach::Division>& at,
            const std::optional<PlanReach::Division>& official) {
  return at && official && at->tiles() >= std::min(kTiles, official->tiles());
}

ShapeGoal goal_of_division(size_t d, const ReachedShape& official) {
  const int64_t step = official.reach.divisions[d]->step;
  const int64_t size = official.reach.divisions[d]->size;
  return {.measure =
              [d](const ReachedShape& at) {
                return at.reach.divisions[d] ? at.reach.divisions[d]->size : 0;
              },
          .target = std::min(size, kTiles * step + ShapeGoal::kTail),
          .step = step};
}

}  // namespace

int64_t value_of(const torch::ShapeConstants& constants, const std::string& name, int64_t other) {
  for (const auto& [n, v] : constants)
    if (n == name) return v;
  return other;
}

int64_t blocks_of(const PlanReach::Launch& launch) {
  int64_t blocks = 1;
  for (int64_t g : launch.grid) blocks = std::min(kMuchMore, blocks * std::min(g, kMuchMore >> 20));
  return blocks;
}

std::vector<ShapeWish> shape_wishes(const ReachedShape& official, const ReachedShape& other,
                                    const torch::ShapeConstants& sizes, int64_t longest_step) {
  using Kind = ShapeWish::Kind;
  const PlanReach& r = official.reach;
  std::vector<ShapeWish> out;
  for (size_t i = 0; i < r.launches.size(); ++i) {
    if (!r.launches[i]) continue;
    const auto several =
        std::count_if(r.divisions_of[i].begin(), r.divisions_of[i].end(),
                      [&](size_t d) { return r.divisions[d] && r.divisions[d]->tiles() > 1; });
    if (several > 1) out.push_back({.kind = Kind::tiles, .at = i});
    const bool same =
        other.reach.launches[i] && other.reach.launches[i]->grid == r.launches[i]->grid;
    const int64_t threads = blocks_of(*r.launches[i]) * r.launches[i]->threads;
    if (same && blocks_of(*r.launches[i]) > 1 && largest_tensor(*official.shape) > threads)
      out.push_back({.kind = Kind::once_round,
                     .at = i,
                     .axis = 0,
                     .least = std::min(kTiles * threads, largest_tensor(*official.shape) * 3 / 4)});
  }
  for (size_t i = 0; i < r.divisions.size(); ++i)
    if (r.divisions[i] && r.divisions[i]->tiles() > 1)
      out.push_back({.kind = Kind::division,
                     .at = i,
                     .axis = 0,
                     .least = std::min(kTiles, r.divisions[i]->tiles())});
  for (size_t i = 0; i < r.bounds.size(); ++i)
    if (r.bounds[i] && r.bounds[i]->a != r.bounds[i]->b)
      out.push_back({.kind = Kind::passes, .at = i});
  for (const auto& [name, value] : sizes)
    out.push_back({.kind = Kind::length,
                   .at = 0,
                   .axis = 0,
                   .least = std::min(value * 3 / 4, kTiles * longest_step),
                   .name = name});
  for (size_t i = 0; i < r.launches.size(); ++i)
    for (size_t axis = 0; r.launches[i] && axis < 3; ++axis)
      if (r.launches[i]->grid[axis] > 1)
        out.push_back({.kind = Kind::blocks,
                       .at = i,
                       .axis = axis,
                       .least = std::min(kTiles, r.launches[i]->grid[axis])});
  return out;
}

bool meets(const ShapeWish& wish, const ReachedShape& at, const ReachedShape& official,
           const torch::ShapeConstants& sizes, bool strictly) {
  using Kind = ShapeWish::Kind;
  const PlanReach &r = at.reach, &full = official.reach;
  switch (wish.kind) {
    case Kind::tiles:
      return std::all_of(full.divisions_of[wish.at].begin(), full.divisions_of[wish.at].end(),
                         [&](size_t d) {
                           return !full.divisions[d] || enough(r.divisions[d], full.divisions[d]);
                         });
    case Kind::division:
      return enough(r.divisions[wish.at], full.divisions[wish.at]) &&
             (!strictly || r.divisions[wish.at]->has_tail());
    case Kind::passes: {
      const auto &here = r.bounds[wish.at], &there = full.bounds[wish.at];
      if (!here) return false;
      return there->a > there->b ? here->a > here->b : here->b > here->a;
    }
    case Kind::blocks:
      return r.launches[wish.at] && r.launches[wish.at]->grid[wish.axis] >= wish.least;
    case Kind::once_round:
      return largest_tensor(*at.shape) >= wish.least;
    case Kind::length:
      return value_of(at.shape->constants, wish.name, value_of(sizes, wish.name, 0)) >= wish.least;
  }
  return true;
}

std::string text_of(const ShapeWish& wish, const ReachedShape& official) {
  using Kind = ShapeWish::Kind;
  const PlanReach& r = official.reach;
  auto tiles = [&](size_t d) {
    return fmt::format("{} tiles of {} along {}", std::min(kTiles, r.divisions[d]->tiles()),
                       r.divisions[d]->step, r.divisions[d]->size);
  };
  switch (wish.kind) {
    case Kind::tiles: {
      std::vector<std::string> all;
      for (size_t d : r.divisions_of[wish.at])
        if (r.divisions[d] && r.divisions[d]->tiles() > 1) all.push_back(tiles(d));
      return join(all, " and at once ");
    }
    case Kind::division:
      return tiles(wish.at);
    case Kind::passes:
      return fmt::format("more than {} blocks of work for a grid of that size",
                         std::min(r.bounds[wish.at]->a, r.bounds[wish.at]->b));
    case Kind::blocks:
      return fmt::format("{} blocks along axis {} of a grid", wish.least, "xyz"[wish.axis]);
    case Kind::once_round:
      return fmt::format("a tensor of {} elements", wish.least);
    case Kind::length:
      return fmt::format("{} = {}", wish.name, wish.least);
  }
  return {};
}

std::vector<ShapeGoal> goals_of(const ShapeWish& wish, const ReachedShape& official,
                                const torch::ShapeConstants& sizes) {
  using Kind = ShapeWish::Kind;
  switch (wish.kind) {
    case Kind::tiles: {
      std::vector<ShapeGoal> out;
      for (size_t d : official.reach.divisions_of[wish.at])
        if (official.reach.divisions[d] && official.reach.divisions[d]->tiles() > 1)
          out.push_back(goal_of_division(d, official));
      return out;
    }
    case Kind::division:
      return {goal_of_division(wish.at, official)};
    case Kind::passes: {
      const size_t i = wish.at;
      const bool first = official.reach.bounds[i]->a > official.reach.bounds[i]->b;
      const int64_t most = first ? official.reach.bounds[i]->b : official.reach.bounds[i]->a;
      return {{.measure =
                   [i, first](const ReachedShape& at) {
                     if (!at.reach.bounds[i]) return int64_t{0};
                     return first ? at.reach.bounds[i]->a : at.reach.bounds[i]->b;
                   },
               .target = 2 * most + 1}};
    }
    case Kind::blocks:
      return {{.measure =
                   [wish](const ReachedShape& at) {
                     const auto& launch = at.reach.launches[wish.at];
                     return launch ? launch->grid[wish.axis] : 0;
                   },
               .target = wish.least}};
    case Kind::once_round:
      return {{.measure = [](const ReachedShape& at) { return largest_tensor(*at.shape); },
               .target = wish.least}};
    case Kind::length: {
      const std::string name = wish.name;
      return {{.measure =
                   [name, sizes](const ReachedShape& at) {
                     return value_of(at.shape->constants, name, value_of(sizes, name, 0));
                   },
               .target = wish.least + ShapeGoal::kTail}};
    }
  }
  return {};
}

}  // namespace cutegen::eval
