// SPDX-License-Identifier: Apache-2.0
// EvaluatorClient: the interface of the evaluator process for the engine and the command line.
//
// Contract: start() starts cutegen-evaluator as a child process. If the child dies, the client
// starts it again and repeats the unfinished evaluation, at most twice. After that, the verdict is
// `aborted`. All calls block until they finish, or until the Context is cancelled or times out. The
// destructor ends the child process and all its descendants.
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
  std::string python;  // empty: the default interpreter
  bool require_sandbox = false;
  bool use_cache = true;
  int runner_threads = 0;  // 0: all cores
  // How many tasks may be open at once. To open one more, the evaluator closes the least recently
  // used task.
  int tasks = 1;
  int sharing = 1;      // number of evaluators that share the device's memory
  bool suites = false;  // the evaluator only measures suites of baselines (suite.h)
  // Whether the compile server parses CuTe's headers for the first program while the torch worker
  // describes the task.
  bool read_cute_ahead = true;
  // A text that identifies the programs that the caller will send, such as their ids; empty if
  // unknown. If cutegen compiled programs with the same text before, the evaluator does not parse
  // CuTe's headers in advance.
  std::string programs = {};
  std::string log_level;
};

// Whether the evaluator admits a task: each degenerate solution (zeros, a copy of an input, ...)
// must fail on at least one input set.
struct Admission {
  bool admitted = false;
  int lazy_answers_tried = 0;
  // Says which degenerate solutions pass on some input sets ("copy of x passes family 'made'"), and
  // on which sets they fail.
  std::vector<std::string> passing;
  std::vector<std::string> families;  // the input distributions in use
  std::string remark;
  // Comparing outputs detects lower precision; messages lack this field.
  bool precision_tells = true;
  // If a degenerate solution passes on all input sets: the inputs that it reads. Messages lack this
  // field.
  std::optional<std::vector<std::string>> reads = std::nullopt;
};

struct OpenedTask {
  Task task;
  Admission admission;
  double floor_ns = 0;  // no correct program is faster than this at the sizes in the task file
  RooflineBound floor_bound_by = RooflineBound::memory;
  std::string toolchain, torch, device;
  std::string gpu, driver;  // gpu: name of a file in gpus/ ("h200"); driver: empty on a simulator
  std::string product;      // name of the GPU from the CUDA driver: "NVIDIA H200"
  // On a GPU: the tool that reads hardware counters, or the reason if no tool can read them.
  std::string counters;
  SandboxGrade sandbox;
  // reachable_ns: time to copy the least bytes that a program must move. roofline_ns: estimated
  // time of the task's operators as written. In records of older versions, both are 0, and floor_ns
  // is the roofline.
  double reachable_ns = 0, roofline_ns = 0;
  // If the task is a CUDA kernel: the user's kernel as the first program of a run.
  std::optional<KernelProgram> start = std::nullopt;
};

struct EvaluateRequest {
  KernelProgram program;
  Rung up_to = Rung::timing;
  bool profile = false;
  // On a GPU: another correct program, which the evaluator times alternately with `program`.
  std::optional<KernelProgram> against = std::nullopt;
  std::string task = {};             // id of an open task; empty: the last opened task
  std::vector<TestCase> tests = {};  // additional tests that a model proposed
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

// Times the baselines of an open task, without a program; see eval/baselines/baselines.h.
struct BaselinesRequest {
  std::vector<torch::BaselineWanted> baselines = {{.kind = BaselineKind::eager}};
  double build_seconds = 60;  // time limit for building one baseline
  std::string task = {};
};

// Judges a third-party solution: the class ModelNew of a Python file; see eval/judge/foreign.h.
struct ForeignRequest {
  torch::ForeignFile answer;
  Rung up_to = Rung::timing;
  double seconds = 300;  // limit for import and builds; a call may take 60 s
  std::string task = {};
};

class EvaluatorClient {
 public:
  static Result<std::unique_ptr<EvaluatorClient>> start(const Context& ctx,
                                                        EvaluatorOptions options);
  virtual ~EvaluatorClient() = default;
  virtual Result<OpenedTask> open_task(const Context& ctx, const std::filesystem::path& file) = 0;
  // Does the same as open_task(), but with the user's accuracy settings.
  virtual Result<OpenedTask> open_task_as(const Context& ctx, const std::filesystem::path& file,
                                          const AskedAccuracy& asked);
  // Evaluates a program. Calls `progress` with short lines such as "compile", "correctness 3/9".
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
  // Needs an evaluator with the option `suites`. If the evaluator dies, a new evaluator measures
  // the tasks that have no final row yet.
  virtual Result<void> measure_suite(const Context& ctx, const SuiteRequest& request,
                                     const OnSuiteNews& news,
                                     const std::function<void(const std::string&)>& progress = {});
  // Tells the evaluator that the caller no longer needs the task.
  virtual void close_task(const Context&, const std::string& /*id*/) {}
  virtual int pid() const = 0;
};

}  // namespace cutegen::eval
