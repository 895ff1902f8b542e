// SPDX-License-Identifier: Apache-2.0
// Fakes for the engine's tests: numbered programs, an evaluator with scripted verdicts, and a clock
// that advances at every call.
//
// Contract: the source of program n begins with "// n". The verdict of the k-th evaluation of
// program n is judge(n, k), with k from 0. The counters of ToyWorld count all evaluations and
// starts, also across simulated crashes and resumes.
//
// Example: ToyWorld w; w.judge = [](int n, int) { return timed(100.0 / n); };
// optimize_with(w.parts(), ...)
#pragma once

#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <map>
#include <string>

#include "base/hash.h"
#include "engine/run/loop.h"
#include "engine/run/run.h"

namespace cutegen::engine::toy {

inline Verdict timed(double time_ns) {
  Verdict v;
  v.status = Status::correct;
  v.device = "sim:h200";
  v.sets_judged = 9;
  v.skipped = {"hazards: not built yet"};
  Timing t;
  t.shape = "official";
  t.time_ns = time_ns;
  t.floor_ns = 10, t.reachable_ns = 12, t.roofline_ns = 11;
  t.bound_by = "dram";
  v.timing = t;
  return v;
}

inline Verdict untimed(Status status, const std::string& headline) {
  Verdict v;
  v.status = status;
  v.device = "sim:h200";
  v.feedback.headline = headline;
  return v;
}

inline KernelProgram numbered_program(int n) {
  KernelProgram p;
  p.plan.sources = {"kernel.cu"};
  Step step;
  step.id = "k";
  step.kernel = "k";
  p.plan.steps = {step};
  p.sources["kernel.cu"] = "// " + std::to_string(n) + "\nextern \"C\" __global__ void k() {}\n";
  return p;
}

inline int number_of(const KernelProgram& p) {
  return std::stoi(p.sources.at("kernel.cu").substr(3));
}

inline eval::OpenedTask relu_task() {
  eval::OpenedTask o;
  Task& t = o.task;
  t.id = sha256("relu");
  t.name = "relu";
  t.file = "relu.py";
  t.source = "import torch\n";
  t.tensors = {{.name = "x", .role = TensorRole::input, .dtype = DType::f32, .shape = {16, 64}},
               {.name = "out", .role = TensorRole::output, .dtype = DType::f32, .shape = {16, 64}}};
  t.workload = "elementwise";
  ShapeCase shape;
  shape.name = "official";
  shape.tensors = {{"x", {16, 64}}, {"out", {16, 64}}};
  shape.least_bytes = Bytes{8192};
  t.shapes = {shape};
  t.graph.placeholders = {{.name = "x", .dtype = DType::f32, .shape = {16, 64}}};
  t.graph.nodes = {{.id = "relu",
                    .op = "aten.relu.default",
                    .args = {Json{{"ref", "x"}}},
                    .kwargs = Json::object(),
                    .outputs = {{.name = "relu", .dtype = DType::f32, .shape = {16, 64}}}}};
  t.graph.outputs = {"relu"};
  o.admission = {
      .admitted = true, .lazy_answers_tried = 7, .families = {"made", "wide"}, .remark = ""};
  o.floor_ns = 10;
  o.floor_bound_by = RooflineBound::memory;
  o.reachable_ns = 12, o.roofline_ns = 11;
  o.toolchain = "NVRTC 13.0";
  o.torch = "2.13.0";
  o.device = "sim:h200";
  o.sandbox = {.label = Protection::partial, .held = {{"seccomp", true}, {"network", false}}};
  return o;
}

// Returns a new path for a test's files, in memory (/dev/shm) if possible, because the store syncs
// every event to disk.
inline std::filesystem::path scratch_path(const std::string& name) {
  std::filesystem::path shared = "/dev/shm";
  bool usable = ::access(shared.c_str(), W_OK) == 0;
  return (usable ? shared : std::filesystem::temp_directory_path()) /
         ("cutegen-" + name + "-" + random_id().substr(0, 12));
}

// Returns a certificate of a program that is twice as fast as torch.compile in every timing mode,
// with intervals of 1%.
inline Certificate toy_certificate(const KernelProgram& program) {
  Certificate c;
  c.program_id = program_id(program);
  c.task_id = sha256("relu");
  c.shape = "official";
  c.gpu = "NVIDIA H200", c.uuid = "GPU-1", c.driver = "580.159.04", c.torch = "2.11.0";
  c.floor_ns = 10, c.bound_by = "memory";
  c.processes = 2, c.apart = 0.001;
  for (TimeMode mode : {TimeMode::cold, TimeMode::warm, TimeMode::graph, TimeMode::call}) {
    CertifiedMode m{.mode = mode, .time_ns = 50, .low_ns = 49.5, .high_ns = 50.5};
    m.against.push_back({.against = "eager",
                         .program_id = "",
                         .speedup = 4,
                         .low = 3.96,
                         .high = 4.04,
                         .other_ns = 200,
                         .pairs = 16,
                         .stopped = "precise"});
    m.against.push_back({.against = "compile",
                         .program_id = "",
                         .speedup = 2,
                         .low = 1.98,
                         .high = 2.02,
                         .other_ns = 100,
                         .pairs = 16,
                         .stopped = "precise"});
    m.against.push_back({.against = "eager-tf32",
                         .program_id = "",
                         .speedup = 1.5,
                         .low = 1.49,
                         .high = 1.51,
                         .other_ns = 75,
                         .pairs = 16,
                         .stopped = "precise"});
    c.modes.push_back(std::move(m));
  }
  c.modes[3].against.pop_back();
  c.missing = {"compile-max: it raises\nan error"};
  c.sandbox = {.label = Protection::partial};
  c.elapsed = std::chrono::seconds(50);
  return c;
}

struct ToyWorld {
  std::function<Verdict(int number, int attempt)> judge = [](int n, int) {
    return timed(100.0 - n);
  };
  // Number of programs that the ToyProposer proposes before it answers "nothing left to try".
  int programs = 6;
  int started = 0;  // evaluators started
  // The accuracy that the last call of open_task_as() requested.
  AskedAccuracy asked{};
  std::map<int, int> evaluations{};  // number of finished evaluations, by program number
  int compiled = 0;                  // number of programs that only had to compile
  std::function<Verdict(int number)> compile = [](int) { return untimed(Status::correct, ""); };
  std::function<void(int number)> during_evaluation = [](int) {};
  eval::OpenedTask opened = relu_task();
  std::atomic<int64_t> clock_ms = 0;
  std::function<Result<std::vector<BaselineTime>>()> baselines = [] {
    return world_error("no GPU");
  };
  std::vector<torch::BaselineWanted> baselines_asked{};
  int certified = 0;  // certificates started
  std::function<Result<Certificate>(const Context&, const eval::CertifyRequest&)> certify =
      [](const Context&, const eval::CertifyRequest& request) -> Result<Certificate> {
    return toy_certificate(request.program);
  };

