// SPDX-License-Identifier: Apache-2.0
#include "recipes/emit/reduction.h"

#include <fmt/format.h>

#include <algorithm>

#include "recipes/emit/reduction_kernel.h"
#include "recipes/fuse/extents.h"

namespace cutegen::recipes {
namespace {

// Adds a stage to the plan: its sizes as symbols, and the launches of its kernels.
class Planner {
 public:
  Planner(const Fused& fused, const ReductionKernel& kernel, const Json& params, const Label& label,
          ProgramPart& part)
      : fused_(fused), kernel_(kernel), params_(params), label_(label), part_(part) {}

  void run() {
    std::string rows = product(kernel_.nest().kept, "k");
    std::string length = product(kernel_.nest().reduced, "r");
    part_.symbols[label_("rows")] = rows;
    part_.symbols[label_("length")] = length;
    const auto& inner = kernel_.row() ? kernel_.nest().reduced : kernel_.nest().kept;
    std::string last = kernel_.in_runs()
                           ? label_("length")
                           : label_((kernel_.row() ? "r" : "k") + std::to_string(inner.size() - 1));
    int64_t vector = get("vector");
    std::string width = width_text(fused_, last, vector);
    // Runs must not be shorter than a vector, so that a vector lies in at most two runs.
    const std::string run = label_("r" + std::to_string(kernel_.nest().reduced.size() - 1));
    if (kernel_.has_runs() && vector > 1)
      width = fmt::format("{} >= {} ? ({}) : 1", run, vector, width);
    part_.symbols[label_("vector")] = width;
    part_.defines[label_("VECTOR")] = label_("vector");
    if (kernel_.has_runs()) {
      part_.symbols[label_("whole_runs")] =
          fmt::format("{} % {} == 0 ? 1 : 0", run, label_("vector"));
      part_.defines[label_("WHOLE_RUNS")] = label_("whole_runs");
    }
    if (width_follows(fused_, kernel_.nest(), params_)) widths();
    limits();
    if (kernel_.resident()) resident();
    part_.hopper |= kernel_.clustered();
    if (kernel_.split()) scratch();
    for (const ReductionKernel::Launch& launch : kernel_.launches()) step(launch);
  }

 private:
  int64_t get(const char* name) const { return params_.at(name).get<int64_t>(); }
  // The threads that share a row or, in column kernels, a column.
  int64_t side() const { return kernel_.row() ? get("width") : get("threads") / get("columns"); }

  std::string product(const std::vector<Loop>& loops, const char* prefix) {
    std::string text;
    for (size_t i = 0; i < loops.size(); ++i) {
      std::string name = label_(prefix + std::to_string(i));
      part_.symbols[name] = loops[i].extent;
      text += (i ? "*" : "") + name;
      sizes_.push_back({{"i64", name}});
    }
    return text;
  }

  // Chooses the threads of a row by the row's length, with one choice for each timed length.
  void widths() {
    std::string text;
    int64_t last = 0;
    for (int64_t length : fused_.lengths) {
      const int64_t width = std::max(last, width_at(kernel_.nest(), params_, length));
      if (width == last) continue;
      if (last > 0) text += fmt::format("{} <= {} ? {} : ", label_("length"), longest_, last);
      last = width, longest_ = width * elements_of_thread(kernel_.nest(), params_);
    }
    part_.symbols[label_("width")] = text + std::to_string(last);
    part_.defines[label_("WIDTH")] = label_("width");
    threads_ = label_("width");
  }

  // Adds the requirements that the kernels rely on.
  void limits() {
    std::string length = label_("length");
    if (get("cached") == 1)
      part_.requirements.push_back(
          kernel_.row()
              ? fmt::format(
                    "{} <= {}", length,
                    longest_ > 0 ? longest_ : side() * elements_of_thread(kernel_.nest(), params_))
              : fmt::format("ceil_div({},{}) <= {}", length, side() * get("cluster"),
                            steps_of_thread(kernel_.nest(), params_)));
    for (const std::string& demand : fixed_sizes(fused_)) part_.requirements.push_back(demand);
    bool places = std::any_of(fused_.insts.begin(), fused_.insts.end(), [](const Inst& i) {
      return i.kind == InstKind::reduction && i.integer;
    });
    if (!kernel_.many_rows()) part_.requirements.push_back(label_("rows") + " <= 2000000000");
    if (!kernel_.wide())
      part_.requirements.push_back(length + " <= 2000000000");
    else if (places)
      part_.requirements.push_back(length + " <= 4000000000");
  }

