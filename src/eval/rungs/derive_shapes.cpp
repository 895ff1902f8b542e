// SPDX-License-Identifier: Apache-2.0
#include "eval/rungs/derive_shapes.h"

#include <algorithm>
#include <bit>
#include <set>

#include "eval/rungs/prepare.h"

namespace cutegen::eval {
namespace {

constexpr int64_t kTiles = 3;  // that an axis has to have, and a tail
constexpr int64_t kTail = 8;   // elements over: vector accesses still fit
constexpr int64_t kLeastStep = 64, kLongestStep = 16384;
constexpr double kMostFlops = kMostTestFlops, kLightWork = 32;  // operations an element
constexpr int64_t kMostElements = kMostTestElements, kMostLightElements = int64_t{3} << 21;
constexpr int64_t kMostBlocks = 1 << 16;
constexpr int kMostDescribed = 48;  // for one program
constexpr int kRounds = 5;          // to find the value of a size
constexpr size_t kMostNew = 16;     // shapes kept of one task
constexpr int64_t kMuchMore = int64_t{1} << 40;

int64_t value_of(const torch::ShapeConstants& constants, const std::string& name, int64_t other) {
  for (const auto& [n, v] : constants)
    if (n == name) return v;
  return other;
}

// Every size at this shape, in the order of `sizes`.
torch::ShapeConstants values_at(const ShapeCase& shape, const torch::ShapeConstants& sizes) {
  torch::ShapeConstants out = sizes;
  for (auto& [name, value] : out) value = value_of(shape.constants, name, value);
  return out;
}

int64_t round_up(int64_t value, int64_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

int64_t product(const PlanReach::Launch& launch) {
  int64_t blocks = 1;
  for (int64_t g : launch.grid) blocks = std::min(kMuchMore, blocks * std::min(g, kMuchMore >> 20));
  return blocks;
}

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

}  // namespace

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
    if (several > 1) out.push_back({Kind::tiles, i});
    const bool same =
        other.reach.launches[i] && other.reach.launches[i]->grid == r.launches[i]->grid;
    const int64_t threads = product(*r.launches[i]) * r.launches[i]->threads;
    if (same && product(*r.launches[i]) > 1 && largest_tensor(*official.shape) > threads)
      out.push_back({Kind::once_round, i, 0,
                     std::min(kTiles * threads, largest_tensor(*official.shape) * 3 / 4)});
  }
  for (size_t i = 0; i < r.divisions.size(); ++i)
    if (r.divisions[i] && r.divisions[i]->tiles() > 1)
      out.push_back({Kind::division, i, 0, std::min(kTiles, r.divisions[i]->tiles())});
  for (size_t i = 0; i < r.bounds.size(); ++i)
    if (r.bounds[i] && r.bounds[i]->a != r.bounds[i]->b) out.push_back({Kind::passes, i});
  for (const auto& [name, value] : sizes)
    out.push_back({Kind::length, 0, 0, std::min(value * 3 / 4, kTiles * longest_step), name});
  for (size_t i = 0; i < r.launches.size(); ++i)
    for (size_t axis = 0; r.launches[i] && axis < 3; ++axis)
      if (r.launches[i]->grid[axis] > 1)
        out.push_back({Kind::blocks, i, axis, std::min(kTiles, r.launches[i]->grid[axis])});
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

// One program's search.
class DerivedShapes::Search {
 public:
  Search(DerivedShapes& owner, const Context& ctx, const KernelProgram& program,
         const DeviceFacts& device)
      : owner_(owner), ctx_(ctx), program_(program), device_(device), sizes_(*owner.sizes_) {}

  Result<std::vector<ShapeCasePtr>> run() {
    auto full = plan_reach(program_, owner_.task_, owner_.task_.official(), device_);
    if (!full) return chosen_;  // the rung load says why
    official_ = {&owner_.task_.official(), std::move(*full)};
    for (const ShapeCase& s : owner_.task_.shapes) {
      most_flops_ = std::max(most_flops_, is_test_shape(s) ? 1.2 * s.flops.value : 0);
      most_elements_ = std::max(most_elements_, is_test_shape(s) ? elements_of(s) : 0);
      if (is_test_shape(s) && accepts(s)) note(s);
    }
    if (known_.empty()) CG_CHECK(find_base());
    if (known_.empty()) return chosen_;
    std::vector<ShapeWish> wishes = unmet();
    for (const ShapeCasePtr& s : owner_.given_) {  // what other programs wanted may do
      if (wishes.empty() || chosen_.size() == kMost) break;
      if (accepts(*s) && affordable(*s) && helps(*s, wishes)) take(s, wishes);
    }
    while (!wishes.empty() && chosen_.size() < kMost) {
      const ShapeWish wish = wishes.front();
      CG_TRY(ShapeCasePtr found, solve(wish));
      wishes.erase(wishes.begin());
      if (found) take(found, wishes);
    }
    return chosen_;
  }

