// SPDX-License-Identifier: Apache-2.0
#include "recipes/nest/stages.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "recipes/composites/composites.h"
#include "recipes/fuse/builder.h"
#include "recipes/fuse/extents.h"
#include "recipes/fuse/ties.h"
#include "recipes/fuse/views.h"
#include "recipes/graph/names.h"
#include "recipes/graph/pointwise.h"
#include "recipes/graph/scales.h"
#include "recipes/nest/ends.h"
#include "recipes/nest/fuse_if_equal.h"
#include "recipes/nest/joined.h"
#include "recipes/nest/output_groups.h"
#include "recipes/nest/windowed.h"
#include "recipes/spatial/conv_products.h"
#include "recipes/views/earlier_moves.h"
#include "recipes/views/einsum_views.h"
#include "recipes/views/finer_views.h"
#include "recipes/views/later_views.h"
#include "recipes/views/slices_of_views.h"

namespace cutegen::recipes {
namespace {

constexpr int64_t kMostGroups = 4;  // products in a tile
constexpr size_t kMostNodes = 600;  // the time to find stages grows faster than the graph
constexpr size_t kMostKept = 256;   // values; these recipes refuse a graph that needs more

struct Made {
  Outputs outputs;  // kept values, or outputs of the task
  Stage stage;
  bool of_window = false;  // the kernel of an earlier window should do this work
};

// A stage with one loop nest, and nothing that has a kernel of its own.
const Fused* plain_nest(const Stage& stage) {
  const auto* fused = std::get_if<Fused>(&stage);
  return fused && !fused->window && !fused->special() ? fused : nullptr;
}

// The task's tensor that a reduction reads, if it reads nothing else.
const Operand* only_tensor(const Stage& stage) {
  const Fused* fused = plain_nest(stage);
  const bool one = fused && fused->reduces() && fused->inputs.size() == 1;
  return one && !fused->inputs[0].kept ? &fused->inputs[0] : nullptr;
}

// Counts the partial sums that algebra has added. The stages that compute them merge at the end.
size_t partial_sums(const Graph& graph) {
  return size_t(std::count_if(graph.nodes.begin(), graph.nodes.end(),
                              [](const Node& node) { return node.op == kInside; }));
}

// Moves reductions of the same tensor next to each other, so that they may merge. Graphs that
// algebra did not change keep the order of their stages.
void gather_reductions(const Graph& graph, std::vector<Made>& made) {
  if (partial_sums(graph) == 0) return;
  for (size_t i = 0; i < made.size(); ++i) {
    const Operand* tensor = only_tensor(made[i].stage);
    if (!tensor) continue;
    const std::string name = tensor->tensor;
    const auto same = [&](const Made& other) {
      const Operand* own = only_tensor(other.stage);
      return own && own->tensor == name;
    };
    std::stable_partition(made.begin() + long(i) + 1, made.end(), same);
    while (i + 1 < made.size() && same(made[i + 1])) ++i;
  }
}

// The value of a product of sizes such as "dim(x,0)*dim(x,1)" at a shape; nothing for other text.
std::optional<int64_t> size_at(const ShapeCase& shape,
                               const std::map<std::string, std::string>& names,
                               const std::string& text) {
  int64_t size = 1;
  for (const std::string& factor : split(text, '*')) {
    const size_t comma = factor.rfind(',');
    if (!factor.starts_with("dim(") || comma == std::string::npos) {
      if (factor.empty() || factor.find_first_not_of("0123456789") != std::string::npos)
        return std::nullopt;
      size *= std::stoll(factor);
      continue;
    }
    const std::string word = factor.substr(4, comma - 4);
    const auto name = std::find_if(names.begin(), names.end(),
                                   [&](const auto& pair) { return pair.second == word; });
    const auto tensor = name == names.end() ? shape.tensors.end() : shape.tensors.find(name->first);
    const size_t axis = std::stoul(factor.substr(comma + 1));
    if (tensor == shape.tensors.end() || axis >= tensor->second.size()) return std::nullopt;
    size *= tensor->second[axis];
  }
  return size;
}

// Whether two plan expressions are equal, as text or at all shapes of the task.
bool same_size(const Task& task, const std::map<std::string, std::string>& names,
               const std::string& a, const std::string& b) {
  return a == b || std::all_of(task.shapes.begin(), task.shapes.end(), [&](const auto& shape) {
           const auto first = size_at(shape, names, a);
           return first && first == size_at(shape, names, b);
         });
}

// Whether the values of the merged stage have the sizes that they had in separate stages, at every
// shape: axes that have the same size at the official shape may differ at other shapes.
bool keeps_extents(const Task& task, const std::map<std::string, std::string>& names,
                   const Kept& kept, const Fused& fused) {
  for (const FusedOutput& output : fused.outputs) {
    const auto& before = kept.at(output.operand.tensor);
    for (size_t i = 0; i < before.size(); ++i)
      if (!same_size(task, names, before[i], output.operand.extents[i])) return false;
  }
  return true;
}

// Whether the value is a whole output. Then it is not worth keeping in an earlier stage.
bool is_output(const Outputs& outputs, const std::string& value) {
  return std::any_of(outputs.begin(), outputs.end(), [&](const Region::Output& output) {
    return output.value == value && !output.write;
  });
}

Result<Stage> windowed(const Region& region, const Node& node) {
  CG_TRY(auto window, find_window(region.source.graph, node));
  CG_TRY(Fused fused, window_stage(region, *window, node.outputs.front()));
  return Stage(std::move(fused));
}

// The number of elements chosen from a row, as a plan expression. The k of topk() may depend on the
// task's sizes; an output of the same shape then has the expression.
std::string count_of(const Task& task, const Region& region, const Choice& choice,
                     const Axis& row) {
  if (choice.count == 0) return row.extent;
  const Shape& shape = region.source.graph.find(region.outputs.front().value)->shape;
  for (const TensorInfo* output : task.with_role(TensorRole::output))
    if (output->shape == shape)
      return fmt::format("dim({},{})", region.names.at(output->name), shape.size() - 1);
  return std::to_string(choice.count);
}

// The stage of an operator that orders the elements of rows.
Attempt choose(const Task& task, Region region, Choice choice) {
  region.slices = true;
  std::vector<Axis> axes;
  for (int64_t size : region.source.graph.find(choice.input)->shape)
    axes.push_back({.size = size, .reduced = false, .extent = ""});
  axes.back().reduced = true;
  View whole;
  for (size_t i = 0; i < axes.size(); ++i) whole.axes.push_back(int(i));
  const auto above = nodes_above(region.source.graph, {choice.input}, region.kept);
  for (auto node = above.rbegin(); node != above.rend(); ++node)
    if (has_own_stage(**node))
      return {.fused = unsupported_error("an order of the result of " + (*node)->op),
              .cut = (*node)->outputs.front().name};
  Builder builder(region, std::move(axes));
  auto inst = builder.value(choice.input, whole);
  if (!inst) return {.fused = fail(inst.error()), .cut = builder.cut()};
  Fused& fused = builder.fused();
  if (fused.reduces() || fused.scans())
    return {.fused = unsupported_error("an order of values that depend on a reduction or a scan"),
            .cut = choice.input};
  whole.axes.back() = -1;
  for (const Region::Output& output : region.outputs) {
    const Shape& shape = region.source.graph.find(output.value)->shape;
    fused.outputs.push_back({.operand = {.tensor = output.tensor,
                                         .dtype = output.dtype,
                                         .shape = shape,
                                         .axes = whole.axes,
                                         .original = shape,
                                         .kept = true},
                             .inst = *inst});
  }
  choice.inst = *inst;
  if (auto found = find_extents(fused); !found) return {.fused = fail(found.error()), .cut = ""};
  choice.extent = count_of(task, region, choice, fused.axes.back());
  for (FusedOutput& output : fused.outputs) {
    for (const Axis& axis : fused.axes) output.operand.extents.push_back(axis.extent);
    output.operand.extents.back() = choice.extent;
  }
  fused.choice = std::move(choice);
  return {.fused = std::move(fused), .cut = ""};
}

// Whether wgmma can compute the partners in one tile. Three products of floats share 96 columns,
// which only factors along the depth fill.
bool fit_a_tile(const Contraction& joined) {
  const bool halves = joined.math_mode == MathMode::bf16 || joined.math_mode == MathMode::fp16;
  const bool odd = joined.groups() == 3 && !halves && joined.b.depth.move != Move::next;
  return joined.groups() <= kMostGroups && !odd;
}

// The stage of several products that writes the outputs, if there is one.
std::optional<Contraction> join(const Task& task, const Region& region, const Masks& masks,
                                const StageOptions& options) {
  if (!options.join) return std::nullopt;
  auto joined = join_products(task, region, masks);
  if (!joined) return std::nullopt;
  if (joined->groups() > 1 && !(options.hopper && fit_a_tile(*joined))) return std::nullopt;
  return std::move(*joined);
}

// Whether the nest reduces images of `tensor`, not only over its channels.
bool reduces_images(const Fused& fused, const std::string& tensor) {
  return std::any_of(fused.inputs.begin(), fused.inputs.end(), [&](const Operand& operand) {
    if (operand.tensor != tensor) return false;
    for (size_t i = 0; i < operand.axes.size(); ++i) {
      const int axis = operand.axes[i];
      if ((i != 1 || operand.reshaped) && axis >= 0 && fused.axes[size_t(axis)].reduced)
        return true;
    }
    return false;
  });
}

// Whether elements along reduced axes are needed again after a reduction.
bool reads_twice(const Fused& fused) {
  const auto reduced = [&](int axis) { return axis >= 0 && fused.axes[size_t(axis)].reduced; };
  return fused.max_depth() > 1 ||
         std::any_of(fused.outputs.begin(), fused.outputs.end(), [&](const FusedOutput& output) {
           return std::any_of(output.operand.axes.begin(), output.operand.axes.end(), reduced);
         });
}

class Solver {
 public:
  // `keeps_joins`: joined values may be kept in scratch.
  Solver(const Task& task, Decomposed source, Masks masks, const StageOptions& options,
         bool keeps_joins)
      : task_(task),
        options_(options),
        source_(std::move(source)),
        masks_(std::move(masks)),
        keeps_joins_(keeps_joins),
        names_(short_names(task)) {
    for (const auto& [tensor, name] : names_) (void)words_.unique(name);
  }