  // Sizes the shared memory that keeps a row.
  void resident() {
    part_.hopper = get("cluster") > 1;
    const std::string shared = label_("on_chip"), vector = label_("vector");
    std::string slots = fmt::format("ceil_div(ceil_div({},{}),{})", label_("length"), vector,
                                    get("width") * get("cluster"));
    if (kernel_.turns()) {
      const auto ring = ring_of(fused_, kernel_.nest(), params_);
      const std::string share = label_("share");
      part_.symbols[share] = fmt::format("max(1,ceil_div({},{}))", slots, ring->groups);
      part_.defines[label_("SHARE")] = share;
      slots = fmt::format("{}*{}", share, ring->places);
    }
    part_.symbols[shared] = fmt::format("{}*{}*{}*{}", slots, get("width"), vector,
                                        element_bytes(fused_, kernel_.nest()));
    part_.requirements.push_back(shared + " <= 225280");  // bytes that a CTA of sm_90 has for rows
  }

  void scratch() {
    part_.symbols[label_("parts")] =
        fmt::format("max(1,min({},ceil_div({},{})))", get("parts"), label_("length"), side() * 4);
    for (const Parts& p : kernel_.parts())
      part_.scratch.push_back(
          {{"name", label_(p.name)},
           {"dtype", "f32"},
           {"shape", {label_("parts"), label_("rows"), std::to_string(p.words)}}});
  }

  void step(const ReductionKernel::Launch& launch) {
    Json args = Json::array();
    for (const Parameter& p : parameters(fused_)) args.push_back({{"tensor", p.name}});
    for (const Parts& p : launch.parts) args.push_back({{"tensor", label_(p.name)}});
    for (const Json& size : sizes_) args.push_back(size);
    for (const auto& [name, expression] : kernel_.strides()) args.push_back({{"i64", expression}});
    if (kernel_.split()) args.push_back({{"i64", label_("parts")}});
    add_sizes(args, fused_);
    std::string rows = label_("rows");
    std::string grid =
        kernel_.row() ? fmt::format("ceil_div({},{})", rows, get("threads") / side())
                      : fmt::format("ceil_div({}/{},{})", rows, label_("vector"), get("columns"));
    if (kernel_.split() && launch.whole_grid) grid += "*" + label_("parts");
    if (kernel_.clustered()) grid += fmt::format("*{}", get("cluster"));
    if (kernel_.resident()) grid = fmt::format("{}*{}", rows, get("cluster"));
    if (kernel_.turns())
      grid = fmt::format("ceil_div({},{})*{}", rows, turns_of(params_), get("cluster"));
    Json json{{"id", launch.name}, {"kernel", launch.name}, {"when", rows + " > 0"}};
    json["grid"] = Json::array({grid, 1, 1});
    json["block"] = Json::array({threads_.is_null() ? Json(get("threads")) : threads_, 1, 1});
    json["args"] = args;
    if (kernel_.resident()) json["shared_bytes"] = label_("on_chip");
    if ((kernel_.resident() || kernel_.clustered()) && get("cluster") > 1)
      json["cluster"] = Json::array({get("cluster"), 1, 1});
    part_.steps.push_back(json);
  }

  const Fused& fused_;
  const ReductionKernel& kernel_;
  const Json& params_;
  const Label& label_;
  ProgramPart& part_;
  std::vector<Json> sizes_;
  Json threads_;         // the symbol with the threads of a CTA, if they follow the row's length
  int64_t longest_ = 0;  // the longest row that these threads can keep
};

}  // namespace

ProgramPart reduction_part(const Task& task, const Fused& fused, const Json& params,
                           const Label& label) {
  ReductionKernel kernel(task, fused, params, label);
  ProgramPart part;
  part.file = label("kernel") + ".cu";
  part.source = kernel.source();
  Planner(fused, kernel, params, label, part).run();
  return part;
}

}  // namespace cutegen::recipes