 private:
  bool accepts(const ShapeCase& shape) const {
    return module_builds(program_, owner_.task_, shape, device_).has_value();
  }

  void note(const ShapeCase& shape) {
    if (auto reach = plan_reach(program_, owner_.task_, shape, device_); reach)
      known_.push_back({&shape, std::move(*reach)});
  }

  std::vector<ShapeWish> unmet() const {
    std::vector<ShapeWish> out;
    for (ShapeWish& w : shape_wishes(official_, known_.front(), sizes_, longest_step()))
      if (!is_met(w)) out.push_back(std::move(w));
    return out;
  }

  bool is_met(const ShapeWish& wish, bool strictly = true) const {
    return std::any_of(known_.begin(), known_.end(), [&](const ReachedShape& k) {
      return meets(wish, k, official_, sizes_, strictly);
    });
  }

  // A power of two, so that programs with similar steps share shapes.
  int64_t longest_step() const {
    int64_t most = kLeastStep;
    for (int64_t n : whole_numbers(program_, kLeastStep, kLongestStep)) most = std::max(most, n);
    for (const auto& launch : official_.reach.launches)
      if (launch) most = std::max(most, launch->threads);
    if (auto builds = module_builds(program_, owner_.task_, *official_.shape, device_); builds)
      for (const ModuleBuild& b : *builds)
        for (const auto& [name, text] : b.defines)
          if (text.size() <= 5 && text.find_first_not_of("0123456789") == std::string::npos)
            if (int64_t n = std::stoll(text); n <= kLongestStep) most = std::max(most, n);
    return static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(most)));
  }

  bool helps(const ShapeCase& shape, const std::vector<ShapeWish>& wishes) const {
    auto reach = plan_reach(program_, owner_.task_, shape, device_);
    if (!reach) return false;
    const ReachedShape at{&shape, std::move(*reach)};
    return std::any_of(wishes.begin(), wishes.end(),
                       [&](const ShapeWish& w) { return meets(w, at, official_, sizes_, true); });
  }

  void take(const ShapeCasePtr& shape, std::vector<ShapeWish>& wishes) {
    if (std::find(chosen_.begin(), chosen_.end(), shape) != chosen_.end()) return;
    chosen_.push_back(shape);
    note(*shape);
    std::erase_if(wishes, [&](const ShapeWish& w) { return is_met(w); });
    auto& given = owner_.given_;
    if (std::find(given.begin(), given.end(), shape) == given.end() && given.size() < kMostNew)
      given.push_back(shape);
  }

  bool affordable(const ShapeCase& shape) const {
    const int64_t elements = elements_of(shape);
    const bool light = shape.flops.value <= kLightWork * static_cast<double>(elements);
    if (shape.flops.value > std::max(kMostFlops, most_flops_)) return false;
    if (elements > std::max(light ? kMostLightElements : kMostElements, most_elements_))
      return false;
    auto reach = plan_reach(program_, owner_.task_, shape, device_);
    if (!reach) return false;
    int64_t blocks = 0;
    for (const auto& launch : reach->launches) blocks += launch ? product(*launch) : 0;
    return blocks <= kMostBlocks;
  }

  Result<ShapeCasePtr> described(const torch::ShapeConstants& values) {
    if (owner_.described_.contains(values)) return owner_.described_[values];
    if (++count_ > kMostDescribed) return ShapeCasePtr{};
    return owner_.described(ctx_, values);
  }

  // Where the plan refuses every test shape: one with some size as it is officially.
  Result<void> find_base() {
    const ShapeCase* small = nullptr;
    for (const ShapeCase& s : owner_.task_.shapes)
      if (s.kind != ShapeKind::official && (!small || s.flops.value < small->flops.value))
        small = &s;
    if (!small) return {};
    const torch::ShapeConstants from = values_at(*small, sizes_);
    for (size_t i = 0; i < sizes_.size() * sizes_.size(); ++i) {
      const size_t a = i % sizes_.size(), b = i / sizes_.size();  // singles first: a == b
      const size_t second = (a + b) % sizes_.size();
      torch::ShapeConstants values = from;
      values[a].second = sizes_[a].second;
      values[second].second = sizes_[second].second;
      CG_TRY(ShapeCasePtr shape, described(values));
      if (!shape || !accepts(*shape) || !affordable(*shape)) continue;
      std::vector<ShapeWish> none;
      take(shape, none);
      return {};
    }
    return {};
  }

  // What is to grow for a wish, and how far.
  struct Goal {
    std::function<int64_t(const ReachedShape&)> measure;
    int64_t target = 0, step = kTail;
  };

  Goal goal_of_division(size_t d) const {
    const int64_t step = official_.reach.divisions[d]->step;
    const int64_t size = official_.reach.divisions[d]->size;
    return {[d](const ReachedShape& at) {
              return at.reach.divisions[d] ? at.reach.divisions[d]->size : 0;
            },
            std::min(size, kTiles * step + kTail), step};
  }

  std::vector<Goal> goals_of(const ShapeWish& wish) const {
    using Kind = ShapeWish::Kind;
    switch (wish.kind) {
      case Kind::tiles: {
        std::vector<Goal> out;
        for (size_t d : official_.reach.divisions_of[wish.at])
          if (official_.reach.divisions[d] && official_.reach.divisions[d]->tiles() > 1)
            out.push_back(goal_of_division(d));
        return out;
      }
      case Kind::division:
        return {goal_of_division(wish.at)};
      case Kind::passes: {
        const size_t i = wish.at;
        const bool first = official_.reach.bounds[i]->a > official_.reach.bounds[i]->b;
        const int64_t most = first ? official_.reach.bounds[i]->b : official_.reach.bounds[i]->a;
        return {{[i, first](const ReachedShape& at) {
                   if (!at.reach.bounds[i]) return int64_t{0};
                   return first ? at.reach.bounds[i]->a : at.reach.bounds[i]->b;
                 },
                 2 * most + 1}};
      }
      case Kind::blocks:
        return {{[wish](const ReachedShape& at) {
                   const auto& launch = at.reach.launches[wish.at];
                   return launch ? launch->grid[wish.axis] : 0;
                 },
                 wish.least}};
      case Kind::once_round:
        return {{[](const ReachedShape& at) { return largest_tensor(*at.shape); }, wish.least}};
      case Kind::length: {
        const std::string name = wish.name;
        const torch::ShapeConstants& sizes = sizes_;
        return {{[name, sizes](const ReachedShape& at) {
                   return value_of(at.shape->constants, name, value_of(sizes, name, 0));
                 },
                 wish.least + kTail}};
      }
    }
    return {};
  }

  // The cheapest shape that the plan takes and that meets the wish, or null.
  Result<ShapeCasePtr> solve(const ShapeWish& wish) {
    const std::vector<Goal> goals = goals_of(wish);
    int64_t step = kTail;
    for (const Goal& g : goals) step = std::max(step, g.step);
    for (const ReachedShape* base : cheapest()) {
      torch::ShapeConstants values = values_at(*base->shape, sizes_);
      const torch::ShapeConstants from = values;
      bool grown = true;
      for (const Goal& goal : goals) {
        CG_TRY(bool more, grow(values, goal));
        grown = grown && more;
      }
      if (!grown) continue;
      CG_TRY(ShapeCasePtr found, rounded(wish, from, values, step));
      if (found) return found;
    }
    return ShapeCasePtr{};
  }

  std::vector<const ReachedShape*> cheapest() const {
    std::vector<const ReachedShape*> out;
    for (const ReachedShape& k : known_) out.push_back(&k);
    std::stable_sort(out.begin(), out.end(), [](const ReachedShape* a, const ReachedShape* b) {
      return a->shape->flops.value < b->shape->flops.value;
    });
    if (out.size() > 2) out.erase(out.begin() + 2, out.end());
    return out;
  }

  // Raises the one size that brings the measure to its target; false if none does.
  Result<bool> grow(torch::ShapeConstants& values, const Goal& goal) {
    CG_TRY(std::optional<int64_t> start, measured(values, goal));
    if (!start || *start >= goal.target) return start.has_value();
    for (size_t i = 0; i < sizes_.size(); ++i) {
      torch::ShapeConstants trial = values;
      int64_t now = *start;
      for (int round = 0; round < kRounds && now < goal.target; ++round) {
        const int64_t before = trial[i].second;
        const double factor =
            static_cast<double>(goal.target) / static_cast<double>(std::max<int64_t>(now, 1));
        const double wanted = std::min(static_cast<double>(before) * factor, 1e12);
        trial[i].second =
            std::min(round_up(static_cast<int64_t>(wanted) + 1, kTail), sizes_[i].second);
        if (trial[i].second <= before) break;
        CG_TRY(std::optional<int64_t> then, measured(trial, goal));
        if (!then || *then <= now) break;  // another size decides
        now = *then;
      }
      if (now < goal.target) continue;
      values = std::move(trial);
      return true;
    }
    return false;
  }

  Result<std::optional<int64_t>> measured(const torch::ShapeConstants& values, const Goal& goal) {
    CG_TRY(ShapeCasePtr shape, described(values));
    if (!shape) return std::optional<int64_t>{};
    auto reach = plan_reach(program_, owner_.task_, *shape, device_);
    if (!reach) return std::optional<int64_t>{};
    return std::optional<int64_t>(goal.measure({shape.get(), std::move(*reach)}));
  }

  // The grown sizes as they are, else as multiples of what a plan may ask for.
  Result<ShapeCasePtr> rounded(const ShapeWish& wish, const torch::ShapeConstants& from,
                               const torch::ShapeConstants& grown, int64_t step) {
    for (int64_t multiple : std::set<int64_t>{1, 16, 32, 64, 128, step}) {
      torch::ShapeConstants values = grown;
      for (size_t i = 0; i < values.size(); ++i)
        if (values[i].second != from[i].second)
          values[i].second = std::min(round_up(values[i].second, multiple), sizes_[i].second);
      CG_TRY(ShapeCasePtr shape, described(values));
      if (!shape || !accepts(*shape) || !affordable(*shape)) continue;
      auto reach = plan_reach(program_, owner_.task_, *shape, device_);
      if (!reach) continue;
      const ReachedShape at{shape.get(), std::move(*reach)};
      if (meets(wish, at, official_, sizes_, true)) return shape;
      // Without a tail it is worth a run only if no shape has as many tiles.
      if (meets(wish, at, official_, sizes_, false) && !is_met(wish, false)) return shape;
    }
    return ShapeCasePtr{};
  }

  DerivedShapes& owner_;
  const Context& ctx_;
  const KernelProgram& program_;
  const DeviceFacts& device_;
  const torch::ShapeConstants& sizes_;
  ReachedShape official_;
  std::vector<ReachedShape> known_;  // test shapes that the plan takes
  std::vector<ShapeCasePtr> chosen_;
  double most_flops_ = 0;
  int64_t most_elements_ = 0;
  int count_ = 0;
};

