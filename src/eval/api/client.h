// SPDX-License-Identifier: Apache-2.0
// EvaluatorClient: how the engine and the command line talk to the evaluator process.
//
// Contract: starts cutegen-evaluator as a child process and restarts it if it dies. After a restart
// it repeats the unfinished evaluation, at most twice; then the verdict is `aborted`. All calls
// block until they finish or the Context ends. Destroying the client ends the child and every
// process below it.
//
// Example:
//   CG_TRY(auto e, EvaluatorClient::start(ctx, {.device = "sim:h200"}));
//   CG_TRY(auto open, e->open_task(ctx, "relu.py", {}));
//   CG_TRY(Verdict v, e->evaluate(ctx, {program}));
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/context.h"
#include "core/asked_accuracy.h"
#include "core/baseline.h"
#include "core/candidate.h"
#include "core/certificate.h"
#include "core/device_name.h"
#include "core/task.h"
#include "core/verdict.h"
#include "eval/api/suite.h"
#include "gpu/spec.h"
#include "torch/foreign_worker.h"

namespace cutegen::eval {

struct EvaluatorOptions {
  DeviceName device;
  std::string python;  // empty: default
  bool require_sandbox = false;
  bool use_cache = true;
  int runner_threads = 0;  // 0: all cores
  // Tasks that stay open at once; the evaluator closes the least recently used one first.
  int tasks = 1;
  int sharing = 1;      // evaluators that share the device and divide its memory
  bool suites = false;  // measure suites of baselines, and do nothing else
  // Parse CuTe's headers while the torch worker describes the task, for the first program.
  bool read_cute_ahead = true;
  // A key of the programs to expect. If one of them was compiled before, the evaluator does not
  // parse CuTe ahead. Empty: unknown.
  std::string programs = {};
  std::string log_level;
};

// The degenerate solutions that pass on some of the task's inputs, and whether the task is
// admitted.
struct Admission {
  bool admitted = false;
  int lazy_answers_tried = 0;
  std::vector<std::string>
      passing;  // "copy of x passes family 'made'", with the families that catch it
  std::vector<std::string> families;  // the input families in use
  std::string remark;
  bool precision_tells = true;  // every lower-precision solution fails on some input set; not sent
  // The inputs of a degenerate solution that passes everywhere; not sent.
  std::optional<std::vector<std::string>> reads = std::nullopt;
};

struct OpenedTask {
  Task task;
  Admission admission;
  double floor_ns = 0;  // lower bound at the official shape: no correct program is faster
  RooflineBound floor_bound_by = RooflineBound::memory;
  std::string toolchain, torch, device;
  std::string gpu, driver;  // gpu: "h200" (a file of gpus/); driver: empty on a simulator
  std::string product;      // what the driver calls the GPU: "NVIDIA H200"
  // On a GPU: the tool that reads its hardware counters, or why no tool can.
  std::string counters;
  SandboxGrade sandbox;
  // reachable_ns: how long a copy of the least bytes takes. roofline_ns: an estimate for the
  // operations as written. 0: an older version wrote the record; its floor_ns is its roofline.
  double reachable_ns = 0, roofline_ns = 0;
  // If the task is a CUDA kernel: the kernel as a program (eval/source/start_program.h).
  std::optional<KernelProgram> start = std::nullopt;
};

struct EvaluateRequest {
  KernelProgram program;
  Rung up_to = Rung::timing;
  bool profile = false;
  // On a GPU: time the program alternately with this one, whose verdict was `correct`.
  std::optional<KernelProgram> against = std::nullopt;
  std::string task = {};             // id of an open task; empty: the one that was opened last
  std::vector<TestCase> tests = {};  // proposed tests, in addition to the evaluator's own
};

// Times a program against its baselines in fresh processes; see eval/judge/certify.h.
struct CertifyRequest {
  KernelProgram program;
  std::vector<torch::BaselineWanted> baselines = {{.kind = BaselineKind::eager},
                                                  {.kind = BaselineKind::eager_fp32},
                                                  {.kind = BaselineKind::eager_tf32},
                                                  {.kind = BaselineKind::compile},
                                                  {.kind = BaselineKind::compile_max}};
  int processes = 2;
  double precise = 0.002;
  std::string task = {};
};

// Times the baselines of an open task one after the other, without a program; see
// eval/baselines/baselines.h.
struct BaselinesRequest {
  std::vector<torch::BaselineWanted> baselines = {{.kind = BaselineKind::eager}};
  double build_seconds = 60;  // limit for opening one baseline
  std::string task = {};
};

// A third-party solution: `class ModelNew` of one Python file; see eval/judge/foreign.h.
struct ForeignRequest {
  torch::ForeignFile answer;
  Rung up_to = Rung::timing;
  double seconds = 300;  // limit for importing it, including builds; each call may take 60 s
  std::string task = {};
};

class EvaluatorClient {
 public:
  static Result<std::unique_ptr<EvaluatorClient>> start(const Context& ctx,
                                                        EvaluatorOptions options);
  virtual ~EvaluatorClient() = default;
  virtual Result<OpenedTask> open_task(const Context& ctx, const std::filesystem::path& file) = 0;
  // Like open_task(), but with the accuracy that the user requests.
  virtual Result<OpenedTask> open_task_as(const Context& ctx, const std::filesystem::path& file,
                                          const AskedAccuracy& asked);
  // progress: called with short lines such as "compile", "correctness 3/9".
  virtual Result<Verdict> evaluate(
      const Context& ctx, const EvaluateRequest& request,
      const std::function<void(const std::string&)>& progress = {}) = 0;
  virtual Result<Certificate> certify(const Context& ctx, const CertifyRequest& request,
                                      const std::function<void(const std::string&)>& progress = {});
  virtual Result<Verdict> judge_foreign(
      const Context& ctx, const ForeignRequest& request,
      const std::function<void(const std::string&)>& progress = {});
  virtual Result<std::vector<BaselineTime>> time_baselines(
      const Context& ctx, const BaselinesRequest& request,
      const std::function<void(const std::string&)>& progress = {});
  // Only if the evaluator was started with `suites`. After a restart, the evaluator measures the
  // tasks that have no final row.
  virtual Result<void> measure_suite(const Context& ctx, const SuiteRequest& request,
                                     const OnSuiteNews& news,
                                     const std::function<void(const std::string&)>& progress = {});
  // Call it when the task will not be used again.
  virtual void close_task(const Context&, const std::string& /*id*/) {}
  virtual int pid() const = 0;
};

}  // namespace cutegen::eval
