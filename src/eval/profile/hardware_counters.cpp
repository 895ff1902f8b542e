// SPDX-License-Identifier: Apache-2.0
#include "eval/profile/hardware_counters.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

#include "base/file.h"
#include "base/log.h"
#include "base/text.h"

namespace cutegen::eval {
namespace {

using toolchain::NcuRefusal;

constexpr auto kEndLimit = std::chrono::seconds(20);  // for ncu to write its table
constexpr auto kProbeLimit = std::chrono::seconds(40);
constexpr int kMostTries = 4, kMostFailures = 2;  // kMostFailures: before ncu first works
constexpr int64_t kMostLog = int64_t{8} << 20;
constexpr const char* kLogPath = "/proc/self/fd/4";

// A kernel that stores one word.
constexpr const char* kProbe = R"(.version 8.0
.target sm_80
.address_size 64
.visible .entry probe(.param .u64 out)
{
  .reg .b64 %rd<3>;
  ld.param.u64 %rd1, [out];
  cvta.to.global.u64 %rd2, %rd1;
  st.global.u32 [%rd2], 7;
  ret;
}
)";

size_t launches_of(const device::PlanSteps& steps) {
  return size_t(std::count_if(steps.begin(), steps.end(), [](const auto& step) {
    return std::holds_alternative<Launch>(step);
  }));
}

// ncu leaves the clocks alone, as in timed runs, and flushes caches before every pass. --section
// adds the text of ncu's rule. ncu logs to a file of its own, because a kernel can print, too.
std::vector<std::string> command_of(const toolchain::NcuTool& tool, const CountRequest& request) {
  return {tool.path.string(),
          "--log-file",
          kLogPath,
          "--csv",
          "--page",
          "details",
          "--section",
          "SpeedOfLight",
          "--print-units",
          "base",
          "--print-kernel-base",
          "mangled",
          "--clock-control",
          "none",
          "--cache-control",
          "all",
          "--target-processes",
          "all",
          "--launch-count",
          std::to_string(std::max<size_t>(launches_of(request.run.steps), 1)),
          "--metrics",
          join(request.metrics, ",")};
}

std::string text_of(int file) {
  struct stat info{};
  if (::fstat(file, &info) != 0) return {};
  std::string out(size_t(std::min<int64_t>(info.st_size, kMostLog)), '\0');
  const ssize_t n = ::pread(file, out.data(), out.size(), 0);
  out.resize(size_t(std::max<ssize_t>(n, 0)));
  return out;
}

// Why the run failed; empty if it succeeded.
std::string trouble_of(const RunnerOutcome& outcome) {
  if (outcome.kind != RunnerOutcome::Kind::reported) return outcome.text;
  return outcome.report.status == device::RunReport::Status::ok ? "" : outcome.report.message;
}

}  // namespace

RunnerOptions HardwareCounters::runner_options(const CountRequest& request, int log) const {
  RunnerOptions out;
  out.device = device_;
  out.require_sandbox = require_sandbox_;
  out.around = command_of(*tool_, request);
  out.log = log;
  std::error_code error;
  const auto real = std::filesystem::canonical(tool_->path, error);
  if (!error) out.readable.push_back(real.parent_path().string());
  out.keep_capabilities = sandbox_ == Sandbox::administrator;
  out.bare = sandbox_ == Sandbox::none;
  return out;
}

