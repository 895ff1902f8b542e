// SPDX-License-Identifier: Apache-2.0
// From a program to launches with numbers: the rungs lint, compile and load.
//
// Contract: compile() and load() fill their parts of Prepared. `skipped` names each shape that the
// plan rejects (`requires`). If it rejects the official shape, a weighted shape or all test shapes,
// the program is unsupported. Each distinct set of defines compiles once, in parallel with the
// others. Long and derived shapes may add a few modules; a shape that needs more is skipped.
//
// Example: RungEnd end = lint_rung(program, task); Prepared p(program, task);
//   CG_TRY(end, p.compile(ctx, services)); CG_TRY(end, p.load(ctx, services));
#pragma once

#include <memory>

#include "eval/rungs/rung.h"
#include "eval/sets/test_shapes.h"

namespace cutegen::eval {

struct PreparedShape {
  const ShapeCase* shape = nullptr;
  std::vector<size_t> images;           // indices into Prepared::images, one per module build
  ResolvedPlan plan;                    // Launch::module is an index into all images
  device::PlanSteps all_steps() const;  // zeroed scratch, prepare, steps
};

// Checks the sources against the policy and the plan against the task.
RungEnd lint_rung(const KernelProgram& program, const Task& task);

class Prepared {
 public:
  Prepared(const KernelProgram& program, const Task& task) : program_(program), task_(task) {}

  Result<RungEnd> compile(const Context& ctx, const Services& services);
  Result<RungEnd> load(const Context& ctx, const Services& services);
  // Call it after the audit. code: the cubin of each image, to be loaded instead of the PTX.
  void keep_code(std::vector<std::string> code) { code_ = std::move(code); }
  const std::vector<std::string>& code() const { return code_; }
  Result<LoadOutcome> load_modules(const Context& ctx, const Services& services) const;
  // Call it after load(). Adds the registers that the assembler gave each kernel.
  void note_registers(const BinaryAudit& audit);

  const KernelProgram& program() const { return program_; }
  const std::vector<KernelImage>& images() const { return images_; }
  const std::vector<PreparedShape>& shapes() const { return shapes_; }
  const std::vector<std::string>& skipped() const { return skipped_; }
  const sandbox::Grade& compile_grade() const { return grade_; }
  // Whether modules have variables, so that they must be reloaded before every run.
  bool has_globals() const { return has_globals_; }

 private:
  Result<RungEnd> list_builds(const DeviceFacts& device);
  // Adds the shape and its modules, unless too many of them serve no other shape.
  void add(const ShapeCase& shape, std::vector<ModuleBuild> builds, const std::string& arch);
  Result<RungEnd> enough_shapes() const;
  void skip(const ShapeCase& shape, const Error& why);

  const KernelProgram& program_;
  const Task& task_;
  std::vector<KernelImage> images_;
  std::vector<std::string> code_;
  std::vector<PreparedShape> shapes_;
  std::vector<std::shared_ptr<const ShapeCase>> derived_;   // from the program's tiles
  std::vector<std::shared_ptr<const ShapeCase>> proposed_;  // from a tester
  std::vector<std::string> skipped_;
  size_t extra_builds_ = 0;
  std::string timed_refused_;  // why the plan rejects a timed shape
  sandbox::Grade grade_;
  bool has_globals_ = false;
};

// The official shape, or null if the program rejects it.
const PreparedShape* official_of(const Prepared& prepared);
const PreparedShape* shape_of(const Prepared& prepared, const std::string& name);
// The shape's name in a sentence: "the official shape", "the shape 'wide'".
std::string name_of(const ShapeCase& shape);
// The official shape first, then the weighted ones.
std::vector<const PreparedShape*> timed_shapes(const Prepared& prepared);

// What every rung of one evaluation gets. No rung changes it.
struct Evaluation {
  const Context& ctx;
  const Services& services;
  const Task& task;
  const Prepared& prepared;
  const Progress& progress;
  // The same evaluation with other services, for example with a simulator.
  Evaluation on(const Services& others) const {
    return {
        .ctx = ctx, .services = others, .task = task, .prepared = prepared, .progress = progress};
  }
};

}  // namespace cutegen::eval
