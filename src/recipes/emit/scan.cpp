// SPDX-License-Identifier: Apache-2.0
#include "recipes/emit/scan.h"

#include <fmt/format.h>

#include <algorithm>

#include "recipes/emit/scan_kernel.h"
#include "recipes/fuse/extents.h"

namespace cutegen::recipes {
namespace {

constexpr int64_t kWarpRow = 4096;       // elements that one warp takes, if rows are many
constexpr int64_t kManyRows = 4096;      // warps that fill a large GPU
constexpr int64_t kFullGrid = 8 * kSms;  // CTAs that fill it
constexpr int64_t kLeastShare = 8192;    // elements of a row that are worth a CTA
constexpr int64_t kLeastSteps = 64;      // steps of a column that are worth a CTA
constexpr int64_t kWideVector = 8;       // elements of a vector; a thread takes two such vectors

// Adds a stage to the plan: its sizes as symbols, its scratch and its launches.
class ScanPlanner {
 public:
  ScanPlanner(const Fused& fused, const ScanKernel& kernel, const Json& params, const Label& label,
              ProgramPart& part)
      : fused_(fused), kernel_(kernel), params_(params), label_(label), part_(part) {}

  void run() {
    part_.symbols[label_("rows")] = product(kernel_.nest().kept, "k");
    part_.symbols[label_("length")] = product(kernel_.nest().reduced, "r");
    const size_t kept = kernel_.nest().kept.size();
    const std::string inner = label_(kernel_.row() ? "r0" : fmt::format("k{}", kept - 1));
    const int64_t vector = int_param(params_, "vector");
    part_.symbols[label_("vector")] = width_text(fused_, inner, vector);
    part_.defines[label_("VECTOR")] = label_("vector");
    for (const std::string& demand : fixed_sizes(fused_)) part_.requirements.push_back(demand);
    if (kernel_.nest().length() <= 2'000'000'000)
      part_.requirements.push_back(label_("length") + " <= 2000000000");
    if (kernel_.split()) scratch();
    for (const std::string& name : kernel_.launches()) step(name);
  }

 private:
  std::string product(const std::vector<Loop>& loops, const char* prefix) {
    std::string text;
    for (size_t i = 0; i < loops.size(); ++i) {
      const std::string name = label_(prefix + std::to_string(i));
      part_.symbols[name] = loops[i].extent;
      text += (i ? "*" : "") + name;
      sizes_.push_back({{"i64", name}});
    }
    return text;
  }

  void scratch() {
    part_.symbols[label_("parts")] = fmt::format("max(1,min({},ceil_div({},{})))",
                                                 params_.at("parts").dump(), label_("length"), 64);
    for (const std::string& name : kernel_.totals())
      part_.scratch.push_back(
          {{"name", label_(name)}, {"dtype", "f32"}, {"shape", {label_("parts"), label_("rows")}}});
  }

  void step(const std::string& name) {
    Json args = Json::array();
    for (const Parameter& p : parameters(fused_)) args.push_back({{"tensor", p.name}});
    for (const std::string& totals : kernel_.totals()) args.push_back({{"tensor", label_(totals)}});
    for (const Json& size : sizes_) args.push_back(size);
    for (const auto& [word, expression] : kernel_.strides()) args.push_back({{"i64", expression}});
    if (kernel_.split()) args.push_back({{"i64", label_("parts")}});
    add_sizes(args, fused_);
    const std::string rows = label_("rows");
    std::string grid =
        kernel_.row() ? fmt::format("ceil_div({},{})", rows,
                                    int_param(params_, "threads") / int_param(params_, "width"))
                      : fmt::format("ceil_div({}/{},{})", rows, label_("vector"),
                                    int_param(params_, "columns"));
    if (kernel_.split()) grid += "*" + label_("parts");
    part_.steps.push_back({{"id", name},
                           {"kernel", name},
                           {"when", rows + " > 0"},
                           {"grid", {grid, 1, 1}},
                           {"block", {int_param(params_, "threads"), 1, 1}},
                           {"args", args}});
  }

  const Fused& fused_;
  const ScanKernel& kernel_;
  const Json& params_;
  const Label& label_;
  ProgramPart& part_;
  std::vector<Json> sizes_;
};

int64_t ctas(const Nest& nest, const Json& params) {
  if (nest.reduced_inside)
    return ceil_div(nest.rows(), int_param(params, "threads") / int_param(params, "width"));
  return ceil_div(nest.rows(), int_param(params, "columns") * int_param(params, "vector"));
}

// Numbers of CTAs for a row, best first, then 1. Empty if one CTA per row fills the GPU, or if rows
// are too short.
std::vector<int64_t> parts_worth_trying(const Fused& fused, const Nest& nest, const Json& params) {
  // The totals of parts are floats in scratch.
  if (std::any_of(fused.insts.begin(), fused.insts.end(),
                  [](const Inst& i) { return i.kind == InstKind::scan && i.scan.wide(); }))
    return {};
  const int64_t have = std::max<int64_t>(1, ctas(nest, params));
  const int64_t most = nest.length() / (nest.reduced_inside ? kLeastShare : kLeastSteps);
  std::vector<int64_t> list;
  if (have * 4 > kFullGrid || most < 2) return list;
  for (int64_t wanted : {kFullGrid / 2, kFullGrid, kFullGrid / 4}) {
    const int64_t parts = std::min(most, std::max<int64_t>(2, wanted / have));
    if (std::find(list.begin(), list.end(), parts) == list.end()) list.push_back(parts);
  }
  list.push_back(1);
  return list;
}

// Threads that share a row: the smallest group of lanes whose tile holds the row, a warp, or the
// CTA.
int64_t width_of(const Nest& nest, int64_t elements_of_thread) {
  int64_t width = 32;
  while (width > 1 && nest.length() <= width / 2 * elements_of_thread) width /= 2;
  if (width < 32 || (nest.length() <= kWarpRow && nest.rows() >= kManyRows)) return width;
  return nest.length() <= 32 * elements_of_thread ? 32 : 256;
}

}  // namespace

Json scan_safe(const Fused& fused) {
  const Nest nest = make_nest(fused);
  const int64_t vector = vector_widths(fused, nest.inner()).front();
  Json params{{"vector", vector}, {"items", vector >= kWideVector ? 2 : 4}, {"threads", 256}};
  if (nest.reduced_inside) {
    params["width"] = width_of(nest, vector * int_param(params, "items"));
  } else {
    params["columns"] = 32;
  }
  params["parts"] = 1;
  if (auto parts = parts_worth_trying(fused, nest, params); !parts.empty()) {
    if (nest.reduced_inside) params["width"] = 256;
    params["parts"] = parts.front();
  }
  return params;
}

std::vector<RecipeParameter> scan_parameters(const Fused& fused) {
  const Nest nest = make_nest(fused);
  std::vector<RecipeParameter> list{
      {.name = "vector",
       .meaning = "neighbouring elements that a thread moves in one access",
       .legal = vector_widths(fused, nest.inner())},
      {.name = "items", .meaning = "vectors of a tile that a thread holds", .legal = {4, 2, 8, 1}},
      {.name = "threads", .meaning = "threads of a CTA", .legal = {256, 512, 128, 1024}}};
  if (nest.reduced_inside)
    list.push_back({.name = "width",
                    .meaning = "threads that share a row: up to 32, or all of the CTA",
                    .legal = {256, 32, 512, 128, 1024, 16, 8, 4, 2, 1}});
  else
    list.push_back({.name = "columns",
                    .meaning = "threads side by side; the teams of a CTA share the scanned axis",
                    .legal = {32, 64, 128, 16}});
  if (auto parts = parts_worth_trying(fused, nest, scan_safe(fused)); !parts.empty())
    list.push_back(
        {.name = "parts",
         .meaning = "CTAs that share a row; a first kernel computes the totals of their parts",
         .legal = std::move(parts)});
  return list;
}

bool scan_legal(const Fused& fused, const Json& params) {
  const int64_t threads = int_param(params, "threads"), items = int_param(params, "items");
  if (int_param(params, "vector") * items > 32) return false;  // too many registers
  if (!make_nest(fused).reduced_inside)
    return int_param(params, "columns") <= threads &&
           threads * int_param(params, "vector") <= 4096;  // shared memory
  const int64_t width = int_param(params, "width");
  if (width <= 32) return params.value("parts", int64_t{1}) == 1;
  return width == threads && items * width / 32 <= 32;
}

ProgramPart scan_part(const Task& task, const Fused& fused, const Json& params,
                      const Label& label) {
  const ScanKernel kernel(task, fused, params, label);
  ProgramPart part;
  part.file = label("kernel") + ".cu";
  part.source = kernel.source();
  ScanPlanner(fused, kernel, params, label, part).run();
  return part;
}

}  // namespace cutegen::recipes