  // Each group of outputs has one stage at the end.
  Result<Stages> run(const std::vector<Outputs>& groups) {
    std::vector<Made> last;
    for (const Outputs& group : groups) {
      const std::vector<Outputs> parts = tied(group);
      Region whole = region(group, kept_);
      whole.slices = true;
      std::optional<Fused> together =
          parts.size() > 1 ? fuse_if_equal(std::move(whole)) : std::nullopt;
      for (const Outputs& outputs : parts) {
        CG_TRY(Stage stage, solve(outputs));
        last.push_back({.outputs = outputs, .stage = std::move(stage)});
      }
      if (together) add_choice(last, parts.size(), group, std::move(*together));
    }
    gather_reductions(source_.graph, made_);
    merge_neighbours();
    Stages stages;
    for (Made& made : made_) {
      for (const Region::Output& output : made.outputs)
        // Only the first part of a value adds its scratch.
        if (output.kept && !output.write && (!output.part || output.part->start.at == 0) &&
            std::none_of(stages.scratch.begin(), stages.scratch.end(), [&](const Scratch& other) {
              return other.name == names_.at(output.tensor);  // both steps of a scatter
            }))
          stages.scratch.push_back({.name = names_.at(output.tensor),
                                    .dtype = output.dtype,
                                    .extents = kept_.at(output.tensor)});
      stages.list.push_back(std::move(made.stage));
    }
    for (Made& made : last) stages.list.push_back(std::move(made.stage));
    fuse_after_windows(stages, names_, [](const Fused& fused) {
      return !fused.reduces() && !fused.scans() && !fused.special() && fused.when.empty();
    });
    for (const auto& [first, other] : assumed_)
      stages.demands.push_back(fmt::format("{} == {}", first, other));
    for (Stage& stage : stages.list) {
      if (auto* fused = std::get_if<Fused>(&stage)) {
        const auto places = fused->names.find(kPlaces);
        const bool counts = places != fused->names.end();
        fused->names = names_;
        if (counts) fused->names.emplace(kPlaces, words_.unique("place"));
      }
      if (auto* attention = std::get_if<Attention>(&stage)) attention->loads.names = names_;
    }
    return stages;
  }