Result<HardwareCounters::Answer> HardwareCounters::once(const Context& ctx,
                                                        const CountRequest& request,
                                                        NcuRefusal& refusal) {
  const Context limited = ctx.with_timeout(request.limit);
  Answer out;
  out.tool = "ncu " + tool_->version;
  UniqueFd log(::memfd_create("ncu", MFD_CLOEXEC));  // ncu truncates the file when it opens it
  if (!log) return errno_error("making a memory file for ncu");
  std::string trouble;
  {
    Runner runner(runner_options(request, log.get()));
    auto run = [&]() -> Result<void> {
      CG_CHECK(runner.start(limited));
      out.grade = runner.grade();
      CG_TRY(LoadOutcome loaded, runner.load(limited, request.ptx, request.code));
      if (!loaded.ok) return fail(loaded.error);
      CG_TRY(RunnerOutcome ran, runner.run(limited, request.run));
      trouble = trouble_of(ran);
      CG_TRY(auto ended, runner.finish(limited, kEndLimit));
      if (trouble.empty() && (!ended.exited || ended.code != 0))
        trouble = "it ended with " + ended.text();
      return {};
    };
    if (auto done = run(); !done) trouble = done.error().text();
  }
  CG_CHECK(ctx.check("reading hardware counters"));
  const std::string text = text_of(log.get());
  auto report = toolchain::read_ncu_report(text);
  refusal = toolchain::read_ncu_refusal(text, report, request.metrics);
  if (refusal.kind == NcuRefusal::Kind::none) {
    out.kernels = std::move(report.kernels);
    return out;
  }
  out.problem = refusal.problem;
  out.remedy = refusal.remedy;
  if (refusal.kind == NcuRefusal::Kind::other && report.errors.empty() && !trouble.empty())
    out.problem = "the program did not run under ncu: " + sanitize(trouble, 300);
  return out;
}

Result<HardwareCounters::Answer> HardwareCounters::count(const Context& ctx, CountRequest request) {
  if (!refused_.problem.empty()) return refused_;
  if (!tool_) {
    auto found = toolchain::find_ncu(ctx);
    CG_CHECK(ctx.check("looking for ncu"));
    if (!found) {
      refused_.problem = found.error().message, refused_.remedy = found.error().remedy;
      return refused_;
    }
    tool_ = std::move(*found);
  }
  Answer out;
  auto last = NcuRefusal::Kind::none;
  for (int tries = 0; tries < kMostTries; ++tries) {
    std::erase_if(request.metrics, [&](const std::string& m) {
      return std::find(unknown_.begin(), unknown_.end(), m) != unknown_.end();
    });
    if (request.metrics.empty()) return out;
    NcuRefusal refusal;
    CG_TRY(out, once(ctx, request, refusal));
    if (refusal.kind == NcuRefusal::Kind::metric) {
      unknown_.insert(unknown_.end(), refusal.metrics.begin(), refusal.metrics.end());
      continue;
    }
    worked_ = worked_ || refusal.kind == NcuRefusal::Kind::none;
    if (worked_) return out;
    last = refusal.kind;
    if (!loosen(last)) break;
    log_info("cutegen starts ncu again with less of a sandbox: {}", out.problem);
  }
  sandbox_ = Sandbox::full;
  if (last == NcuRefusal::Kind::permission || ++failures_ >= kMostFailures) refused_ = out;
  return out;
}

// Selects a weaker sandbox in which ncu may work; false if there is none.
bool HardwareCounters::loosen(NcuRefusal::Kind why) {
  if (require_sandbox_ || sandbox_ != Sandbox::full) return false;
  const bool permission = why == NcuRefusal::Kind::permission;
  if (permission && ::geteuid() != 0) return false;
  sandbox_ = permission ? Sandbox::administrator : Sandbox::none;
  return true;
}

Result<CountRequest> HardwareCounters::probe_request() {
  constexpr int64_t kBytes = 4096;
  CountRequest out;
  CG_TRY(out.memory, make_memfd("probe", kBytes));
  out.ptx = {kProbe};
  out.metrics = {"sm__cycles_active.avg"};
  out.run.buffers = {{.name = "out", .bytes = kBytes, .offset = 0}};
  out.run.memory = out.memory.get();
  Launch launch;
  launch.kernel = launch.step = "probe";
  launch.args = {{.buffer = "out"}};
  out.run.steps = {launch};
  out.limit = kProbeLimit;
  return out;
}

Result<HardwareCounters::Answer> HardwareCounters::probe(const Context& ctx) {
  CG_TRY(CountRequest request, probe_request());
  return count(ctx, std::move(request));
}

}  // namespace cutegen::eval
