// SPDX-License-Identifier: Apache-2.0
// Builds the source of an export: checks the task, compiles modules, resolves launches.
#include <fmt/format.h>

#include <algorithm>

#include "base/file.h"
#include "base/text.h"
#include "device/module_facts.h"
#include "exporter/exporter.h"
#include "toolchain/assembler.h"

namespace cutegen::exporter {
namespace {

constexpr const char* kOutput = "out";  // the only output of a module that returns a tensor

constexpr size_t kMostModules = 64, kModulesPerSource = 4;
constexpr size_t kMostImageBytes = size_t{64} << 20;

bool is_wanted(const ShapeCase& shape) {
  return shape.kind == ShapeKind::official || shape.kind == ShapeKind::user;
}

// Accepts a tensor ("out") or a flat structure of tensors ("out.0", "out.1", ...).
Result<void> check_outputs(const Task& task) {
  const auto results = results_of(task);
  if (results.empty())
    return unsupported_error("the module of '" + task.name + "' returns no tensor");
  for (const TensorInfo* t : results)
    if (!t->mutated && t->name != kOutput && !t->name.starts_with("out."))
      return unsupported_error("the result '" + t->name +
                               "' has a form that exports do not support");
  return {};
}

class Builder {
 public:
  Builder(const Context& ctx, toolchain::Toolchain& toolchain, ExportSource& out)
      : ctx_(ctx), toolchain_(toolchain), out_(out) {}

  Result<void> add(const ShapeCase& shape) {
    auto added = try_add(shape);
    if (added || shape.kind == ShapeKind::official || added.error().kind == ErrorKind::cancelled)
      return added;
    if (added.error().kind != ErrorKind::user && added.error().kind != ErrorKind::unsupported)
      return added;
    out_.left_out.push_back(added.error().text());
    return {};
  }

 private:
  Result<void> try_add(const ShapeCase& shape) {
    const DeviceFacts& facts = out_.target.facts;
    CG_TRY(auto builds, module_builds(out_.program, out_.task, shape, facts));
    std::vector<size_t> used;
    std::vector<ModuleFacts> of_shape;
    for (const ModuleBuild& b : builds) {
      CG_TRY(size_t at, module(b));
      used.push_back(at);
      of_shape.push_back(facts_[at]);
    }
    CG_TRY(ResolvedPlan plan, resolve_plan(out_.program, out_.task, shape, facts, of_shape));
    for (auto* list : {&plan.prepare, &plan.steps})
      for (auto& step : *list)
        if (auto* launch = std::get_if<Launch>(&step)) launch->module = used[launch->module];
    out_.shapes.push_back({.name = shape.name, .shape = shape, .plan = std::move(plan)});
    return {};
  }

  Result<size_t> module(const ModuleBuild& b) {
    auto known = std::find(keys_.begin(), keys_.end(), b.key());
    if (known != keys_.end()) return size_t(known - keys_.begin());
    const size_t most = std::max(kMostModules, kModulesPerSource * out_.program.sources.size());
    if (keys_.size() == most)
      return user_error(fmt::format("the defines take more than {} distinct values", most));
    auto source = out_.program.sources.find(b.source);
    if (source == out_.program.sources.end())
      return user_error("the plan names the source '" + b.source + "', which does not exist");
    CG_TRY(toolchain::CompileResult made, toolchain_.compile(ctx_, {.name = b.source,
                                                                    .source = source->second,
                                                                    .defines = b.defines,
                                                                    .arch = out_.arch}));
    if (!made.ok) return user_error("the program does not compile: " + made.digest, b.source);
    if (made.ptx.size() > kMostImageBytes)
      return unsupported_error("a module of more than 64 MiB", b.source);
    CG_TRY(ModuleFacts facts, device::declared_facts(made.ptx));
    std::string stem = b.source.substr(0, b.source.rfind('.'));
    std::string number = keys_.empty() ? "" : fmt::format(".{}", keys_.size());
    out_.modules.push_back({.name = stem + number + "." + out_.arch,
                            .ptx = made.ptx,
                            .build_id = made.build_id,
                            .build = b});
    facts_.push_back(std::move(facts));
    keys_.push_back(b.key());
    return keys_.size() - 1;
  }