 private:
  Region region(const Outputs& outputs, Kept kept) const {
    return Region{.source = source_,
                  .names = names_,
                  .kept = std::move(kept),
                  .outputs = outputs,
                  .parts = parts_,
                  .same = same_,
                  .equal = assumed_,
                  .packed = options_.packed};
  }

  Attempt attempt(const Outputs& outputs, Kept kept) const {
    Region whole = region(outputs, std::move(kept));
    whole.slices = true;
    Attempt a = fuse(whole);
    if (!a.fused) return a;
    for (const Operand& operand : a.fused->inputs)
      if (masks_.count(operand.tensor))
        return {.fused = unsupported_error("triu or tril of a value that is not a matrix product"),
                .cut = ""};
    return a;
  }

  // Divides outputs that a common loop nest would get wrong at some of the task's shapes.
  std::vector<Outputs> tied(const Outputs& outputs) {
    if (outputs.size() < 2) return {outputs};
    Attempt a = attempt(outputs, kept_);
    if (!a.apart.empty() && assume(a.equal)) a = attempt(outputs, kept_);
    if (a.apart.empty()) return {outputs};
    std::vector<Outputs> groups;
    for (const std::vector<size_t>& group : a.apart) {
      groups.emplace_back();
      for (size_t i : group) groups.back().push_back(outputs[i]);
    }
    return groups;
  }

