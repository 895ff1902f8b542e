// SPDX-License-Identifier: Apache-2.0
#include "eval/rungs/prepare.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <future>
#include <optional>

#include "core/weighted.h"
#include "eval/rungs/audit.h"
#include "eval/rungs/derive_shapes.h"
#include "eval/rungs/gpu_correctness.h"
#include "eval/source/lint.h"

namespace cutegen::eval {
namespace {

constexpr size_t kMostBuilds = 64, kMostBuildsPerSource = 4;
constexpr size_t kMostExtraBuilds = 2;  // builds that only derived shapes need

void each_launch(ResolvedPlan& plan, const std::function<void(Launch&)>& f) {
  for (auto* steps : {&plan.prepare, &plan.steps})
    for (auto& step : *steps)
      if (auto* launch = std::get_if<Launch>(&step)) f(*launch);
}

std::string first_line(const std::string& text) {
  return text.substr(0, text.find('\n'));
}

// The compiler does not define __DATE__ and __TIME__ (apps/compiler/files.cpp).
constexpr const char* kBuildTime = "\"_NOW\" is undefined";

// The first line of a digest that names an error.
std::string error_line(const std::string& digest) {
  for (size_t at = 0; at < digest.size();) {
    size_t end = std::min(digest.find('\n', at), digest.size());
    std::string line = digest.substr(at, end - at);
    if (line.find("error") != std::string::npos) return line;
    at = end + 1;
  }
  return first_line(digest);
}

RungEnd refused(const std::string& digest) {
  if (digest.find(kBuildTime) == std::string::npos) return rung_failed(error_line(digest), digest);
  return rung_ended(Status::rejected,
                    "depends on the time of the build: it uses __DATE__ or __TIME__",
                    digest +
                        "\n"
                        "Remove it: neither has a value here.");
}

bool declares_globals(const std::string& ptx) {
  for (size_t at = ptx.find(".global"); at != std::string::npos; at = ptx.find(".global", at + 1)) {
    size_t line = ptx.rfind('\n', at) + 1;
    size_t word = ptx.find_first_not_of(" \t", line);
    // A declaration starts its line, perhaps after .visible. ld.global and the like do not.
    std::string start = ptx.substr(word, at - word);
    if (start.empty() || start.starts_with(".visible") || start.starts_with(".weak") ||
        start.starts_with(".extern") || start.starts_with(".common"))
      return true;
  }
  return false;
}

// Fills in the derived shapes. Returns what no test shape reaches.
Result<std::vector<std::string>> derive_shapes(const Context& ctx, const Services& services,
                                               const KernelProgram& program,
                                               std::vector<ShapeCasePtr>& shapes) {
  if (!services.derived) return std::vector<std::string>();
  CG_TRY(DerivedShapes::Found found, services.derived->find(ctx, program, services.device));
  shapes = std::move(found.shapes);
  return std::move(found.left_out);
}

// If a proposed test cannot run, it is skipped and the verdict says why.
Result<std::vector<ShapeCasePtr>> proposed_shapes(const Context& ctx, const Services& services,
                                                  std::vector<std::string>& skipped) {
  std::vector<ShapeCasePtr> out;
  if (!services.derived) return out;
  for (const TestCase& test : services.proposed) {
    auto shape = services.derived->proposed(ctx, test);
    if (!shape && shape.error().kind != ErrorKind::user) return fail(shape.error());
    if (shape)
      out.push_back(std::move(*shape));
    else
      skipped.push_back(fmt::format("proposed test '{}': {}", test.name, shape.error().message));
  }
  return out;
}

// Whether a test shape is the evaluator's own. A proposed one does not replace it.
bool is_own(const std::vector<ShapeCasePtr>& proposed, const ShapeCase* shape) {
  return std::ranges::find(proposed, shape, &ShapeCasePtr::get) == proposed.end();
}

}  // namespace

Result<RungEnd> rung_of(const Error& error) {
  if (error.kind == ErrorKind::user) return rung_failed(error.text());
  if (error.kind == ErrorKind::unsupported) return rung_ended(Status::unsupported, error.text());
  return fail(error);
}

device::PlanSteps PreparedShape::all_steps() const {
  device::PlanSteps out;
  for (const ScratchBuffer& s : plan.scratch)
    if (s.zero && s.bytes > 0)
      out.emplace_back(Fill{.step = "zero", .buffer = s.name, .value = 0, .dtype = DType::u8});
  out.insert(out.end(), plan.prepare.begin(), plan.prepare.end());
  out.insert(out.end(), plan.steps.begin(), plan.steps.end());
  return out;
}

Prepared::Prepared(const KernelProgram& program, const Task& task)
    : program_(program),
      task_(task),
      only_official_(std::ranges::none_of(task.shapes, is_test_shape)) {}

RungEnd lint_rung(const KernelProgram& program, const Task& task) {
  std::vector<Error> problems;
  bool rule = false, unsupported = false;
  for (LintFinding& f : lint_program(program)) {
    // A broken rule comes first, because it decides the status.
    if (f.rule && !rule)
      problems.insert(problems.begin(), f.error);
    else
      problems.push_back(f.error);
    rule = rule || f.rule;
  }
  for (Error& e : check_plan(program.plan, task)) {
    unsupported = unsupported || e.kind == ErrorKind::unsupported;
    problems.push_back(std::move(e));
  }
  if (problems.empty())
    return rung_passed(fmt::format("{} source{}, plan valid", program.sources.size(),
                                   program.sources.size() == 1 ? "" : "s"));
  std::string detail;
  for (size_t i = 0; i < std::min<size_t>(problems.size(), 8); ++i)
    detail += problems[i].text() + "\n";
  Status status = rule ? Status::rejected : unsupported ? Status::unsupported : Status::failed;
  return rung_ended(status, problems[0].text(), detail);
}

void Prepared::skip(const ShapeCase& shape, const Error& why) {
  skipped_.push_back(fmt::format("shape {}: {}", shape.name, why.text()));
  if (is_timed(shape) && timed_refused_.empty())
    timed_refused_ =
        fmt::format("the plan rejects {}{}: {}", name_of(shape),
                    shape.kind == ShapeKind::user ? ", which has a weight" : "", why.text());
}

Result<RungEnd> Prepared::enough_shapes(const Services& services) const {
  if (!timed_refused_.empty()) return rung_ended(Status::unsupported, timed_refused_);
  bool any = std::any_of(shapes_.begin(), shapes_.end(), [&](const PreparedShape& s) {
    return is_test_shape(*s.shape) && is_own(proposed_, s.shape);
  });
  if (any) return rung_passed();
  if (!only_official_)
    return rung_ended(Status::unsupported,
                      "no test shape is left" + (skipped_.empty() ? "" : ": " + skipped_[0]));
  if (!services.official)
    return rung_ended(Status::unsupported,
                      "no test shape is left: the task has none, and it is too large to simulate. "
                      "Replace numbers in forward() by sizes such as x.shape[0], or name smaller "
                      "sizes in [[shapes]] of the side file; a GPU judges the official shape");
  const std::string& why = services.official->missing();
  if (why.empty()) return rung_passed();
  return rung_ended(Status::unsupported,
                    "the task has no test shape, and outputs at the official shape cannot be "
                    "compared: " +
                        why);
}

Result<RungEnd> Prepared::list_builds(const Services& services) {
  const DeviceFacts& device = services.device;
  auto arch = choose_arch(program_.plan, device);
  if (!arch) return rung_of(arch.error());
  std::vector<const ShapeCase*> all;
  for (const ShapeCase& shape : task_.shapes) all.push_back(&shape);
  for (const auto& shape : derived_) all.push_back(shape.get());
  for (const auto& shape : proposed_) all.push_back(shape.get());
  const size_t most = std::max(kMostBuilds, kMostBuildsPerSource * program_.sources.size());
  for (const ShapeCase* shape : all) {
    auto builds = module_builds(program_, task_, *shape, device);
    if (!builds && builds.error().kind == ErrorKind::unsupported) {
      skip(*shape, builds.error());
      continue;
    }
    if (!builds && builds.error().kind == ErrorKind::user)
      return rung_failed(fmt::format("shape {}: {}", shape->name, builds.error().text()));
    if (!builds) return fail(builds.error());
    add(*shape, std::move(*builds), *arch);
    if (images_.size() > most)
      return rung_failed(fmt::format("the defines take more than {} distinct values", most));
  }
  return enough_shapes(services);
}

void Prepared::add(const ShapeCase& shape, std::vector<ModuleBuild> builds,
                   const std::string& arch) {
  auto find = [&](const ModuleBuild& b) {
    return std::find_if(images_.begin(), images_.end(),
                        [&](const KernelImage& i) { return i.build.key() == b.key(); });
  };
  if (shape.kind == ShapeKind::derived) {
    const auto fresh = std::count_if(builds.begin(), builds.end(), [&](const ModuleBuild& b) {
      return find(b) == images_.end();
    });
    if (extra_builds_ + size_t(fresh) > kMostExtraBuilds)
      return skip(shape, unsupported_error("it would need a further compilation").value());
    extra_builds_ += size_t(fresh);
  }
  PreparedShape prepared{.shape = &shape, .images = {}, .plan = {}};
  for (ModuleBuild& b : builds) {
    auto at = find(b);
    prepared.images.push_back(size_t(at - images_.begin()));
    if (at != images_.end()) continue;
    images_.push_back({.build = std::move(b), .arch = arch});
  }
  shapes_.push_back(std::move(prepared));
}

Result<RungEnd> Prepared::compile(const Context& ctx, const Services& services) {
  CG_TRY(const auto left_out, derive_shapes(ctx, services, program_, derived_));
  CG_TRY(proposed_, proposed_shapes(ctx, services, skipped_));
  CG_TRY(RungEnd listed, list_builds(services));
  if (!listed.passed) return listed;
  skipped_.insert(skipped_.end(), left_out.begin(), left_out.end());
  std::vector<std::future<Result<toolchain::CompileResult>>> running;
  for (const KernelImage& image : images_) {
    auto source = program_.sources.find(image.build.source);
    if (source == program_.sources.end())
      return rung_failed("the plan lists the source '" + image.build.source +
                         "', which does not exist");
    toolchain::CompileRequest request{.name = image.build.source,
                                      .source = source->second,
                                      .defines = image.build.defines,
                                      .arch = image.arch};
    running.push_back(std::async(images_.size() == 1 ? std::launch::deferred : std::launch::async,
                                 [&ctx, &services, request = std::move(request)] {
                                   return services.toolchain->compile(ctx, request);
                                 }));
  }
  std::optional<RungEnd> failure;
  std::optional<Error> trouble;
  size_t cached = 0;
  Nanoseconds saved{0};
  for (size_t i = 0; i < images_.size(); ++i) {
    auto result = running[i].get();
    if (!result) {
      if (!trouble) trouble = result.error();
      continue;
    }
    if (!result->ok && !failure) failure = refused(result->digest);
    KernelImage& image = images_[i];
    image.ptx = std::move(result->ptx);
    image.build_id = result->build_id;
    image.compile_time = result->elapsed;
    image.cached = result->cached;
    image.how = result->how;
    cached += result->cached;
    saved += result->saved;
    grade_ = result->grade;
    has_globals_ = has_globals_ || declares_globals(image.ptx);
  }
  if (trouble) return fail(*trouble);
  if (failure) return *failure;
  std::string detail = fmt::format("{} module{}, {} from the cache", images_.size(),
                                   images_.size() == 1 ? "" : "s", cached);
  if (saved.count() > 0)
    detail += fmt::format("; reading the parent ahead saved {:.1f} s",
                          std::chrono::duration<double>(saved).count());
  return rung_passed(std::move(detail));
}

Result<LoadOutcome> Prepared::load_modules(const Context& ctx, const Services& services) const {
  std::vector<std::string> ptx;
  for (const KernelImage& image : images_) ptx.push_back(image.ptx);
  return services.runner->load(ctx, ptx, code_);
}

Result<RungEnd> Prepared::load(const Context& ctx, const Services& services) {
  CG_TRY(LoadOutcome loaded, load_modules(ctx, services));
  if (!loaded.ok) return rung_of(loaded.error);
  std::vector<PreparedShape> kept;
  for (PreparedShape& s : shapes_) {
    std::vector<ModuleFacts> facts;
    for (size_t i : s.images) facts.push_back(loaded.facts[i]);
    auto plan = resolve_plan(program_, task_, *s.shape, services.device, facts);
    if (!plan && plan.error().kind == ErrorKind::unsupported) {
      skip(*s.shape, plan.error());
      continue;
    }
    if (!plan && plan.error().kind == ErrorKind::user)
      return rung_failed(fmt::format("shape {}: {}", s.shape->name, plan.error().text()));
    if (!plan) return fail(plan.error());
    each_launch(*plan, [&](Launch& launch) { launch.module = s.images[launch.module]; });
    s.plan = std::move(*plan);
    kept.push_back(std::move(s));
  }
  shapes_ = std::move(kept);
  CG_TRY(RungEnd enough, enough_shapes(services));
  if (!enough.passed) return enough;
  return rung_passed(
      fmt::format("{} shape{} resolved", shapes_.size(), shapes_.size() == 1 ? "" : "s"));
}

void Prepared::note_audit(const BinaryAudit& audit) {
  for (PreparedShape& s : shapes_)
    each_launch(s.plan, [&](Launch& launch) {
      const std::string module = images_[launch.module].build.key();
      launch.registers = registers_of(audit, module, launch.kernel);
      launch.code = code_of(audit, module, launch.kernel);
    });
}

const PreparedShape* shape_of(const Prepared& prepared, const std::string& name) {
  for (const PreparedShape& s : prepared.shapes())
    if (s.shape->name == name) return &s;
  return nullptr;
}

std::string name_of(const ShapeCase& shape) {
  return shape.kind == ShapeKind::official ? "the official shape"
                                           : "the shape '" + shape.name + "'";
}

std::vector<const PreparedShape*> timed_shapes(const Prepared& prepared) {
  std::vector<const PreparedShape*> out;
  for (const PreparedShape& s : prepared.shapes())
    if (is_timed(*s.shape)) out.push_back(&s);
  return out;
}

const PreparedShape* official_of(const Prepared& prepared) {
  for (const PreparedShape& s : prepared.shapes())
    if (s.shape->kind == ShapeKind::official) return &s;
  return nullptr;
}

}  // namespace cutegen::eval