Result<void> DerivedShapes::learn_sizes(const Context& ctx) {
  if (sizes_) return {};
  CG_TRY(torch::DescribedShapes told, describe_(ctx, {}));
  std::set<std::string> vary;  // what a shape of the task has changed
  for (const ShapeCase& s : task_.shapes)
    for (const auto& [name, value] : s.constants) vary.insert(name);
  torch::ShapeConstants sizes;
  for (const auto& size : told.sizes)
    if (vary.contains(size.first) && size.second > 0) sizes.push_back(size);
  sizes_ = std::move(sizes);
  return {};
}

Result<ShapeCasePtr> DerivedShapes::described(const Context& ctx,
                                              const torch::ShapeConstants& constants) {
  CG_TRY(torch::DescribedShapes told, describe_(ctx, {constants}));
  ShapeCasePtr shape;
  if (told.shapes.size() == 1 && told.shapes[0])
    shape = std::make_shared<const ShapeCase>(std::move(*told.shapes[0]));
  described_[constants] = shape;
  return shape;
}

Result<std::vector<ShapeCasePtr>> DerivedShapes::find(const Context& ctx,
                                                      const KernelProgram& program,
                                                      const DeviceFacts& device) {
  CG_CHECK(learn_sizes(ctx));
  if (sizes_->empty()) return std::vector<ShapeCasePtr>{};
  return Search(*this, ctx, program, device).run();
}

}  // namespace cutegen::eval