  // If the sizes are equal at all shapes of the task, the plan may require it.
  bool assume(const EqualSizes& equal) {
    const bool holds = std::all_of(equal.begin(), equal.end(), [&](const auto& pair) {
      return same_size(task_, names_, pair.first, pair.second);
    });
    if (equal.empty() || !holds) return false;
    assumed_.insert(assumed_.end(), equal.begin(), equal.end());
    return true;
  }

  // Puts `together` before the last stages, which compute the same outputs at all other shapes.
  static void add_choice(std::vector<Made>& last, size_t stages, const Outputs& group,
                         Fused together) {
    for (auto made = last.end() - long(stages); made != last.end(); ++made) {
      auto& fused = std::get<Fused>(made->stage);
      fused.when = fmt::format("{} == 0", together.when);
      fused.spare = true;
    }
    last.insert(last.end() - long(stages),
                Made{.outputs = group, .stage = Stage(std::move(together))});
  }

  // Keeps values in scratch until the rest fits into one loop nest, or into the last product's.
  Result<Stage> solve(const Outputs& outputs) {
    for (;;) {
      Attempt a = attempt(outputs, kept_);
      if (a.fused) return Stage(std::move(*a.fused));
      if (assume(a.equal)) continue;
      const Node* cut = source_.graph.producer(a.cut);
      // Operators with their own kernel cannot write parts of tensors.
      const bool part = std::any_of(outputs.begin(), outputs.end(),
                                    [](const auto& output) { return output.part || output.write; });
      if (cut && !part && is_attention(*cut) && outputs.size() == 1 && outputs[0].value == a.cut) {
        CG_TRY(Attention attention, attended(outputs[0], *cut));
        return Stage(std::move(attention));
      }
      if (cut && cut->op == kScatter && !part && outputs.size() == 1 && outputs[0].value == a.cut &&
          outputs[0].dtype == cut->outputs.front().dtype)
        return scattered(outputs[0], *cut);
      if (cut && is_product(*cut) && !part) {
        CG_TRY(auto product, through_product(outputs, *cut));
        if (product) return Stage(std::move(*product));
        continue;
      }
      bool own = is_output(outputs, a.cut);
      // The output becomes a copy of the kernel's result.
      if (cut && (is_window(*cut) || is_attention(*cut) || is_choice(*cut) || cut->op == kScatter ||
                  cut->op == kRecurrence))
        own = false;
      if (a.cut.empty() || own || kept_.count(a.cut)) return fail(a.fused.error());
      CG_CHECK(keep(a.cut));
      if (cut && is_window(*cut) && !part) keep_work_after(outputs, *cut);
    }
  }

