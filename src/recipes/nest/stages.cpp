// SPDX-License-Identifier: Apache-2.0
#include "recipes/nest/stages.h"

#include <fmt/format.h>

#include <algorithm>

#include "recipes/graph/names.h"
#include "recipes/graph/pointwise.h"
#include "recipes/nest/windowed.h"

namespace cutegen::recipes {
namespace {

constexpr size_t kMostKept = 12;  // values; these recipes refuse a graph that needs more

using Outputs = std::vector<Region::Output>;

struct Made {
  Outputs outputs;  // kept values
  Fused fused;
};

class Solver {
 public:
  Solver(const Task& task, Decomposed source)
      : source_(std::move(source)), names_(short_names(task)) {
    for (const auto& [tensor, name] : names_) (void)words_.unique(name);
  }

  Result<Stages> run(const Outputs& outputs) {
    CG_TRY(Fused last, solve(outputs));
    merge_neighbours();
    Stages stages;
    for (Made& made : made_) {
      for (const Region::Output& output : made.outputs)
        stages.scratch.push_back({names_.at(output.value), output.dtype, kept_.at(output.value)});
      stages.list.push_back(std::move(made.fused));
    }
    stages.list.push_back(std::move(last));
    fuse_after_windows(stages, names_);
    for (Fused& fused : stages.list) fused.names = names_;
    return stages;
  }

 private:
  Attempt attempt(const Outputs& outputs, Kept kept) const {
    return fuse(Region{source_, names_, std::move(kept), outputs});
  }

  // Keeps values in scratch until the rest fits into one loop nest.
  Result<Fused> solve(const Outputs& outputs) {
    for (;;) {
      Attempt a = attempt(outputs, kept_);
      if (a.fused) return std::move(*a.fused);
      bool own = std::any_of(outputs.begin(), outputs.end(),
                             [&](const Region::Output& o) { return o.value == a.cut; });
      const Node* cut = source_.graph.producer(a.cut);
      if (cut && is_window(*cut)) own = false;  // the output becomes a copy of the window's result
      if (a.cut.empty() || own || kept_.count(a.cut) || open_ >= kMostKept)
        return fail(a.fused.error());
      CG_CHECK(keep(a.cut));
    }
  }

  Result<void> keep(const std::string& name) {
    const Value* value = source_.graph.find(name);
    CG_ASSERT(value);
    if (device_type(value->dtype).empty())
      return unsupported_error(fmt::format("{} of dtype {}", name, to_string(value->dtype)));
    ++open_;
    names_[name] = words_.unique(name);
    Outputs outputs{{name, name, value->dtype, true}};
    const Node* producer = source_.graph.producer(name);
    if (producer && is_window(*producer)) CG_CHECK(keep_operands(*producer));
    CG_TRY(Fused fused, producer && is_window(*producer) ? windowed(*producer) : solve(outputs));
    kept_[name] = fused.outputs[0].operand.extents;
    made_.push_back({std::move(outputs), std::move(fused)});
    return {};
  }

  // Windows read tensors: computed operands are kept first.
  Result<void> keep_operands(const Node& node) {
    CG_TRY(auto window, find_window(source_.graph, node));
    for (const std::string& operand : {window->input, window->weight})
      if (source_.graph.producer(operand) && !kept_.count(operand)) CG_CHECK(keep(operand));
    return {};
  }

  Result<Fused> windowed(const Node& node) const {
    CG_TRY(auto window, find_window(source_.graph, node));
    return window_stage(Region{source_, names_, kept_, {}}, *window, node.outputs.front());
  }

  // Merges neighbouring stages that fit into one nest, so that they share their reads.
  void merge_neighbours() {
    for (size_t i = 0; i + 1 < made_.size();) {
      if (made_[i].fused.window || made_[i + 1].fused.window) {
        ++i;
        continue;
      }
      Outputs both = made_[i].outputs;
      both.insert(both.end(), made_[i + 1].outputs.begin(), made_[i + 1].outputs.end());
      Kept others = kept_;
      for (const Region::Output& output : both) others.erase(output.value);
      Attempt a = attempt(both, std::move(others));
      if (!a.fused) {
        ++i;
        continue;
      }
      made_[i] = {std::move(both), std::move(*a.fused)};
      made_.erase(made_.begin() + static_cast<long>(i) + 1);
    }
  }

  Decomposed source_;
  std::map<std::string, std::string> names_;
  Names words_;
  Kept kept_;
  std::vector<Made> made_;
  size_t open_ = 0;
};

}  // namespace

Result<Stages> make_stages(const Task& task, const Graph& graph) {
  CG_TRY(Decomposed source, decompose(graph, task));
  return Solver(task, std::move(source)).run(outputs_of(task, graph));
}

Result<Stages> make_stages(const Task& task) {
  CG_TRY(Graph graph, prepare(task));
  return make_stages(task, graph);
}

}  // namespace cutegen::recipes
