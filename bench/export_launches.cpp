// SPDX-License-Identifier: Apache-2.0
// Writes a kernel program as bare launches of one shape: NAME.json (buffers, launches) and
// NAME.I.ptx. bench/measure_launches.py runs them on a GPU with only the driver. The folder NAME
// gets the program itself, which `cutegen eval` can judge.
//
// Usage: export_launches_bench DESCRIBE.json (TASK PROGRAM OUT_DIR)...
//   DESCRIBE.json: the output of `cutegen describe --json`; TASK: the name of a task in it.
//   PROGRAM: a program's folder, or a file NAME.json with some parameters of the task's recipe;
//   other parameters get safe values.
#include <fmt/format.h>

#include <filesystem>

#include "base/file.h"
#include "base/json.h"
#include "core/program.h"
#include "core/task.h"
#include "device/device.h"
#include "device/map_fields.h"
#include "recipes/emit/recipes.h"
#include "toolchain/toolchain.h"

namespace {

using namespace cutegen;
namespace fs = std::filesystem;

Result<Task> task_of(const fs::path& file, const std::string& name) {
  CG_TRY(std::string text, read_file(file, size_t{64} << 20));
  CG_TRY(Json described, parse_json(text, file.string()));
  for (Json t : described.value("tasks", Json::array())) {
    if (t.value("name", "") != name) continue;
    for (const char* added : {"roofline", "describe_ns"}) t.erase(added);  // added by describe
    return read_json<Task>(t);
  }
  return user_error("no task '" + name + "' in " + file.string());
}

Result<KernelProgram> program_of(const Task& task, const fs::path& from) {
  if (from.extension() != ".json") return load_program(from);
  CG_TRY(std::string text, read_file(from, size_t{1} << 16));
  CG_TRY(Json wanted, parse_json(text, from.string()));
  cutegen::recipes::RecipeMatch match = cutegen::recipes::match_recipe(task, "sm_90a");
  if (match.recipe.empty()) return user_error("no recipe for " + task.name + ": " + match.why);
  Json params = match.safe;
  params.update(wanted);
  return instantiate(task, match, params);
}

std::string hex(const std::vector<std::byte>& bytes) {
  std::string out;
  for (std::byte b : bytes) out += fmt::format("{:02x}", unsigned(b));
  return out;
}

Result<Json> arg_json(const LaunchArg& a, const std::string& step) {
  if (a.buffer.empty()) return Json{{"hex", hex(a.bytes)}};
  if (a.bytes.empty()) return Json{{"buffer", a.buffer}};
  CG_TRY(cutegen::device::MapFields f, cutegen::device::map_fields(a.bytes, "step " + step));
  return Json{{"buffer", a.buffer}, {"map", cutegen::device::to_json(f)}};
}

Result<Json> launch_json(const Launch& l) {
  if (l.cooperative) return user_error("step " + l.step + " is not a plain launch");
  Json args = Json::array();
  for (const LaunchArg& a : l.args) {
    CG_TRY(Json arg, arg_json(a, l.step));
    args.push_back(std::move(arg));
  }
  return Json{{"kernel", l.kernel}, {"module", l.module},     {"grid", l.grid},
              {"block", l.block},   {"cluster", l.cluster},   {"shared_bytes", l.shared_bytes},
              {"pdl", l.pdl},       {"args", std::move(args)}};
}

Json buffers_json(const Task& task, const ResolvedPlan& plan) {
  Json out = Json::array();
  for (const TensorInfo& t : task.tensors)
    out.push_back(Json{{"name", t.name},
                       {"role", to_string(t.role)},
                       {"dtype", to_string(t.dtype)},
                       {"shape", task.official().tensors.at(t.name)}});
  for (const ScratchBuffer& s : plan.scratch)
    out.push_back(Json{{"name", s.name}, {"role", "scratch"}, {"bytes", s.bytes}});
  return out;
}

Result<std::vector<std::string>> compiled(const KernelProgram& program,
                                          const std::vector<ModuleBuild>& builds,
                                          const std::string& arch,
                                          cutegen::toolchain::Toolchain& toolchain) {
  std::vector<std::string> out;
  for (const ModuleBuild& b : builds) {
    cutegen::toolchain::CompileRequest request{b.source, program.sources.at(b.source), b.defines,
                                               arch};
    CG_TRY(cutegen::toolchain::CompileResult r, toolchain.compile(Context(), request));
    if (!r.ok) return user_error(r.digest);
    out.push_back(std::move(r.ptx));
  }
  return out;
}

// argv: TASK PROGRAM OUT_DIR
Result<void> export_launches(const fs::path& described, char** argv,
                             cutegen::toolchain::Toolchain& toolchain) {
  CG_TRY(Task task, task_of(described, argv[0]));
  CG_TRY(KernelProgram program, program_of(task, argv[1]));
  CG_TRY(auto device, cutegen::device::open_device("sim:h200"));
  CG_TRY(auto builds, module_builds(program, task, task.official(), device->facts()));
  CG_TRY(std::string arch, choose_arch(program.plan, device->facts()));
  CG_TRY(auto modules, compiled(program, builds, arch, toolchain));
  CG_TRY(auto facts, device->load(modules));
  CG_TRY(ResolvedPlan plan, resolve_plan(program, task, task.official(), device->facts(), facts));
  Json steps = Json::array();
  for (auto* list : {&plan.prepare, &plan.steps})
    for (const auto& step : *list) {
      const auto* l = std::get_if<Launch>(&step);
      if (l == nullptr) return user_error("a program with fills is not exported");
      CG_TRY(Json launch, launch_json(*l));
      steps.push_back(std::move(launch));
    }
  Json buffers = buffers_json(task, plan);
  fs::path dir = argv[2];
  CG_CHECK(save_program(program, dir / task.name));
  Json names = Json::array();
  for (size_t i = 0; i < modules.size(); ++i) {
    names.push_back(fmt::format("{}.{}.ptx", task.name, i));
    CG_CHECK(write_file(dir / names.back().get<std::string>(), modules[i]));
  }
  Json out{{"task", task.name},
           {"math_mode", to_string(task.math_mode)},
           {"modules", names},
           {"buffers", buffers},
           {"steps", steps}};
  return write_file(dir / (task.name + ".json"), dump_json(out, 1));
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 5 || argc % 3 != 2) {
    fmt::print(stderr, "usage: export_launches_bench DESCRIBE.json (TASK PROGRAM OUT_DIR)...\n");
    return kExitUser;
  }
  auto all = [&]() -> Result<void> {
    CG_TRY(cutegen::toolchain::ToolPaths paths, cutegen::toolchain::find_tools());
    CG_TRY(auto toolchain, cutegen::toolchain::Toolchain::open({.paths = paths}));
    for (int i = 2; i < argc; i += 3) CG_CHECK(export_launches(argv[1], argv + i, *toolchain));
    return {};
  };
  auto done = all();
  if (done) return kExitOk;
  fmt::print(stderr, "export_launches: {}\n", done.error().text());
  return exit_code(done.error());
}