  // Keeps the furthest value that pointwise work computes from a window's result, so that the
  // window's kernel does this work. A norm would otherwise do the work each time it reads the
  // result, and a max pooling would do it for several elements one after another.
  void keep_work_after(const Outputs& outputs, const Node& window) {
    const Value& result = window.outputs.front();
    if (!reads_images_twice(outputs, result.name) && !reads_steps(outputs, result.name)) return;
    std::vector<std::string> wanted;
    for (const Region::Output& output : outputs) wanted.push_back(output.value);
    const auto ends = ends_of(region({}, kept_), wanted, result.name);
    if (is_output(outputs, ends.front())) return;  // the last stage does only pointwise work
    for (const std::string& end : ends) {
      const Value* value = source_.graph.find(end);
      if (end == result.name || size_of(value->dtype) > size_of(result.dtype)) return;
      Outputs kept{{.tensor = end, .value = end, .dtype = value->dtype, .kept = true}};
      names_[end] = words_.unique(end);
      Attempt a = attempt(kept, kept_);
      if (!a.fused || a.fused->reduces() || a.fused->scans() || a.fused->special()) {
        names_.erase(end);
        continue;
      }
      Stage stage(std::move(*a.fused));
      kept_[end] = outputs_of(stage)[0].operand.extents;
      made_.push_back({.outputs = std::move(kept), .stage = std::move(stage), .of_window = true});
      return;
    }
  }

  // Whether the stages of the outputs reduce images of the kept value, and read them again.
  bool reads_images_twice(const Outputs& outputs, const std::string& name) {
    const Attempt whole = attempt(outputs, kept_);
    if (whole.fused) return reads_twice(*whole.fused) && reduces_images(*whole.fused, name);
    const Value* cut = source_.graph.find(whole.cut);
    if (!cut || kept_.count(whole.cut)) return false;
    const auto before = names_;
    names_[whole.cut] = whole.cut;
    const Attempt first = attempt(
        {{.tensor = whole.cut, .value = whole.cut, .dtype = cut->dtype, .kept = true}}, kept_);
    names_ = before;
    return first.fused && reduces_images(*first.fused, name);
  }

  // Whether the stage of the outputs reads slices of the kept value such as x[:, :, ::2].
  bool reads_steps(const Outputs& outputs, const std::string& name) {
    const Attempt whole = attempt(outputs, kept_);
    if (!whole.fused) return false;
    const auto steps = [&](const Operand& operand) {
      return operand.tensor == name && std::any_of(operand.starts.begin(), operand.starts.end(),
                                                   [](const Start& s) { return s.step > 1; });
    };
    return std::any_of(whole.fused->inputs.begin(), whole.fused->inputs.end(), steps);
  }

  // Returns the product's stage if it writes the outputs. Otherwise keeps a value that it needs, or
  // the furthest value that it can compute, and returns nothing.
  Result<std::optional<Contraction>> through_product(const Outputs& outputs, const Node& product) {
    ContractionAttempt whole = contract(task_, region(outputs, kept_), masks_, product);
    if (whole.product) return std::optional(std::move(*whole.product));
    if (auto c = join(task_, region(outputs, kept_), masks_, options_)) return c;
    std::string next = whole.cut;
    std::vector<std::string> wanted;
    for (const Region::Output& output : outputs) wanted.push_back(output.value);
    auto ends = ends_of(region({}, kept_), wanted, product.outputs.front().name);
    for (auto end = ends.begin(); next.empty() && end != ends.end(); ++end)
      if (!is_output(outputs, *end) && can_end(product, *end)) next = *end;
    if (next.empty() || kept_.count(next)) return fail(whole.product.error());
    CG_CHECK(keep(next));
    return std::optional<Contraction>();
  }

  // Whether the product's stage can keep `end`, at least after other values have been kept.
  bool can_end(const Node& product, const std::string& end) const {
    Region r = region(
        {{.tensor = end, .value = end, .dtype = source_.graph.find(end)->dtype, .kept = true}},
        kept_);
    r.names[end] = end;
    ContractionAttempt a = contract(task_, r, masks_, product);
    return a.product || !a.cut.empty();
  }

  Result<void> keep(const std::string& name) {
    const Value* value = source_.graph.find(name);
    CG_ASSERT(value);
    if (device_type(value->dtype).empty())
      return unsupported_error(fmt::format("{} of dtype {}", name, to_string(value->dtype)));
    if (++open_ > kMostKept + partial_sums(source_.graph))
      return unsupported_error(fmt::format("more than {} stages", kMostKept));
    const Node* producer = source_.graph.producer(name);
    if (producer && is_choice(*producer)) return keep_chosen(*producer);
    if (producer && producer->op == kRecurrence) return keep_recurrence(*producer);
    names_[name] = words_.unique(name);
    if (keeps_joins_ && producer && is_join(*producer)) return keep_parts(*producer);
    Outputs outputs{{.tensor = name, .value = name, .dtype = value->dtype, .kept = true}};
    if (producer && is_window(*producer)) CG_CHECK(keep_operands(*producer));
    CG_TRY(Stage stage, producer && is_window(*producer) ? windowed(region({}, kept_), *producer)
                                                         : solve(outputs));
    kept_[name] = outputs_of(stage)[0].operand.extents;
    if (const auto* fused = std::get_if<Fused>(&stage))
      same_[name] = equal_sizes(*fused, fused->outputs[0], region({}, kept_));
    if (const auto* product = std::get_if<Contraction>(&stage);
        product && value->shape.size() == (product->batch_axes.empty() ? 2 : 3) &&
        value->shape[0] ==
            (product->batch_axes.empty() ? product->size(product->m) : product->batches()))
      parts_[name] = parts_of_result(*product);
    made_.push_back({.outputs = std::move(outputs), .stage = std::move(stage)});
    return {};
  }

