// SPDX-License-Identifier: Apache-2.0
#include "eval/rungs/derive_shapes.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <set>

#include "eval/rungs/prepare.h"

namespace cutegen::eval {
namespace {

constexpr int64_t kTail = ShapeGoal::kTail;
constexpr int64_t kLeastStep = 64, kLongestStep = 16384;
constexpr int64_t kMostBlocks = 1 << 16;
constexpr const char* kSm90a = "sm_90a";
constexpr int kMostDescribed = 48;  // shapes that torch describes for one program
constexpr int kRounds = 5;          // trials for the value of one size
constexpr size_t kMostNew = 16;     // derived shapes that a task keeps

// The value of each size at this shape, in the order of `sizes`.
torch::ShapeConstants values_at(const ShapeCase& shape, const torch::ShapeConstants& sizes) {
  torch::ShapeConstants out = sizes;
  for (auto& [name, value] : out) value = value_of(shape.constants, name, value);
  return out;
}

int64_t round_up(int64_t value, int64_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

// Rounds each grown size up to a multiple, but at most to its official value.
torch::ShapeConstants in_multiples(torch::ShapeConstants grown, const torch::ShapeConstants& from,
                                   const torch::ShapeConstants& sizes, int64_t multiple) {
  for (size_t i = 0; i < grown.size(); ++i)
    if (grown[i].second != from[i].second)
      grown[i].second = std::min(round_up(grown[i].second, multiple), sizes[i].second);
  return grown;
}

// Places of the sizes that may grow: each size alone, then all sizes that are equal at the official
// shape, such as a length that get_inputs() and forward() write as numbers.
std::vector<std::vector<size_t>> places_to_grow(const torch::ShapeConstants& sizes) {
  std::vector<std::vector<size_t>> out;
  std::map<int64_t, std::vector<size_t>> equal;
  for (size_t i = 0; i < sizes.size(); ++i) {
    out.push_back({i});
    equal[sizes[i].second].push_back(i);
  }
  for (auto& [value, places] : equal)
    if (places.size() > 1) out.push_back(std::move(places));
  return out;
}

// The shape with the fewest FLOPs, except the official one.
const ShapeCase* smallest_shape(const Task& task) {
  const ShapeCase* small = nullptr;
  for (const ShapeCase& s : task.shapes)
    if (s.kind != ShapeKind::official && (!small || s.flops.value < small->flops.value)) small = &s;
  return small;
}

// Rounds up to a power of two, so that programs with similar steps share shapes.
int64_t longest_step(const KernelProgram& program, const Task& task, const ReachedShape& official,
                     const DeviceFacts& device) {
  int64_t most = kLeastStep;
  for (int64_t n : whole_numbers(program, kLeastStep, kLongestStep)) most = std::max(most, n);
  for (const auto& launch : official.reach.launches)
    if (launch) most = std::max(most, launch->threads);
  if (auto builds = module_builds(program, task, *official.shape, device); builds)
    for (const ModuleBuild& b : *builds)
      for (const auto& [name, text] : b.defines)
        if (text.size() <= 5 && text.find_first_not_of("0123456789") == std::string::npos)
          if (int64_t n = std::stoll(text); n <= kLongestStep) most = std::max(most, n);
  return int64_t(std::bit_ceil(uint64_t(most)));
}

bool is_for_sm_90a(const KernelProgram& program) {
  const auto& arch = program.plan.arch;
  return !arch.empty() &&
         std::all_of(arch.begin(), arch.end(), [](auto& a) { return a == kSm90a; });
}

// The two known shapes with the fewest FLOPs.
std::vector<const ReachedShape*> cheapest(const std::vector<ReachedShape>& known) {
  std::vector<const ReachedShape*> out;
  for (const ReachedShape& k : known) out.push_back(&k);
  std::stable_sort(out.begin(), out.end(), [](const ReachedShape* a, const ReachedShape* b) {
    return a->shape->flops.value < b->shape->flops.value;
  });
  if (out.size() > 2) out.erase(out.begin() + 2, out.end());
  return out;
}

// Describes the wishes that no test shape meets: wishes that are impossible, and wishes for which
// there would be too many shapes.
std::vector<std::string> left_out(const std::vector<ShapeWish>& impossible,
                                  const std::vector<ShapeWish>& beyond,
                                  const ReachedShape& official, const WorkLimit& limit) {
  constexpr size_t kNamed = 3;
  std::vector<std::string> out;
  auto add = [&](const std::vector<ShapeWish>& wishes, const std::string& why) {
    if (wishes.empty()) return;
    std::vector<std::string> names;
    for (size_t i = 0; i < std::min(kNamed, wishes.size()); ++i)
      names.push_back(text_of(wishes[i], official));
    if (wishes.size() > kNamed) names.push_back("...");
    out.push_back(fmt::format("derived shapes: no test shape has {} ({} in all): {}",
                              fmt::join(names, ", "), wishes.size(), why));
  };
  add(impossible,
      "the module or the plan takes no such shape, or it is more work than " + limit.text());
  add(beyond, fmt::format("a program gets at most {} derived shapes", DerivedShapes::kMost));
  return out;
}

}  // namespace

// Searches the derived shapes of one program.
class DerivedShapes::Search {
 public:
  Search(DerivedShapes& owner, const Context& ctx, const KernelProgram& program,
         const DeviceFacts& device)
      : owner_(owner),
        ctx_(ctx),
        program_(program),
        device_(device),
        sizes_(*owner.sizes_),
        limit_(owner.task_, is_for_sm_90a(program)) {}