  Parts parts();
};

class ToyEvaluator final : public eval::EvaluatorClient {
 public:
  explicit ToyEvaluator(ToyWorld& world) : world_(world) { ++world.started; }
  Result<eval::OpenedTask> open_task(const Context& ctx, const std::filesystem::path&) override {
    CG_CHECK(ctx.check("opening the task"));
    return world_.opened;
  }
  Result<eval::OpenedTask> open_task_as(const Context& ctx, const std::filesystem::path& file,
                                        const AskedAccuracy& asked) override {
    world_.asked = asked;
    return open_task(ctx, file);
  }
  Result<Verdict> evaluate(const Context& ctx, const eval::EvaluateRequest& request,
                           const std::function<void(const std::string&)>& progress) override {
    int n = number_of(request.program);
    if (request.up_to < Rung::correctness) {
      ++world_.compiled;
      return world_.compile(n);
    }
    if (progress) progress("correctness 1/9");
    world_.during_evaluation(n);
    CG_CHECK(ctx.check("evaluating"));
    return world_.judge(n, world_.evaluations[n]++);
  }
  Result<std::vector<BaselineTime>> time_baselines(
      const Context&, const eval::BaselinesRequest& request,
      const std::function<void(const std::string&)>&) override {
    world_.baselines_asked = request.baselines;
    return world_.baselines();
  }
  Result<Certificate> certify(const Context& ctx, const eval::CertifyRequest& request,
                              const std::function<void(const std::string&)>& progress) override {
    ++world_.certified;
    if (progress) progress("process 1 of 2: cold");
    return world_.certify(ctx, request);
  }
  int pid() const override { return 0; }

 private:
  ToyWorld& world_;
};

// Proposes programs 1, 2, 3, ... The parent of each program is the parent in the question.
class ToyProposer final : public Proposer {
 public:
  explicit ToyProposer(ToyWorld& world) : world_(world) {}
  Result<Answer> answer(const Context&, const search::Ask& ask, const RunView& run) override {
    int n = int(run.steps.size()) + 1;
    if (n > world_.programs) return Answer{.reason = "nothing left to try"};
    Candidate c;
    if (ask.context.contains("parent")) c.parent = ask.context["parent"].get<std::string>();
    c.edit = {.summary = "number " + std::to_string(n),
              .rationale = "",
              .origin = "toy",
              .params = {{"n", n}}};
    c.program = numbered_program(n);
    return Answer{.candidate = c};
  }

 private:
  ToyWorld& world_;
};

inline Parts ToyWorld::parts() {
  return {.start_evaluator = [this](const Context&, const eval::EvaluatorOptions&)
              -> Result<std::unique_ptr<eval::EvaluatorClient>> {
            return std::make_unique<ToyEvaluator>(*this);
          },
          .make_proposer = [this](const OptimizeSettings&, const eval::OpenedTask&)
              -> Result<std::unique_ptr<Proposer>> { return std::make_unique<ToyProposer>(*this); },
          .now_ms = [this] { return ++clock_ms; }};
}

class Recorder final : public RunObserver {
 public:
  void on_event(const Event& event) override { events.push_back(event); }
  void on_progress(const std::string& line) override { progress.push_back(line); }
  std::vector<Event> events;
  std::vector<std::string> progress;
};

}  // namespace cutegen::engine::toy