  // Keeps joined values: each operand's stage writes its part of the scratch.
  Result<void> keep_parts(const Node& join) {
    const Value& whole = join.outputs[0];
    const auto joined = joined_axis(source_.graph, join);
    if (!joined) return unsupported_error(join.op + ": its operands", join.id);
    std::vector<std::string> extents;
    int64_t at = 0;
    for (int64_t length : joined->lengths) {
      if (length == 0) continue;
      Region::Output part{.tensor = whole.name,
                          .value = whole.name,
                          .dtype = whole.dtype,
                          .kept = true,
                          .part = Region::Part{.axis = joined->axis,
                                               .length = length,
                                               .start = {.at = at, .by_number = true},
                                               .whole = std::to_string(whole.shape[joined->axis])}};
      CG_TRY(Stage stage, solve({part}));
      extents = outputs_of(stage)[0].operand.extents;
      made_.push_back({.outputs = {part}, .stage = std::move(stage)});
      at += length;
    }
    kept_[whole.name] = extents;
    return {};
  }

  // cutegen.scatter(x, part, axis, index, along, mode, wraps): one stage writes x to the output.
  // Returns the next one, which puts the elements of the part in their places.
  Result<Stage> scattered(const Region::Output& output, const Node& node) {
    static const std::map<std::string, WriteMode> kModes{{"store", WriteMode::store},
                                                         {"add", WriteMode::add},
                                                         {"multiply", WriteMode::multiply},
                                                         {"amax", WriteMode::largest},
                                                         {"amin", WriteMode::smallest}};
    Region::Output whole = output, part = output;
    whole.value = reference(node.args[0]).value_or("");
    CG_TRY(Stage first, solve({whole}));
    if (output.kept) kept_[output.tensor] = outputs_of(first)[0].operand.extents;
    made_.push_back({.outputs = {whole}, .stage = std::move(first)});
    part.value = reference(node.args[1]).value_or("");
    part.write = Write{.tensor = node.outputs.front().name,
                       .source = part.value,
                       .axis = node.args[2].get<size_t>(),
                       .index = reference(node.args[3]).value_or(""),
                       .wraps = node.args[6].get<bool>(),
                       .along = node.args[4].get<bool>(),
                       .mode = kModes.at(node.args[5].get<std::string>())};
    CG_TRY(Stage second, solve({part}));
    if (auto* nest = std::get_if<Fused>(&second); nest && part.write->along)
      demand_equal_sizes(*nest);
    return second;
  }

  // Keeps the values and the positions that an operator chooses of each row.
  Result<void> keep_chosen(const Node& node) {
    CG_TRY(auto choice, find_choice(source_.graph, node));
    Outputs outputs;
    for (const Value& value : node.outputs) {
      names_[value.name] = words_.unique(value.name);
      outputs.push_back(
          {.tensor = value.name, .value = value.name, .dtype = value.dtype, .kept = true});
    }
    for (;;) {
      Attempt a = choose(task_, region(outputs, kept_), *choice);
      if (a.fused) {
        for (const FusedOutput& output : a.fused->outputs)
          kept_[output.operand.tensor] = output.operand.extents;
        made_.push_back({.outputs = std::move(outputs), .stage = Stage(std::move(*a.fused))});
        return {};
      }
      if (a.cut.empty() || kept_.count(a.cut)) return fail(a.fused.error());
      CG_CHECK(keep(a.cut));
    }
  }