  Result<Found> run() {
    auto full = reached(owner_.task_.official());
    if (!full) return Found{};  // the load rung gives the reason
    official_ = std::move(*full);
    for (const ShapeCase& s : owner_.task_.shapes)
      if (is_test_shape(s) && accepts(s)) note(s);
    if (known_.empty()) CG_CHECK(find_base());
    if (known_.empty()) return Found{};
    std::vector<ShapeWish> wishes = unmet(), impossible;
    for (const ShapeCasePtr& s : owner_.given_) {  // shapes of other programs may suffice
      if (wishes.empty() || chosen_.size() == kMost) break;
      if (accepts(*s) && affordable(*s) && helps(*s, wishes)) take(s, wishes);
    }
    while (!wishes.empty() && chosen_.size() < kMost) {
      const ShapeWish wish = wishes.front();
      CG_TRY(ShapeCasePtr found, solve(wish));
      if (!found) impossible.push_back(wish);
      wishes.erase(wishes.begin());
      if (found) take(found, wishes);
    }
    std::erase_if(impossible, [&](const ShapeWish& w) { return is_met(w, false); });
    return Found{.shapes = chosen_, .left_out = left_out(impossible, wishes, official_, limit_)};
  }

 private:
  bool accepts(const ShapeCase& shape) const {
    return module_builds(program_, owner_.task_, shape, device_).has_value();
  }

  // Empty if the plan rejects the shape.
  std::optional<ReachedShape> reached(const ShapeCase& shape) const {
    auto reach = plan_reach(program_, owner_.task_, shape, device_);
    if (!reach) return std::nullopt;
    return ReachedShape{.shape = &shape, .reach = std::move(*reach)};
  }

  void note(const ShapeCase& shape) {
    if (auto at = reached(shape)) known_.push_back(std::move(*at));
  }

  std::vector<ShapeWish> unmet() const {
    std::vector<ShapeWish> out;
    for (ShapeWish& w : shape_wishes(official_, known_.front(), sizes_,
                                     longest_step(program_, owner_.task_, official_, device_)))
      if (!is_met(w)) out.push_back(std::move(w));
    return out;
  }

  bool is_met(const ShapeWish& wish, bool strictly = true) const {
    return std::any_of(known_.begin(), known_.end(), [&](const ReachedShape& k) {
      return meets(wish, k, official_, sizes_, strictly);
    });
  }

  bool helps(const ShapeCase& shape, const std::vector<ShapeWish>& wishes) const {
    const auto at = reached(shape);
    return at && std::any_of(wishes.begin(), wishes.end(), [&](const ShapeWish& w) {
             return meets(w, *at, official_, sizes_, true);
           });
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
    if (!limit_.permits(shape)) return false;
    const auto at = reached(shape);
    if (!at) return false;
    int64_t blocks = 0;
    for (const auto& launch : at->reach.launches) blocks += launch ? blocks_of(*launch) : 0;
    return blocks <= kMostBlocks;
  }

  Result<ShapeCasePtr> described(const torch::ShapeConstants& values) {
    if (owner_.described_.contains(values)) return owner_.described_[values];
    if (++count_ > kMostDescribed) return ShapeCasePtr{};
    return owner_.described(ctx_, values);
  }

