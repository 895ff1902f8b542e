// SPDX-License-Identifier: Apache-2.0
// For tests: runs all checks of an evaluation (the ladder) with a toy task, the real runner, and a
// fake compiler that returns given PTX.
//
// Contract: a program is a kernel f(x, out, n) over 2048 elements. The PTX in `body` computes %f2
// (the output element) from %f1 (the input element).
//
// Example: World w([](double x) { return 2 * x; }); Verdict v = w.judge(w.kernel("add.f32 ..."));
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <mutex>
#include <optional>

#include "device/device.h"
#include "eval/judge/ladder.h"
#include "eval/testing/lent.h"
#include "eval/testing/toy_task.h"
#include "toolchain/assembler.h"

namespace cutegen::eval::testing_world {

// Returns the same PTX for every source, or the failure that the test sets.
class FakeToolchain : public toolchain::Toolchain {
 public:
  Result<toolchain::CompileResult> compile(const Context&,
                                           const toolchain::CompileRequest& request) override {
    {
      std::lock_guard lock(mutex_);  // needed because modules compile in parallel
      requests.push_back(request);
    }
    if (trouble) return fail(*trouble);
    toolchain::CompileResult out;
    out.ok = digest.empty();
    out.digest = digest;
    out.ptx = out.ok ? ptx : "";
    out.build_id = "build-" + request.name;
    out.grade = {.held = {{"seccomp", true}}, .label = Protection::full};
    return out;
  }
  Result<void> warm_up(const Context&, const std::string&, const std::string&) override {
    return {};
  }
  std::string version() const override { return "fake"; }

  std::string ptx, digest;
  std::optional<Error> trouble;
  std::vector<toolchain::CompileRequest> requests;

 private:
  std::mutex mutex_;
};

// Returns the same report for every module, by default a report that no assembler is installed.
class FakeAssembler : public toolchain::Assembler {
 public:
  FakeAssembler() { report.audit.skipped = {"no assembler here"}; }
  Result<toolchain::AssemblyReport> audit(const Context&, const std::string&,
                                          const std::string&) override {
    return report;
  }
  Result<void> list_all(const Context&, const std::vector<std::string>&, const std::string&,
                        std::vector<toolchain::AssemblyReport>& reports) override {
    return listing ? listing(reports) : Result<void>{};
  }
  std::string version() const override { return {}; }

  toolchain::AssemblyReport report;
  // lets a test change the reports
  std::function<Result<void>(std::vector<toolchain::AssemblyReport>&)> listing;
};

class World {
 public:
  explicit World(std::function<double(double)> truth)
      : toy(std::move(truth)), runner_({.device = "sim:h200", .threads = 1}) {
    services.toolchain = lent(toolchain);
    services.assembler = lent(assembler);
    services.runner = lent(runner_);
    services.device = *device::device_facts("sim:h200");
    services.gpu = *find_gpu("h200");
    services.threads = 1;
    services.families = {"made", "signed", "heavy"};
    program.sources["kernel.cu"] =
        "extern \"C\" __global__ void f(const float* x, float* out, int n) {}";
    plan(Json::object());
  }

  // Sets the plan to the default plan with `changes` applied as a JSON merge patch (RFC 7396).
  void plan(const Json& changes) {
    Json json = Json::parse(R"json({"cutegen": 1, "dialect": "cuda", "sources": ["kernel.cu"],
      "symbols": {"n": "size(x)"},
      "steps": [{"kernel": "f", "grid": ["ceil_div(n,256)", 1, 1], "block": [256, 1, 1],
                 "args": [{"tensor": "x"}, {"tensor": "out"}, {"i32": "n"}]}]})json");
    json.merge_patch(changes);
    auto parsed = plan_from_json(json);
    EXPECT_TRUE(parsed) << parsed.error().text();
    if (parsed) program.plan = *parsed;
  }

  // Returns the PTX of the kernel f. `index` is PTX that may change %r5, the element's index.
  // `globals` is PTX before the entry of f.
  static std::string kernel(const std::string& body, const std::string& index = {},
                            const std::string& globals = {}) {
    return fmt::format(R"(.version 8.0
.target sm_90
.address_size 64
{}
.visible .entry f(.param .u64 f_x, .param .u64 f_out, .param .u32 f_n)
{{
  .reg .pred %p<4>;
  .reg .b32 %r<12>;
  .reg .f32 %f<8>;
  .reg .b64 %rd<12>;
  ld.param.u64 %rd1, [f_x];
  ld.param.u64 %rd2, [f_out];
  ld.param.u32 %r1, [f_n];
  mov.u32 %r2, %ctaid.x;
  mov.u32 %r3, %ntid.x;
  mov.u32 %r4, %tid.x;
  mad.lo.s32 %r5, %r2, %r3, %r4;
  {}
  setp.ge.s32 %p1, %r5, %r1;
  @%p1 bra DONE;
  mul.wide.s32 %rd3, %r5, 4;
  add.s64 %rd4, %rd1, %rd3;
  add.s64 %rd5, %rd2, %rd3;
  ld.global.f32 %f1, [%rd4];
  {}
  st.global.f32 [%rd5], %f2;
DONE:
  ret;
}}
)",
                       globals, index, body);
  }

  Verdict judge(const std::string& ptx, Rung up_to = Rung::timing, bool profile = false) {
    toolchain.ptx = ptx;
    if (!pool) {
      pool.emplace(toy.task, toy.source());
      services.pool = lent(*pool);
    }
    auto verdict = climb(Context(), services, toy.task,
                         {.program = program, .up_to = up_to, .profile = profile},
                         [this](const std::string& text) { progress.push_back(text); });
    EXPECT_TRUE(verdict) << verdict.error().text();
    return verdict ? *verdict : Verdict{};
  }

  // Inserts an official shape (the shape that a task file gives) before the other shapes. With many
  // rows, the shape is timed, but too large for the correctness check.
  void add_official(int64_t rows) {
    ShapeCase official{.name = "official", .kind = ShapeKind::official};
    official.tensors = {{"x", {rows, 32}}, {"out", {rows, 32}}};
    official.least_bytes = Bytes{rows * 32 * 8};
    official.flops = Flops{double(rows) * 32};
    toy.task.shapes.insert(toy.task.shapes.begin(), official);
  }

  ToyTask toy;
  FakeToolchain toolchain;
  FakeAssembler assembler;
  Services services;
  KernelProgram program;
  std::optional<TruthPool> pool;
  std::vector<std::string> progress;

 private:
  Runner runner_;
};

// The correct result of a task that doubles its input. kTwice is the PTX of a program that computes
// this result.
inline double twice(double x) {
  return 2 * x;
}
inline constexpr const char* kTwice = "add.f32 %f2, %f1, %f1;";

// Returns the report of one rung (check) in a verdict.
inline const RungReport& report_of(const Verdict& v, Rung rung) {
  return v.rungs.at(size_t(rung));
}

}  // namespace cutegen::eval::testing_world