  // Keeps the states of all steps, the last states and the last cells.
  Result<void> keep_recurrence(const Node& node) {
    Recurrence r = *find_recurrence(node);
    Fused fused;
    const auto read = [&](const std::string& name) -> Result<void> {
      if (name.empty()) return {};
      if (source_.graph.producer(name) && !kept_.count(name)) CG_CHECK(keep(name));
      fused.inputs.push_back({.tensor = name, .shape = source_.graph.find(name)->shape});
      return {};
    };
    for (const Recurrence::Side& side : r.sides)
      for (const std::string& name : {side.inputs, side.weight, side.bias}) CG_CHECK(read(name));
    for (const std::string& name : {r.first, r.first_cell}) CG_CHECK(read(name));
    const std::vector<std::string> inputs = kept_.at(r.sides[0].inputs);
    const auto weight = kept_.find(r.sides[0].weight);
    r.steps = inputs[r.batch_first ? 1 : 0];
    r.batch = inputs[r.batch_first ? 0 : 1];
    r.states = weight == kept_.end() ? fmt::format("dim({},1)", names_.at(r.sides[0].weight))
                                     : weight->second[1];
    const std::string sides = std::to_string(r.sides.size());
    const std::string all = r.sides.size() == 1 ? r.states : fmt::format("{}*{}", sides, r.states);
    const std::vector<std::string> extents{inputs[0], inputs[1], all};
    for (size_t i = 0; i < extents.size(); ++i)
      fused.axes.push_back({.size = node.outputs[0].shape[i], .extent = extents[i]});
    Outputs outputs;
    for (const Value& value : node.outputs) {
      names_[value.name] = words_.unique(value.name);
      outputs.push_back(
          {.tensor = value.name, .value = value.name, .dtype = value.dtype, .kept = true});
      FusedOutput output{
          .operand = {
              .tensor = value.name, .dtype = value.dtype, .shape = value.shape, .kept = true}};
      output.operand.original = value.shape;
      output.operand.extents = extents;
      if (!fused.outputs.empty()) output.operand.extents = {sides, r.batch, r.states};
      kept_[value.name] = output.operand.extents;
      fused.outputs.push_back(std::move(output));
    }
    fused.recurrence = std::move(r);
    made_.push_back({.outputs = std::move(outputs), .stage = Stage(std::move(fused))});
    return {};
  }

  // Windows read tensors: computed operands are kept first.
  Result<void> keep_operands(const Node& node) {
    CG_TRY(auto window, find_window(source_.graph, node));
    for (const std::string& operand : {window->input, window->weight})
      if (source_.graph.producer(operand) && !kept_.count(operand)) CG_CHECK(keep(operand));
    return {};
  }

  // Keeps operands in scratch until the attention can read all of them.
  Result<Attention> attended(const Region::Output& output, const Node& node) {
    for (;;) {
      AttentionAttempt a = attention_stage(region({}, kept_), node, output);
      if (a.attention || a.cut.empty() || kept_.count(a.cut)) return std::move(a.attention);
      CG_CHECK(keep(a.cut));
    }
  }

  // Merges neighbouring stages that fit into one nest, so that they share their reads.
  void merge_neighbours() {
    for (size_t i = 0; i + 1 < made_.size();) {
      const auto moves = [](const Region::Output& output) {
        return output.write || output.tensor != output.value;
      };
      const auto fits = [&](const Made& made) {
        return !made.of_window && plain_nest(made.stage) &&
               std::none_of(made.outputs.begin(), made.outputs.end(), moves);
      };
      if (!fits(made_[i]) || !fits(made_[i + 1])) {
        ++i;
        continue;
      }
      Outputs both = made_[i].outputs;
      both.insert(both.end(), made_[i + 1].outputs.begin(), made_[i + 1].outputs.end());
      Kept others = kept_;
      for (const Region::Output& output : both) others.erase(output.value);
      Attempt a = attempt(both, others);
      if (assume(a.equal)) a = attempt(both, std::move(others));
      if (!a.fused || !keeps_extents(task_, names_, kept_, *a.fused)) {
        ++i;
        continue;
      }
      made_[i] = {.outputs = std::move(both), .stage = Stage(std::move(*a.fused))};
      made_.erase(made_.begin() + long(i) + 1);
    }
  }

