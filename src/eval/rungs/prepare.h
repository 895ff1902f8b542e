// SPDX-License-Identifier: Apache-2.0
// Lints, compiles and loads a program, and evaluates its plan for every shape.
//
// Contract: Prepared::skipped() names each shape that the plan's `requires` excludes. If `requires`
// excludes the official shape (the sizes in the task file), a weighted shape or all test shapes,
// the program is `unsupported`. If the task itself has no test shape, a GPU may judge programs at
// the official shape alone. compile() compiles each source once for each distinct combination of
// defines, all combinations in parallel. Derived shapes (additional test shapes, see
// eval/rungs/derive_shapes.h) may need only a few modules of their own; the evaluator skips a
// derived shape that needs more.
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
  std::vector<size_t> images;           // per module of the plan: an index into Prepared::images()
  ResolvedPlan plan;                    // Launch::module is an index into Prepared::images()
  device::PlanSteps all_steps() const;  // zeroing of scratch, then `prepare`, then `steps`
};

// Lints the sources (eval/source/lint.h) and checks the plan against the task.
RungEnd lint_rung(const KernelProgram& program, const Task& task);

class Prepared {
 public:
  Prepared(const KernelProgram& program, const Task& task);

  Result<RungEnd> compile(const Context& ctx, const Services& services);
  Result<RungEnd> load(const Context& ctx, const Services& services);
  // code: the cubin of each image, from the audit; the runner loads the cubins instead of PTX.
  void keep_code(std::vector<std::string> code) { code_ = std::move(code); }
  const std::vector<std::string>& code() const { return code_; }
  Result<LoadOutcome> load_modules(const Context& ctx, const Services& services) const;
  // Sets `registers` and `code` of every launch, as far as the audit has them. Call after load().
  void note_audit(const BinaryAudit& audit);

  const KernelProgram& program() const { return program_; }
  const std::vector<KernelImage>& images() const { return images_; }
  const std::vector<PreparedShape>& shapes() const { return shapes_; }
  const std::vector<std::string>& skipped() const { return skipped_; }
  const sandbox::Grade& compile_grade() const { return grade_; }
  // True if a module has global variables, so that the modules must be loaded before every run.
  bool has_globals() const { return has_globals_; }
  // True if the task has no test shape, so that only the official shape can reveal wrong results.
  bool only_official() const { return only_official_; }

 private:
  Result<RungEnd> list_builds(const Services& services);
  // Adds the shape and its modules, unless this shape alone would need too many modules.
  void add(const ShapeCase& shape, std::vector<ModuleBuild> builds, const std::string& arch);
  Result<RungEnd> enough_shapes(const Services& services) const;
  void skip(const ShapeCase& shape, const Error& why);

  const KernelProgram& program_;
  const Task& task_;
  std::vector<KernelImage> images_;
  std::vector<std::string> code_;
  std::vector<PreparedShape> shapes_;
  std::vector<std::shared_ptr<const ShapeCase>> derived_;   // shapes of DerivedShapes
  std::vector<std::shared_ptr<const ShapeCase>> proposed_;  // shapes of tests that a model proposed
  std::vector<std::string> skipped_;
  size_t extra_builds_ = 0;
  std::string timed_refused_;  // the reason if the plan excludes a timed shape
  sandbox::Grade grade_;
  bool has_globals_ = false;
  bool only_official_ = false;
};

// Returns the official shape, or null if the plan excludes it.
const PreparedShape* official_of(const Prepared& prepared);
const PreparedShape* shape_of(const Prepared& prepared, const std::string& name);
// Returns the shape's name for use in a sentence: "the official shape", "the shape 'wide'".
std::string name_of(const ShapeCase& shape);
// Returns the official shape, followed by the weighted shapes.
std::vector<const PreparedShape*> timed_shapes(const Prepared& prepared);

// The data of one evaluation. Every rung (check) reads the data, and no rung changes them.
struct Evaluation {
  const Context& ctx;
  const Services& services;
  const Task& task;
  const Prepared& prepared;
  const Progress& progress;
  // Returns the same evaluation with other services, for example with the simulator as device.
  Evaluation on(const Services& others) const {
    return {
        .ctx = ctx, .services = others, .task = task, .prepared = prepared, .progress = progress};
  }
};

}  // namespace cutegen::eval
