// SPDX-License-Identifier: Apache-2.0
#include "recipes/text/program_part.h"

#include "base/text.h"
#include "recipes/graph/names.h"

namespace cutegen::recipes {
namespace {

void append(Json& list, const Json& more) {
  for (const Json& item : more) list.push_back(item);
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
  CG_TRY(program.plan, plan_from_json(plan));
  return program;
}

}  // namespace cutegen::recipes