  const Task& task_;
  StageOptions options_;
  Decomposed source_;
  Masks masks_;
  bool keeps_joins_;
  std::map<std::string, std::string> names_;
  Names words_;
  Kept kept_;
  std::map<std::string, MergedAxes> parts_;
  SizeTexts same_;
  EqualSizes assumed_;  // the plan requires that these sizes are equal
  std::vector<Made> made_;
  size_t open_ = 0;
};

Result<Stages> solve(const Task& task, const Graph& graph, const Masks& masks,
                     const StageOptions& options) {
  CG_TRY(
      Decomposed source,
      decompose(earlier_moves(later_views(slices_before_views(finer_views(einsum_views(graph))))),
                task));
  const bool tf32 = task.tf32_convolutions || task.math_mode == MathMode::tf32;
  CG_TRY(source.graph, products_of_convolutions(std::move(source.graph), options.products, tf32));
  const Outputs outputs = outputs_of(task, graph);
  for (const Region::Output& output : outputs)
    if (!source.graph.find(output.value))
      return unsupported_error(
          fmt::format("the value that '{}' gets has no rule of its own", output.tensor));
  auto stages = Solver(task, source, masks, options, false).run({outputs});
  if (stages) return stages;
  // One loop nest cannot compute all outputs. Try one for each shape, output or part of an output.
  std::vector<Outputs> single;
  for (const Region::Output& output : outputs) single.push_back({output});
  const auto parts = by_part(source.graph, outputs);
  const auto together = side_by_side(source.graph, parts);
  for (const auto& groups : {by_shape(source.graph, outputs), single, together, parts}) {
    if (groups.empty() || (groups.size() == 1 && !groups[0][0].part)) continue;
    auto apart = Solver(task, source, masks, options, false).run(groups);
    if (apart) return apart;
    if (groups.size() == outputs.size())
      stages = std::move(apart);  // its error concerns one output
  }
  const auto nodes = nodes_above(source.graph, source.graph.outputs, {});
  if (std::none_of(nodes.begin(), nodes.end(), [](const Node* node) { return is_join(*node); }))
    return stages;
  // A joined value that a window or a product reads is kept in scratch.
  for (const auto& groups : {together, parts, {outputs}, single})
    if (!groups.empty())
      if (auto kept = Solver(task, source, masks, options, true).run(groups)) return kept;
  return stages;
}

// Turns products with a vector into reductions.
Result<Graph> without_vectors(const Task& task, Graph graph) {
  const std::vector<Node> nodes = graph.nodes;
  for (const Node& node : nodes) {
    if (!is_product(node)) continue;
    const Decomposed source{.graph = graph, .extents = {}};
    auto vector = vector_factor(
        task, Region{.source = source, .names = short_names(task), .kept = {}, .outputs = {}},
        node);
    if (!vector) continue;
    CG_TRY(graph, as_reduction(graph, node.outputs.front().name, *vector));
  }
  return graph;
}

}  // namespace

const std::vector<FusedOutput>& outputs_of(const Stage& stage) {
  if (const auto* attention = std::get_if<Attention>(&stage)) return attention->outputs;
  const auto* product = std::get_if<Contraction>(&stage);
  return product ? product->finish.outputs : std::get<Fused>(stage).outputs;
}

Result<Stages> make_stages(const Task& task, const StageOptions& options) {
  CG_TRY(Graph graph, prepare(task));
  if (graph.nodes.size() > kMostNodes)
    return unsupported_error(fmt::format("more than {} operators", kMostNodes));
  if (options.hopper) graph = fuse_attention(std::move(graph));
  graph = hoist_scales(std::move(graph));
  CG_TRY(Lowered lowered, lower_products(graph));
  const auto above = nodes_above(lowered.graph, lowered.graph.outputs, {});
  const bool products =
      std::any_of(above.begin(), above.end(), [](const Node* node) { return is_product(*node); });
  // Only products use masks.
  if (!products && !lowered.masks.empty()) return solve(task, graph, {}, options);
  if (products && lowered.masks.empty() && !options.packed) {
    CG_TRY(Graph sums, without_vectors(task, lowered.graph));
    if (auto stages = solve(task, sums, {}, options)) return stages;
  }
  auto stages = solve(task, lowered.graph, lowered.masks, options);
  if (stages || lowered.masks.empty()) return stages;
  // Not all masked values are results of products.
  CG_TRY(Lowered chosen, lower_products(expand_triangles(graph)));
  return solve(task, chosen.graph, {}, options);
}

}  // namespace cutegen::recipes
