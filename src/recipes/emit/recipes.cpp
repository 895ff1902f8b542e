// SPDX-License-Identifier: Apache-2.0
#include "recipes/emit/recipes.h"

#include <fmt/format.h>

#include <algorithm>

#include "recipes/emit/attention.h"
#include "recipes/emit/elementwise.h"
#include "recipes/emit/in_place.h"
#include "recipes/emit/order.h"
#include "recipes/emit/recurrent.h"
#include "recipes/emit/reduction.h"
#include "recipes/emit/row_outputs.h"
#include "recipes/emit/scan.h"
#include "recipes/fuse/extents.h"
#include "recipes/matmul/matmul.h"
#include "recipes/matmul/matmul_kernel.h"
#include "recipes/matmul/matmul_stream.h"
#include "recipes/matmul/matmul_tiling.h"
#include "recipes/nest/accuracy.h"
#include "recipes/nest/joined_reads.h"
#include "recipes/nest/nest.h"
#include "recipes/text/sizes_at_shapes.h"
#include "recipes/windows/window.h"
#include "recipes/windows/window_implicit.h"
#include "recipes/windows/window_products.h"

namespace cutegen::recipes {
namespace {

constexpr int64_t kPerElement = 100;  // an H200 multiplies 62 T and moves 600 G floats/s
constexpr size_t kMostSources = 256;  // of a plan
constexpr size_t kLargeProgram = 64;  // stages; larger programs may exceed other limits of a plan
constexpr int64_t kWorthTuning = 16;  // tune stages with 1/16 of the largest stage's elements

// A program of stages. The parameters of the largest stage keep their names. The names of other
// stages worth tuning get the stage's number as a prefix; all other stages keep the safe choice.
struct Staged {
  Stages stages;
  std::vector<std::string> prefixes;  // "" or "s1_"
  std::vector<bool> tuned;
  bool hopper = false;
};

const Staged& state_of(const RecipeMatch& match) {
  CG_ASSERT(match.state != nullptr);
  return *static_cast<const Staged*>(match.state.get());
}

Json safe_of(const Stage& stage, bool hopper) {
  if (const auto* product = std::get_if<Contraction>(&stage)) return matmul_safe(*product);
  if (const auto* attention = std::get_if<Attention>(&stage)) return attention_safe(*attention);
  const Fused& fused = std::get<Fused>(stage);
  if (fused.window) return window_safe(fused);
  if (fused.choice) return order_safe(fused);
  if (fused.recurrence) return recurrent_safe(fused, hopper);
  if (fused.scans()) return scan_safe(fused);
  return fused.reduces() ? reduction_safe(fused, hopper) : elementwise_safe(fused);
}

// Returns the parameters of stage `i` under the recipe's own names.
Json params_of(const Staged& staged, size_t i, const Json& params) {
  Json own = safe_of(staged.stages.list[i], staged.hopper);
  if (staged.tuned[i])
    for (auto& [name, value] : own.items()) value = params.at(staged.prefixes[i] + name);
  return own;
}

bool legal(const Stage& stage, const Json& params, bool hopper) {
  if (const auto* product = std::get_if<Contraction>(&stage)) return matmul_legal(*product, params);
  if (const auto* attention = std::get_if<Attention>(&stage))
    return attention_legal(*attention, params);
  const Fused& fused = std::get<Fused>(stage);
  if (fused.window) return window_legal(fused, params);
  if (fused.choice) return order_legal(fused, params);
  if (fused.recurrence) return recurrent_legal(fused, params, hopper);
  if (fused.scans()) return scan_legal(fused, params);
  return !fused.reduces() || reduction_legal(fused, params, hopper);
}

bool legal(const Staged& staged, const Json& params) {
  for (size_t i = 0; i < staged.stages.list.size(); ++i)
    if (!legal(staged.stages.list[i], params_of(staged, i, params), staged.hopper)) return false;
  return true;
}

// Each parameter must be present, an integer, and one of the legal values (or the safe one).
Result<void> check_params(const RecipeMatch& match, const Json& params) {
  if (!params.is_object()) return user_error("recipe parameters are not a JSON object");
  for (const auto& [name, safe] : match.safe.items()) {
    if (!params.contains(name) || !params.at(name).is_number_integer())
      return user_error(fmt::format("recipe parameter {} is missing or not an integer", name));
    const Json& value = params.at(name);
    auto it = std::find_if(match.parameters.begin(), match.parameters.end(),
                           [&, key = name](const RecipeParameter& p) { return p.name == key; });
    bool known = value == safe || (it != match.parameters.end() &&
                                   std::find(it->legal.begin(), it->legal.end(),
                                             value.get<int64_t>()) != it->legal.end());
    if (!known)
      return user_error(fmt::format("recipe parameter {} cannot be {}", name, value.dump()));
  }
  if (!legal(state_of(match), params))
    return user_error("these recipe parameters cannot be combined: " + params.dump());
  return {};
}

// The elements that a stage visits. A product multiplies kPerElement times while a loop nest
// moves one element.
int64_t elements(const Stage& stage) {
  if (const auto* product = std::get_if<Contraction>(&stage)) {
    const int64_t m = product->size(product->m), k = product->size(product->k);
    int64_t n = 0;
    for (const Contraction* part : parts_of(*product)) n += part->size(part->n) * part->groups();
    return product->batches() * (m * n + m * k + n * k + m * n / kPerElement * k);
  }
  if (const auto* attention = std::get_if<Attention>(&stage)) {
    auto size = [&](Attention::AxisOf axis) { return attention->size(axis); };
    const int64_t heads = size(Attention::kBatch) * size(Attention::kHead),
                  widths = size(Attention::kDepth) + size(Attention::kWidth);
    return heads * (size(Attention::kRow) + size(Attention::kKey)) * widths +
           heads * size(Attention::kRow) * size(Attention::kKey) / kPerElement * widths;
  }
  const Fused& fused = std::get<Fused>(stage);
  if (fused.recurrence) {
    const int64_t results = fused.axes[0].size * fused.axes[1].size * fused.axes[2].size;
    return std::max<int64_t>(
        1, results * (1 + fused.recurrence->gates() * fused.axes[2].size /
                              (kPerElement * int64_t(fused.recurrence->sides.size()))));
  }
  Nest nest = make_nest(fused);
  return std::max<int64_t>(1, nest.rows()) * std::max<int64_t>(1, nest.length());
}

// Whether the stage does not run at the official shape.
bool is_spare(const Stage& stage) {
  const auto* fused = std::get_if<Fused>(&stage);
  return fused && fused->spare;
}

// A rough time of all stages, to compare ways to compute the same task.
double seconds_of_all(const Stages& stages) {
  constexpr double kLaunch = 2e-6, kElementsPerSecond = 6e11;
  double seconds = 0;
  for (const Stage& stage : stages.list) {
    if (is_spare(stage)) continue;
    const auto* product = std::get_if<Contraction>(&stage);
    seconds += kLaunch + (product ? seconds_of(*product) : elements(stage) / kElementsPerSecond);
  }
  return seconds;
}

void set_hopper(Contraction& c, bool hopper) {
  c.hopper = hopper;
  for (Contraction& part : c.parts) part.hopper = hopper;
}

// Chooses the stages to tune and the prefixes of their parameters.
void name_parameters(Staged& staged) {
  const auto& list = staged.stages.list;
  size_t largest = 0;
  for (size_t i = 1; i < list.size(); ++i)
    if (!is_spare(list[i]) && elements(list[i]) > elements(list[largest])) largest = i;
  for (size_t i = 0; i < list.size(); ++i) {
    const bool large = elements(list[i]) >= elements(list[largest]) / kWorthTuning;
    staged.prefixes.push_back(i == largest ? "" : fmt::format("s{}_", i + 1));
    staged.tuned.push_back(large && !is_spare(list[i]));
  }
}

bool is_product(const Stage& stage) {
  return std::holds_alternative<Contraction>(stage);
}

std::string why_of_products(const Staged& staged) {
  const auto& list = staged.stages.list;
  const auto products = std::count_if(list.begin(), list.end(), is_product);
  const std::string op =
      std::get<Contraction>(*std::find_if(list.begin(), list.end(), is_product)).op;
  const std::string what = products == 1 ? "one matrix product (" + op + ")"
                                         : fmt::format("{} matrix products", products);
  if (list.size() == 1) return what + " and pointwise work on its result";
  return fmt::format("{} and the work around {} in {} stages", what, products == 1 ? "it" : "them",
                     list.size());
}

std::string why_of(const Staged& staged) {
  const auto& list = staged.stages.list;
  auto attends = [](const Stage& stage) { return std::holds_alternative<Attention>(stage); };
  if (std::any_of(list.begin(), list.end(), attends))
    return list.size() == 1
               ? "attention: a product, a softmax of its rows, and a second product"
               : fmt::format("attention and the work around it in {} stages", list.size());
  if (std::any_of(list.begin(), list.end(), is_product)) return why_of_products(staged);
  const Fused& first = std::get<Fused>(list[0]);
  if (list.size() == 1 && first.window)
    return fmt::format(
        "one {} and {}", first.window->window.op,
        first.reduces() ? "reductions over its channels" : "pointwise work on its result");
  if (list.size() == 1 && first.scans()) return "scans along one axis and pointwise work";
  const auto orders = [](const Stage& stage) { return std::get<Fused>(stage).choice.has_value(); };
  if (std::any_of(list.begin(), list.end(), orders))
    return fmt::format("elements of rows in order, and the work around it in {} stages",
                       list.size());
  if (list.size() > 1)
    return fmt::format("pointwise work and reductions in {} stages", list.size());
  if (!first.reduces()) return "a chain of pointwise operators";
  return fmt::format("pointwise work around reductions over the same axes, {} pass(es) deep",
                     first.max_depth());
}

std::vector<RecipeParameter> parameters_of(const Stage& stage, bool hopper) {
  if (const auto* product = std::get_if<Contraction>(&stage)) return matmul_parameters(*product);
  if (const auto* attention = std::get_if<Attention>(&stage))
    return attention_parameters(*attention);
  const Fused& fused = std::get<Fused>(stage);
  if (fused.window) return window_parameters(fused);
  if (fused.choice) return order_parameters(fused);
  if (fused.recurrence) return recurrent_parameters(hopper);
  if (fused.scans()) return scan_parameters(fused);
  return fused.reduces() ? reduction_parameters(fused, hopper) : elementwise_parameters(fused);
}

// Lists the parameters of the tuned stages, the largest stage's first.
void list_parameters(const Staged& staged, RecipeMatch& match) {
  for (bool main : {true, false})
    for (size_t i = 0; i < staged.stages.list.size(); ++i) {
      const std::string& prefix = staged.prefixes[i];
      if (prefix.empty() != main || !staged.tuned[i]) continue;
      const Stage& stage = staged.stages.list[i];
      auto own = parameters_of(stage, staged.hopper);
      for (RecipeParameter& parameter : own) {
        parameter.name = prefix + parameter.name;
        match.parameters.push_back(std::move(parameter));
      }
      Json safe = safe_of(stage, staged.hopper);
      for (const auto& [name, value] : safe.items()) match.safe[prefix + name] = value;
    }
}

std::string name_of(const Stages& stages) {
  const auto recurs = [](const Stage& stage) {
    const auto* fused = std::get_if<Fused>(&stage);
    return fused && fused->recurrence;
  };
  if (std::any_of(stages.list.begin(), stages.list.end(), recurs)) return "recurrent";
  bool product = false, window = false, scans = false, reduces = false, orders = false;
  for (const Stage& stage : stages.list) {
    if (std::holds_alternative<Attention>(stage)) return "attention";
    const auto* fused = std::get_if<Fused>(&stage);
    product |= !fused;
    window |= fused && fused->window;
    orders |= fused && fused->choice;
    scans |= fused && fused->scans();
    reduces |= fused && fused->reduces();
  }
  return product   ? "matmul"
         : window  ? "windows"
         : orders  ? "order"
         : scans   ? "scan"
         : reduces ? "reduction"
                   : "elementwise";
}

Staged offer(const Task& task, RecipeMatch& match, Stages stages, bool hopper) {
  if (hopper) fuse_channel_reductions(task, stages);
  join_row_outputs(task, stages);
  Staged staged{.stages = std::move(stages), .hopper = hopper};
  for (Stage& stage : staged.stages.list) {
    if (auto* product = std::get_if<Contraction>(&stage)) set_hopper(*product, hopper);
    auto* fused = std::get_if<Fused>(&stage);
    if (fused && fused->window) fused->window->wgmma = hopper ? implicit_products(task, *fused) : 0;
    if (!fused || !fused->reduces() || fused->window) continue;
    join_reads(*fused);
    fused->lengths = timed_lengths(task, *fused);
  }
  name_parameters(staged);
  match.recipe = name_of(staged.stages);
  match.why = why_of(staged);
  list_parameters(staged, match);
  return staged;
}

// A stage of pointwise work alone, whose kernel may overlap with others.
const Fused* pointwise_stage(const Stage& stage) {
  const auto* fused = std::get_if<Fused>(&stage);
  const bool alone = fused && !fused->window && !fused->special() && !fused->scans();
  return alone && !fused->reduces() ? fused : nullptr;
}

// A stage whose kernels are loop nests.
bool is_nest(const Stage& stage) {
  const auto* fused = std::get_if<Fused>(&stage);
  return fused && !fused->window;
}

// Whether a step of the part may begin before the previous one ends.
bool has_overlap(const ProgramPart& part) {
  return std::any_of(part.steps.begin(), part.steps.end(),
                     [](const Json& step) { return step.contains("pdl"); });
}

// Whether the stage reads nothing that `before` writes, and writes no element that `before` writes.
bool is_independent(const Fused& stage, const Fused& before) {
  for (const FusedOutput& output : stage.outputs)
    for (const FusedOutput& other : before.outputs)
      if (output.operand.tensor == other.operand.tensor &&
          (output.operand.gathered() || other.operand.gathered()))
        return false;
  return std::none_of(stage.inputs.begin(), stage.inputs.end(), [&](const Operand& input) {
    return std::any_of(
        before.outputs.begin(), before.outputs.end(),
        [&](const FusedOutput& output) { return output.operand.tensor == input.tensor; });
  });
}

// How each stage overlaps: runs of stages that do not read one another's results.
std::vector<Overlap> overlaps_of(const Staged& staged) {
  const auto& list = staged.stages.list;
  std::vector<Overlap> overlaps(list.size());
  for (size_t i = 1, first = 0; staged.hopper && i < list.size(); ++i) {
    const Fused* stage = pointwise_stage(list[i]);
    bool free = stage != nullptr;
    for (size_t j = first; free && j < i; ++j) {
      const Fused* before = pointwise_stage(list[j]);
      free = before && is_independent(*stage, *before) && is_independent(*before, *stage);
    }
    if (!free) first = i;
    if (free) overlaps[i - 1].next = overlaps[i].previous = true;
  }
  return overlaps;
}

// Returns the product with functions only as accurate as its results need.
Contraction relaxed(const Task& task, Contraction c) {
  const Accuracy accuracy = needed_accuracy(task, c.finish);
  c.finish = relaxed(accuracy, std::move(c.finish));
  for (Contraction& part : c.parts) part = relaxed(task, std::move(part));
  return c;
}

ProgramPart part_of(const Task& task, const Stage& stage, const Json& params, const Label& label,
                    const Overlap& overlap) {
  if (const auto* product = std::get_if<Contraction>(&stage))
    return matmul_part(task, relaxed(task, *product), params, label);
  if (const auto* attention = std::get_if<Attention>(&stage))
    return attention_part(task, *attention, params, label);
  const Fused& whole = std::get<Fused>(stage);
  if (whole.recurrence) return recurrent_part(whole, params, label);
  const Fused fused = relaxed(needed_accuracy(task, whole), whole);
  if (fused.window) return window_part(task, fused, params, label);
  if (fused.choice) return order_part(task, fused, params, label);
  if (fused.scans()) return scan_part(task, fused, params, label);
  return fused.reduces() ? reduction_part(task, fused, params, label)
                         : elementwise_part(task, fused, params, label, overlap);
}

// Makes the stage's launches depend on Fused::when.
void run_if_wanted(const Stage& stage, ProgramPart& part) {
  const auto* fused = std::get_if<Fused>(&stage);
  if (!fused || fused->when.empty()) return;
  auto guard = [&](ProgramPart& some) {
    for (Json& step : some.steps)
      step["when"] = fmt::format("{} ? {} : 0", fused->when, step.value("when", std::string("1")));
  };
  guard(part);
  for (ProgramPart& earlier : part.earlier) guard(earlier);
}

// Returns the parts of all stages in the order in which they run.
std::vector<ProgramPart> in_order(std::vector<ProgramPart> stages) {
  std::vector<ProgramPart> parts;
  for (ProgramPart& stage : stages) {
    for (ProgramPart& part : stage.earlier) parts.push_back(std::move(part));
    parts.push_back(std::move(stage));
  }
  return parts;
}

Result<KernelProgram> program(const Task& task, const Staged& staged, const Json& params) {
  const auto& list = staged.stages.list;
  std::vector<ProgramPart> parts;
  const std::vector<Overlap> overlaps = overlaps_of(staged);
  for (size_t i = 0; i < list.size(); ++i) {
    const Label label{list.size() == 1 ? "" : std::to_string(i + 1)};
    parts.push_back(part_of(task, list[i], params_of(staged, i, params), label, overlaps[i]));
    run_if_wanted(list[i], parts.back());
  }
  bool chained = staged.hopper;
  for (size_t i = 0; i < list.size(); ++i)
    chained &= is_nest(list[i]) || (is_product(list[i]) && !has_overlap(parts[i]));
  parts = in_order(std::move(parts));
  if (chained) chain_steps(parts);
  return assemble(task, staged.stages, parts);
}

}  // namespace

namespace {

// The stages if products read packed weights; nothing if no product does.
std::optional<Stages> packed_stages(const Task& task, StageOptions options) {
  options.packed = true;
  auto stages = make_stages(task, options);
  if (!stages) return std::nullopt;
  bool any = false;
  for (const Stage& stage : stages->list) {
    const auto* product = std::get_if<Contraction>(&stage);
    if (!product || !product->b.packed) continue;
    if (!streams(*product)) return std::nullopt;
    any = true;
  }
  return any ? std::optional(std::move(*stages)) : std::nullopt;
}

// The stages with or without joined products, whichever takes less time.
Result<Stages> stages_with(const Task& task, const StageOptions& options) {
  const bool hopper = options.hopper;
  if (auto packed = packed_stages(task, options)) return std::move(*packed);
  StageOptions with_joins = options;
  with_joins.join = true;
  auto stages = make_stages(task, with_joins);
  if (!stages) stages = make_stages(task, options);
  // The graph around an attention may not fit into stages. Without attention stages, products and a
  // softmax may fit.
  if (!stages && hopper) stages = make_stages(task, {.products = options.products});
  const auto joins = [](const Stage& stage) {
    const auto* product = std::get_if<Contraction>(&stage);
    return product && product->joined();
  };
  if (!stages || std::none_of(stages->list.begin(), stages->list.end(), joins)) return stages;
  auto apart = make_stages(task, options);
  if (!apart) return stages;
  const auto seconds = [&](Stages all) {
    for (Stage& stage : all.list)
      if (auto* product = std::get_if<Contraction>(&stage)) set_hopper(*product, hopper);
    return seconds_of_all(all);
  };
  return seconds(*apart) < seconds(*stages) ? std::move(apart) : std::move(stages);
}

// Whether some test shape meets the requirements of all loop nests, or there is no test shape.
bool fits_a_test_shape(const Task& task, const Stages& stages) {
  const auto holds = [&](const Fused& fused, const ShapeCase& shape) {
    const std::vector<std::string> demands = fixed_sizes(fused);
    return std::all_of(demands.begin(), demands.end(), [&](const std::string& demand) {
      const auto value = size_at(task, fused.names, shape, demand);
      return !value || *value != 0;
    });
  };
  bool any = false;
  for (const ShapeCase& shape : task.shapes) {
    if (shape.kind == ShapeKind::official) continue;
    any = true;
    if (std::all_of(stages.list.begin(), stages.list.end(), [&](const Stage& stage) {
          const auto* fused = std::get_if<Fused>(&stage);
          return !fused || holds(*fused, shape);
        }))
      return true;
  }
  return !any;
}

// The stages in which products compute some convolutions, if that is faster.
Result<Stages> best_stages(const Task& task, bool hopper) {
  auto stages = stages_with(task, {.hopper = hopper});
  if (!stages || !hopper) return stages;
  const std::set<std::string> names = product_convolutions(task, *stages);
  if (names.empty()) return stages;
  auto products = stages_with(task, {.hopper = hopper, .products = names});
  const bool better = products && adds_only_copies(*products, *stages, names.size()) &&
                      (fits_a_test_shape(task, *products) || !fits_a_test_shape(task, *stages));
  return better ? std::move(products) : std::move(stages);
}

}  // namespace

namespace {

// Refuses a program that exceeds a limit of plans.
void check_limits(const Task& task, RecipeMatch& match) {
  if (auto made = program(task, state_of(match), match.safe); !made)
    match = {.why = "a program with " + made.error().message};
}

}  // namespace

RecipeMatch match_recipe(const Task& task, std::string_view arch) {
  RecipeMatch match;
  const bool hopper = arch == kHopperArch;
  auto stages = best_stages(task, hopper);
  if (stages) stages = read_before_writing(task, std::move(*stages));
  if (stages && stages->list.size() > kMostSources)
    stages = unsupported_error(
        fmt::format("{} kernels, more than {}", stages->list.size(), kMostSources));
  if (!stages) {
    match.why = stages.error().message;
    if (!stages.error().where.empty()) match.why += " (node " + stages.error().where + ")";
    return match;
  }
  const bool large = stages->list.size() > kLargeProgram;
  match.state = std::make_shared<const Staged>(offer(task, match, std::move(*stages), hopper));
  if (large) check_limits(task, match);
  return match;
}

Result<KernelProgram> instantiate(const Task& task, const RecipeMatch& match, const Json& params) {
  if (match.recipe.empty()) return unsupported_error("no recipe: " + match.why);
  CG_CHECK(check_params(match, params));
  return program(task, state_of(match), params);
}

namespace {

// If the CTA's threads are not a multiple of those that share a row, or cannot be combined with
// them, gives the CTA as many threads as share a row.
Json with_threads_for(const RecipeMatch& match, const std::string& name, Json params) {
  constexpr std::string_view kWidth = "width";
  if (!name.ends_with(kWidth)) return params;
  const std::string threads = name.substr(0, name.size() - kWidth.size()) + "threads";
  if (!params.contains(threads)) return params;
  const auto width = params[name].get<int64_t>(), have = params[threads].get<int64_t>();
  if (have % width != 0 || !check_params(match, params)) params[threads] = width;
  return params;
}

// Split products have other tiles than the products that multiply floats.
Json with_tiles_for(const std::string& name, Json params) {
  constexpr std::string_view kHalves = "by_halves";
  if (!name.ends_with(kHalves)) return params;
  const std::string prefix = name.substr(0, name.size() - kHalves.size());
  const Json own = params[name] == 1 ? Json{{"tile_m", 128}, {"tile_n", 192}, {"stages", 2},
                                            {"split", 1},    {"cluster", 1},  {"wgmma", 1}}
                                     : Json{{"tile_n", 128}, {"stages", 4}, {"cluster", 1}};
  for (const auto& [key, value] : own.items()) params[prefix + key] = value;
  return params;
}

}  // namespace

std::vector<Json> neighbours(const RecipeMatch& match, const Json& params) {
  std::vector<Json> list;
  size_t longest = 0;
  for (const RecipeParameter& p : match.parameters) longest = std::max(longest, p.legal.size());
  // Change one parameter: each to its best value, then each to its second best value, ...
  for (size_t rank = 0; rank < longest; ++rank)
    for (const RecipeParameter& p : match.parameters) {
      if (rank >= p.legal.size() || !params.contains(p.name)) continue;
      if (params.at(p.name) == p.legal[rank]) continue;
      Json next = params;
      next[p.name] = p.legal[rank];
      next = with_tiles_for(p.name, with_threads_for(match, p.name, std::move(next)));
      if (check_params(match, next)) list.push_back(std::move(next));
    }
  return list;
}

}  // namespace cutegen::recipes