  // If the plan rejects every test shape, looks for a small shape with one or two official sizes.
  Result<void> find_base() {
    const ShapeCase* small = smallest_shape(owner_.task_);
    if (!small) return {};
    const torch::ShapeConstants from = values_at(*small, sizes_);
    for (size_t i = 0; i < sizes_.size() * sizes_.size(); ++i) {
      const size_t a = i % sizes_.size(), b = i / sizes_.size();  // a == b: a single official size
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

  // A cheap shape that the plan accepts and that meets the wish, or null.
  Result<ShapeCasePtr> solve(const ShapeWish& wish) {
    const std::vector<ShapeGoal> goals = goals_of(wish, official_, sizes_);
    int64_t step = kTail;
    for (const ShapeGoal& g : goals) step = std::max(step, g.step);
    for (const ReachedShape* base : cheapest(known_)) {
      torch::ShapeConstants values = values_at(*base->shape, sizes_);
      const torch::ShapeConstants from = values;
      bool grown = true;
      for (const ShapeGoal& goal : goals) {
        CG_TRY(bool more, grow(values, goal));
        grown = grown && more;
      }
      if (!grown) continue;
      CG_TRY(ShapeCasePtr found, rounded(wish, from, values, step));
      if (found) return found;
    }
    return ShapeCasePtr{};
  }

  // Raises one size, or all sizes that are equal at the official shape, until the measure reaches
  // its target; false if no size achieves that.
  Result<bool> grow(torch::ShapeConstants& values, const ShapeGoal& goal) {
    CG_TRY(std::optional<int64_t> start, measured(values, goal));
    if (!start || *start >= goal.target) return start.has_value();
    for (const std::vector<size_t>& places : places_to_grow(sizes_)) {
      torch::ShapeConstants trial = values;
      int64_t now = *start;
      for (int round = 0; round < kRounds && now < goal.target; ++round) {
        const int64_t before = trial[places.front()].second;
        const double factor = double(goal.target) / double(std::max<int64_t>(now, 1));
        const double wanted = std::min(double(before) * factor, 1e12);
        const int64_t next =
            std::min(round_up(int64_t(wanted) + 1, kTail), sizes_[places.front()].second);
        if (next <= before) break;
        for (size_t i : places) trial[i].second = next;
        CG_TRY(std::optional<int64_t> then, measured(trial, goal));
        if (!then || *then <= now) break;  // this size does not affect the measure
        now = *then;
      }
      if (now < goal.target) continue;
      values = std::move(trial);
      return true;
    }
    return false;
  }

  Result<std::optional<int64_t>> measured(const torch::ShapeConstants& values,
                                          const ShapeGoal& goal) {
    CG_TRY(ShapeCasePtr shape, described(values));
    if (!shape) return std::optional<int64_t>{};
    const auto at = reached(*shape);
    return at ? std::optional<int64_t>(goal.measure(*at)) : std::nullopt;
  }

  // Tries the grown sizes as they are, then rounded up to multiples that a plan may require.
  Result<ShapeCasePtr> rounded(const ShapeWish& wish, const torch::ShapeConstants& from,
                               const torch::ShapeConstants& grown, int64_t step) {
    for (int64_t multiple : std::set<int64_t>{1, 16, 32, 64, 128, step}) {
      CG_TRY(ShapeCasePtr shape, described(in_multiples(grown, from, sizes_, multiple)));
      if (!shape || !accepts(*shape) || !affordable(*shape)) continue;
      const auto at = reached(*shape);
      if (!at) continue;
      if (meets(wish, *at, official_, sizes_, true)) return shape;
      // Uses a shape without a tail only if no other shape has as many tiles.
      if (meets(wish, *at, official_, sizes_, false) && !is_met(wish, false)) return shape;
    }
    return ShapeCasePtr{};
  }

  DerivedShapes& owner_;
  const Context& ctx_;
  const KernelProgram& program_;
  const DeviceFacts& device_;
  const torch::ShapeConstants& sizes_;
  ReachedShape official_;
  std::vector<ReachedShape> known_;  // test shapes that the plan accepts
  std::vector<ShapeCasePtr> chosen_;
  const WorkLimit limit_;
  int count_ = 0;
};

Result<void> DerivedShapes::learn_sizes(const Context& ctx) {
  if (sizes_) return {};
  CG_TRY(torch::DescribedShapes told, describe_(ctx, {}));
  std::set<std::string> vary;  // the constants that some shape of the task changes
  for (const ShapeCase& s : task_.shapes)
    for (const auto& [name, value] : s.constants) vary.insert(name);
  torch::ShapeConstants sizes;
  for (const auto& size : told.sizes)
    if (vary.contains(size.first) && size.second > 0) sizes.push_back(size);
  sizes_ = std::move(sizes);
  return {};
}

Result<ShapeCasePtr> DerivedShapes::proposed(const Context& ctx, const TestCase& test) {
  CG_CHECK(learn_sizes(ctx));
  for (const auto& [name, value] : test.sizes) {
    const auto size = std::ranges::find(*sizes_, name, [](const auto& s) { return s.first; });
    if (size == sizes_->end()) return user_error("the task has no size '" + name + "' that varies");
    int64_t most = size->second;  // the largest value in the task
    for (const ShapeCase& s : task_.shapes) most = std::max(most, value_of(s.constants, name, 0));
    if (value < 1 || value > most)
      return user_error(fmt::format("{} = {} is not from 1 to {}", name, value, most));
  }
  std::vector<torch::ShapeConstants> tries{*sizes_};
  if (const ShapeCase* small = smallest_shape(task_)) tries.push_back(values_at(*small, *sizes_));
  const WorkLimit limit(task_);
  bool runs = false;
  for (torch::ShapeConstants& values : tries) {
    for (auto& [name, value] : values) value = value_of(test.sizes, name, value);
    CG_TRY(ShapeCasePtr shape, described(ctx, values));
    if (!shape) continue;
    runs = true;
    if (!limit.permits(*shape)) continue;
    ShapeCase out = *shape;
    out.name = "proposed " + test.name;
    out.values = test.values;
    return std::make_shared<const ShapeCase>(std::move(out));
  }
  return user_error(runs ? "it is more work than a test may be"
                         : "the module does not run, or is another program, at these sizes");
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

Result<DerivedShapes::Found> DerivedShapes::find(const Context& ctx, const KernelProgram& program,
                                                 const DeviceFacts& device) {
  CG_CHECK(learn_sizes(ctx));
  if (sizes_->empty()) return Found{};
  return Search(*this, ctx, program, device).run();
}

}  // namespace cutegen::eval
