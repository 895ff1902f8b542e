// SPDX-License-Identifier: Apache-2.0
#include "recipes/text/program_part.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>

#include "base/text.h"
#include "recipes/graph/names.h"
#include "recipes/text/size_names.h"

namespace cutegen::recipes {
namespace {

void append(Json& list, const Json& more) {
  for (const Json& item : more) list.push_back(item);
}

// Where the body of a kernel begins; nothing if the source lacks it.
std::optional<size_t> body_of(const std::string& source, const std::string& kernel) {
  const size_t name = source.find("\n" + kernel + "(");
  const size_t open = name == std::string::npos ? name : source.find(") {\n", name);
  if (open == std::string::npos) return std::nullopt;
  return open + 4;
}

}  // namespace

void chain_steps(std::vector<ProgramPart>& parts) {
  struct Place {
    ProgramPart* part;
    Json* step;
  };
  std::vector<Place> places;
  std::set<std::string> names;
  for (ProgramPart& part : parts)
    for (Json& step : part.steps) {
      const std::string name = step.value("kernel", "");
      if (!body_of(part.source, name) || !names.insert(name).second ||
          step.value("cooperative", false))
        return;
      places.push_back({.part = &part, .step = &step});
    }
  for (size_t i = 0; places.size() > 1 && i < places.size(); ++i) {
    auto& [part, step] = places[i];
    const size_t at = *body_of(part->source, step->at("kernel"));
    const std::string allow = "  cutegen::allow_next_step();\n";
    const bool allows = part->source.compare(at, allow.size(), allow) == 0;
    std::string begin =
        i > 0 && !step->contains("pdl") ? "  cutegen::await_previous_step();\n" : "";
    if (i + 1 < places.size() && !allows) begin += allow;
    part->source.insert(at, begin);
    const std::string include = "#include <cutegen/steps.cuh>\n";
    if (part->source.find(include) == std::string::npos)
      part->source.insert(part->source.find("#include"), include);
    if (i > 0) (*step)["pdl"] = true;
    part->hopper = true;
  }
}

namespace {

constexpr const char* kSlice = "aten.slice.Tensor";

// If some argument depends on sizes in an unknown way, the program is right at the official shape
// only.
Json official_sizes(const Task& task, const std::map<std::string, std::string>& names) {
  Json list = Json::array();
  const auto unknown = [](const Node& node, const SizeArgument& size) {
    // No nest has an axis whose length depends on such an end.
    const bool end = size.index == 3 && node.op == kSlice;
    return !size.known() && !size.share && !size.fixed && !end;
  };
  if (std::none_of(task.graph.nodes.begin(), task.graph.nodes.end(), [&](const Node& node) {
        return std::any_of(node.sizes.begin(), node.sizes.end(),
                           [&](const SizeArgument& size) { return unknown(node, size); });
      }))
    return list;
  for (const TensorInfo& tensor : task.tensors)
    for (size_t i = 0; tensor.role == TensorRole::input && i < tensor.shape.size(); ++i)
      list.push_back(fmt::format("dim({},{}) == {}", names.at(tensor.name), i, tensor.shape[i]));
  return list;
}

}  // namespace

Result<KernelProgram> assemble(const Task& task, const Stages& stages,
                               const std::vector<ProgramPart>& parts) {
  KernelProgram program;
  Json symbols = Json::object(), defines = Json::object(), sources = Json::array();
  Json requirements = Json::array(), scratch = Json::array(), steps = Json::array();
  Json maps = Json::object();
  bool hopper = false;
  for (const Scratch& s : stages.scratch)
    scratch.push_back({{"name", s.name},
                       {"dtype", to_string(s.dtype)},
                       {"shape", {s.extents.empty() ? "1" : join(s.extents, "*")}}});
  for (const ProgramPart& part : parts) {
    program.sources[part.file] = part.source;
    sources.push_back(part.file);
    hopper |= part.hopper;
    symbols.update(part.symbols);
    defines.update(part.defines);
    maps.update(part.tensor_maps);
    append(requirements, part.requirements);
    append(scratch, part.scratch);
    append(steps, part.steps);
  }
  append(requirements, stages.demands);
  append(requirements, official_sizes(task, short_names(task)));
  Json plan{{"cutegen", 1}, {"dialect", "cute"}};
  plan["arch"] = Json::array({hopper ? std::string(kHopperArch) : "sm_80+"});
  plan["sources"] = sources;
  Json bind = bindings(short_names(task));
  if (!bind.empty()) plan["bind"] = bind;
  plan["symbols"] = symbols;
  if (!defines.empty()) plan["defines"] = defines;
  if (!requirements.empty()) plan["requires"] = requirements;
  if (!scratch.empty()) plan["scratch"] = scratch;
  if (!maps.empty()) plan["tensor_maps"] = maps;
  plan["steps"] = steps;
  name_sizes(stages.scratch, plan);
  CG_TRY(program.plan, plan_from_json(plan));
  return program;
}

}  // namespace cutegen::recipes