  const Context& ctx_;
  toolchain::Toolchain& toolchain_;
  ExportSource& out_;
  std::vector<std::string> keys_;
  std::vector<ModuleFacts> facts_;
};

// Adds machine code if ptxas is installed. Otherwise the driver assembles the PTX.
Result<void> assemble(const Context& ctx, const toolchain::ToolPaths& tools, ExportSource& out) {
  CG_TRY(auto assembler, toolchain::Assembler::open({.paths = tools}));
  std::vector<std::string> ptx;
  ptx.reserve(out.modules.size());
  for (const ExportModule& m : out.modules) ptx.push_back(m.ptx);
  CG_TRY(auto reports, assembler->assemble_all(ctx, ptx, out.arch));
  for (size_t i = 0; i < reports.size(); ++i) {
    if (!reports[i].ok)
      return user_error("the assembler rejects the program: " + reports[i].digest,
                        out.modules[i].name);
    if (reports[i].code.size() <= kMostImageBytes) out.modules[i].cubin = reports[i].code;
  }
  return {};
}

// Adds the headers "cutegen/NAME" that a source includes, directly or through another header.
Result<void> add_headers(const toolchain::ToolPaths& tools, const std::string& source,
                         std::map<std::string, std::string>& out) {
  for (const std::string& line : split(source, '\n')) {
    const size_t begin = line.find("cutegen/"), end = line.find_first_of(">\"", begin);
    if (!trim(line).starts_with("#include") || begin == std::string::npos ||
        end == std::string::npos)
      continue;
    const std::string name = line.substr(begin, end - begin);
    if (out.contains(name) || name.find("..") != std::string::npos) continue;
    for (const auto& folder : tools.includes) {
      auto text = read_file(folder / name);
      if (!text) continue;
      out[name] = *text;
      CG_CHECK(add_headers(tools, *text, out));
      break;
    }
    if (!out.contains(name)) return world_error("the header <" + name + "> is missing");
  }
  return {};
}

}  // namespace

Result<void> add_start(const toolchain::ToolPaths& tools, KernelProgram start, ExportSource& out) {
  for (const auto& [name, text] : out.program.sources)
    CG_CHECK(add_headers(tools, text, out.headers));
  for (const auto& [name, text] : start.sources) CG_CHECK(add_headers(tools, text, out.headers));
  out.start = std::move(start);
  return {};
}

Names<ExportKind> enum_names(ExportKind) {
  static constexpr Name<ExportKind> names[] = {{ExportKind::torch, "torch"},
                                               {ExportKind::kernelbench, "kernelbench"},
                                               {ExportKind::cpp, "cpp"},
                                               {ExportKind::source, "source"}};
  return names;
}

Result<ExportKind> export_kind_from(const std::string& name) {
  for (const auto& [kind, known] : enum_names(ExportKind{}))
    if (name == known) return kind;
  return user_error("'" + sanitize(name, 60) + "' is not a kind of export", "--to",
                    "one of torch, kernelbench, cpp, source");
}

std::string plain_name(const std::string& name) {
  std::string out;
  for (char c : name.substr(0, 48)) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
    out += c >= 'A' && c <= 'Z' ? char(c - 'A' + 'a') : plain ? c : '_';
  }
  return out.empty() || (out[0] >= '0' && out[0] <= '9') ? "n" + out : out;
}

Result<void> check_exportable(const Task& task) {
  if (task.with_role(TensorRole::input).empty())
    return unsupported_error("the module takes no tensor", task.file);
  return check_outputs(task);
}

Result<ExportSource> build_export(const Context& ctx, const toolchain::ToolPaths& tools,
                                  const Task& task, const KernelProgram& program,
                                  const ExportTarget& target) {
  CG_CHECK(check_exportable(task));
  if (auto problems = check_plan(program.plan, task); !problems.empty())
    return fail(std::move(problems.front()));
  ExportSource out{.task = task, .program = program, .target = target};
  CG_TRY(out.arch, choose_arch(program.plan, target.facts));
  CG_TRY(auto toolchain, toolchain::Toolchain::open({.paths = tools}));
  out.compiler = toolchain->version();
  Builder builder(ctx, *toolchain, out);
  for (const ShapeCase& shape : task.shapes)
    if (is_wanted(shape)) CG_CHECK(builder.add(shape));
  CG_CHECK(assemble(ctx, tools, out));
  return out;
}

}  // namespace cutegen::exporter
