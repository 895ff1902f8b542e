// SPDX-License-Identifier: Apache-2.0
#include "eval/judge/ladder.h"

#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <future>
#include <optional>
#include <set>

#include "base/log.h"
#include "base/text.h"
#include "core/weighted.h"
#include "eval/diagnosis/diagnose.h"
#include "eval/diagnosis/feedback.h"
#include "eval/judge/time_shapes.h"
#include "eval/profile/gpu_profile.h"
#include "eval/rungs/audit.h"
#include "eval/rungs/correctness.h"
#include "eval/rungs/gpu_correctness.h"
#include "eval/rungs/measure.h"
#include "eval/rungs/prepare.h"
#include "eval/rungs/timing.h"
#include "eval/sets/excerpts.h"

namespace cutegen::eval {
namespace {

constexpr size_t kMostHeadline = 400, kMostNotCompared = 250;  // bytes
constexpr Rung kRungs[] = {Rung::lint,        Rung::compile, Rung::audit,  Rung::load,
                           Rung::correctness, Rung::timing,  Rung::profile};

// CPU time of this thread: the cost of an evaluation without the time that the thread waits for
// other processes.
Nanoseconds thread_time() {
  timespec t{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return std::chrono::seconds(t.tv_sec) + Nanoseconds(t.tv_nsec);
}

void append(std::vector<std::string>& to, const std::vector<std::string>& more) {
  to.insert(to.end(), more.begin(), more.end());
}

bool wanted(const EvaluateRequest& request, Rung rung) {
  if (rung == Rung::profile) return request.profile || request.up_to == Rung::profile;
  return rung <= request.up_to || (request.profile && rung <= Rung::timing);
}

void note_failure(RungEnd end, Verdict& verdict) {
  verdict.status = end.status;
  verdict.feedback.headline = sanitize(end.headline, kMostHeadline);
  verdict.feedback.detail = sanitize(end.detail, kMostDetail);
  verdict.feedback.mismatches = std::move(end.mismatches);
}

RungEnd note_audit(AuditOutcome outcome, RungResult& result, Verdict& verdict) {
  result = outcome.result;
  append(verdict.marks, outcome.marks);
  if (result != RungResult::skipped)
    for (const std::string& s : outcome.audit.skipped) verdict.skipped.push_back("audit: " + s);
  verdict.feedback.resources = summary_of(outcome.audit);
  verdict.audit = std::move(outcome.audit);
  return outcome.end;
}

// The pools compute new sets during the first rungs only. Later rungs run the program, and that
// work would disturb it.
void pause_restocking(const Services& services) {
  services.pool->pause();
  if (services.excerpts) services.excerpts->pause();
  if (services.official) services.official->pause();
}

void note_correctness(const CorrectnessRecord& record, bool passed, Verdict& verdict) {
  verdict.sets_judged = record.sets_judged;
  verdict.compat = record.compat;
  if (passed) verdict.accuracy = record.accuracy;
  append(verdict.marks, record.marks);
  append(verdict.skipped, record.skipped);
  verdict.official_not_compared = record.official_not_compared;
  verdict.weighted_not_compared = record.weighted_not_compared;
}

RungEnd note_profile(double floor_ns, Verdict& verdict) {
  const Profile& p = *verdict.profile;
  verdict.feedback.bottleneck = bottleneck_text(p.kernels, floor_ns);
  double error = 0;
  for (const KernelProfile& k : p.kernels) error = std::max(error, k.sample_error);
  std::string detail = fmt::format("{} kernel{}, counters of the {}", p.kernels.size(),
                                   p.kernels.size() == 1 ? "" : "s", p.source.text());
  if (p.source.kind == CounterSource::Kind::simulator)
    detail += fmt::format(" +-{:.1f}%", 100 * error);
  if (!p.note.empty()) {
    verdict.skipped.push_back("profile: " + p.note);
    detail += "; " + p.note;
  }
  return rung_passed(detail);
}

std::vector<sandbox::Grade> grades_of(const Services& services, const Prepared& prepared) {
  std::vector<sandbox::Grade> out{services.runner->grade()};
  if (services.simulator && !services.simulator->grade().held.empty())
    out.push_back(services.simulator->grade());
  if (!prepared.compile_grade().held.empty()) out.push_back(prepared.compile_grade());
  return out;
}

std::string headline_of(const Verdict& correct) {
  std::string out = correct.sets_judged ? fmt::format("correct on {} sets", correct.sets_judged)
                                        : "no step failed; correctness was not judged";
  if (correct.timing) out += ", " + correct.rungs[size_t(Rung::timing)].detail;
  return with_not_compared(out, correct);
}

void log_times(const Verdict& verdict, Nanoseconds waited, Nanoseconds processor_time) {
  auto ms = [](Nanoseconds t) { return double(t.count()) / 1e6; };
  Nanoseconds compiling = verdict.rungs[size_t(Rung::compile)].elapsed;
  log_info(
      "evaluation: {:.1f} ms: compile {:.1f}, runner {:.1f}, evaluator {:.1f}; processor time of "
      "this thread {:.1f} ms",
      ms(verdict.elapsed), ms(compiling), ms(waited), ms(verdict.elapsed - compiling - waited),
      ms(processor_time));
}

// On a simulator, the counters of the timing run are the profile.
Profile simulated_profile(const std::vector<KernelProfile>& kernels, const Task& task,
                          const GpuSpec& gpu) {
  Profile out{.kernels = kernels,
              .shape = task.official().name,
              .source = {.kind = CounterSource::Kind::simulator}};
  for (KernelProfile& k : out.kernels) diagnose(k, gpu);
  return out;
}

template <class T>
const T* address_of(const std::optional<T>& value) {
  return value ? &*value : nullptr;
}

GpuSetPtr set_of(const std::map<std::string, GpuSetPtr>& sets, const PreparedShape& shape) {
  const auto at = sets.find(shape.shape->name);
  return at == sets.end() ? nullptr : at->second;
}

void note_not_compared(const ShapeCase& shape, const std::string& why, Verdict& verdict) {
  if (why.empty() || is_test_shape(shape)) return;
  const bool official = shape.kind == ShapeKind::official;
  (official ? verdict.official_not_compared : verdict.weighted_not_compared[shape.name]) = why;
}

// On a simulator, only the timing step compares outputs of large shapes.
void note_shapes_without_timing(const EvaluateRequest& request, const Task& task,
                                const std::set<std::string>& modelled, Verdict& verdict) {
  if (!wanted(request, Rung::correctness)) return;
  const char* why = wanted(request, Rung::timing)
                        ? "the timing step, which compares them, ended earlier"
                        : "only the timing step compares them, and it did not run";
  for (const ShapeCase* shape : timed_shapes(task))
    if (!modelled.contains(shape->name)) note_not_compared(*shape, why, verdict);
}

SandboxGrade grade_of(const Services& services, const Prepared& prepared,
                      const std::optional<sandbox::Grade>& profiler) {
  std::vector<sandbox::Grade> grades = grades_of(services, prepared);
  if (profiler) grades.push_back(*profiler);
  return weakest(grades);
}

Evaluation evaluation_of(const Context& ctx, const Services& services, const Task& task,
                         const Prepared& prepared, const Progress& progress) {
  return {
      .ctx = ctx, .services = services, .task = task, .prepared = prepared, .progress = progress};
}

void note_aborted(const Error& error, Verdict& verdict) {
  verdict.status = Status::aborted;
  verdict.feedback.headline = sanitize(error.text(), kMostHeadline);
}

void note_builds(const Prepared& prepared, Verdict& verdict) {
  for (const KernelImage& image : prepared.images())
    if (!image.build_id.empty()) verdict.build_ids.push_back(image.build_id);
  append(verdict.skipped, prepared.skipped());
}

class Climber {
 public:
  Climber(const Context& ctx, const Services& services, const Task& task,
          const EvaluateRequest& request, const Progress& progress)
      : ctx_(ctx),
        services_(services),
        task_(task),
        request_(request),
        progress_(progress),
        prepared_(request.program, task),
        verdict_(begin_verdict(services, task, program_id(request.program))) {}

  Result<Verdict> run() {
    auto start = Clock::now();
    bool going = true;
    for (Rung rung : kRungs) {
      if (!going || !wanted(request_, rung)) {
        const char* why = going ? "not asked for" : "an earlier step failed";
        verdict_.rungs.push_back({.rung = rung, .result = RungResult::skipped, .detail = why});
        continue;
      }
      CG_TRY(going, climb_one(rung));
    }
    if (auto joined = join_listing(); !joined) {
      CG_CHECK(ctx_.check("evaluating"));
      note_aborted(joined.error(), verdict_);
    }
    finish(start);
    return std::move(verdict_);
  }

 private:
  Evaluation evaluation() const {
    return evaluation_of(ctx_, services_, task_, prepared_, progress_);
  }

  // Returns false if the ladder ends at this rung.
  Result<bool> climb_one(Rung rung) {
    CG_CHECK(ctx_.check("evaluating"));
    progress_(to_string(rung));
    auto start = Clock::now();
    RungReport report{.rung = rung, .result = RungResult::passed};
    auto end = step(rung, report.result);
    report.elapsed = Clock::now() - start;
    if (!end) {
      CG_CHECK(ctx_.check("evaluating"));
      end = rung_ended(Status::aborted, end.error().text());
    }
    if (!end->passed) report.result = RungResult::failed;
    report.detail = sanitize(end->passed ? end->detail : end->headline, 400);
    if (report.result == RungResult::skipped)
      verdict_.skipped.push_back(fmt::format("{}: {}", to_string(rung), report.detail));
    verdict_.rungs.push_back(report);
    if (end->passed) return true;
    note_failure(std::move(*end), verdict_);
    return false;
  }

  Result<RungEnd> step(Rung rung, RungResult& result) {
    switch (rung) {
      case Rung::lint:
        return lint_rung(request_.program, task_);
      case Rung::compile:
        return prepared_.compile(ctx_, services_);
      case Rung::audit:
        return audit(result);
      case Rung::load: {
        auto end = prepared_.load(ctx_, services_);
        if (end && end->passed && verdict_.audit) prepared_.note_audit(*verdict_.audit);
        return end;
      }
      case Rung::correctness:
        return judge_correctness();
      case Rung::timing:
        return time(result);
      case Rung::profile:
        return profile(result);
    }
    CG_ASSERT(false);
  }

  Result<RungEnd> judge_correctness() {
    pause_restocking(services_);
    CorrectnessRecord record;
    auto end = check_correctness(evaluation(), verdict_.program_id, record);
    official_ = record.official;
    coverage_ = std::move(record.coverage);
    note_correctness(record, end && end->passed, verdict_);
    return end;
  }

  Result<RungEnd> audit(RungResult& result) {
    auditor_.emplace(services_, task_, prepared_.images());
    CG_TRY(AuditOutcome outcome, auditor_->assemble(ctx_));
    if (services_.on_gpu()) prepared_.keep_code(std::move(outcome.code));
    if (!outcome.end.passed) return note_audit(std::move(outcome), result, verdict_);
    if (!services_.precision_tells) {  // here the listing may reject the program
      CG_TRY(outcome, auditor_->list(ctx_));
      return note_audit(std::move(outcome), result, verdict_);
    }
    result = outcome.result;
    verdict_.audit = std::move(outcome.audit);  // later rungs need the register counts
    listing_ = std::async(std::launch::async, [this] { return auditor_->list(ctx_); });
    return outcome.end;
  }

  // Adds the listing's results to the audit rung. The listing must end before timing begins.
  Result<void> join_listing() {
    if (!listing_.valid()) return {};
    CG_TRY(AuditOutcome outcome, listing_.get());
    RungReport& report = verdict_.rungs[size_t(Rung::audit)];
    RungEnd end = note_audit(std::move(outcome), report.result, verdict_);
    if (report.result != RungResult::skipped) report.detail = sanitize(end.detail, 400);
    return {};
  }

  Result<RungEnd> time(RungResult& result) {
    CG_CHECK(join_listing());
    if (verdict_.audit) prepared_.note_audit(*verdict_.audit);
    services_.runner->settle(ctx_);  // GPU contexts that start or end would disturb the times
    if (services_.official) services_.official->make_room(task_);
    CG_TRY(ShapesTimed timed, time_shapes(prepared_, [&](const PreparedShape& shape) {
             return services_.on_gpu() ? measure(shape) : model(shape);
           }));
    TimingOutcome& outcome = timed.outcome;
    official_timing_ = std::move(timed.official);
    result = outcome.result;
    append(verdict_.marks, outcome.marks);
    verdict_.timing = outcome.timing;
    kernels_ = std::move(outcome.kernels);
    if (outcome.timing && !services_.on_gpu())
      verdict_.feedback.bottleneck = bottleneck_text(kernels_, official_timing_->floor_ns);
    return outcome.end;
  }

  Result<TimingOutcome> model(const PreparedShape& shape) {
    CG_TRY(TimingOutcome out, time_official(evaluation(), {.coverage = &coverage_,
                                                           .program_id = verdict_.program_id,
                                                           .lines = wanted(request_, Rung::profile),
                                                           .shape = &shape}));
    modelled_.insert(shape.shape->name);
    note_not_compared(*shape.shape, out.official_not_compared, verdict_);
    return out;
  }

  Result<TimingOutcome> measure(const PreparedShape& shape) {
    MeasureOptions options{.program_id = verdict_.program_id,
                           .set = set_of(official_, shape),
                           .against = address_of(request_.against),
                           .shape = &shape};
    options.drop_losers = timed_shapes(prepared_).size() == 1;
    if (!options.drop_losers) progress_("timing: " + shape.shape->name);
    return measure_official(evaluation(), options);
  }

  Result<RungEnd> profile(RungResult& result) {
    if (kernels_.empty())
      return result = RungResult::skipped, rung_passed("no profile: nothing was timed");
    if (services_.on_gpu()) {
      CG_TRY(GpuProfile made, profile_on_gpu(evaluation(), {.program_id = verdict_.program_id,
                                                            .timed = kernels_,
                                                            .timing = address_of(official_timing_),
                                                            .audit = address_of(verdict_.audit)}));
      verdict_.profile = std::move(made.profile);
      profiler_ = std::move(made.grade);
    } else {
      verdict_.profile = simulated_profile(kernels_, task_, services_.gpu);
    }
    return note_profile(official_timing_ ? official_timing_->floor_ns : 0, verdict_);
  }

  void finish(Clock::time_point start) {
    note_builds(prepared_, verdict_);
    verdict_.sandbox = grade_of(services_, prepared_, profiler_);
    if (verdict_.status == Status::correct) {
      if (!services_.on_gpu()) note_shapes_without_timing(request_, task_, modelled_, verdict_);
      verdict_.feedback.headline = headline_of(verdict_);
    }
    verdict_.elapsed = Clock::now() - start;
    log_times(verdict_, services_.runner->take_waited(), thread_time() - cpu_start_);
  }

  Nanoseconds cpu_start_ = thread_time();
  const Context& ctx_;
  const Services& services_;
  const Task& task_;
  const EvaluateRequest& request_;
  const Progress& progress_;
  Prepared prepared_;
  Verdict verdict_;
  std::vector<KernelProfile> kernels_;
  std::optional<sandbox::Grade> profiler_;
  std::optional<BinaryAuditor> auditor_;
  std::future<Result<AuditOutcome>> listing_;  // destroyed before the auditor that it uses
  Coverage coverage_;
  std::map<std::string, GpuSetPtr> official_;  // the set that judged each large timed shape
  std::optional<Timing> official_timing_;      // the official shape's time, for its profile
  std::set<std::string> modelled_;  // names of the shapes that the timing step ran on a simulator
};

}  // namespace

Verdict begin_verdict(const Services& services, const Task& task, std::string program) {
  Verdict out;
  out.program_id = std::move(program);
  out.task_id = task.id;
  out.math_mode = mode_text(task);
  out.device = services.device.name;
  out.gpu = services.identity.gpu;
  out.driver = services.identity.driver;
  out.status = Status::correct;
  return out;
}

SandboxGrade weakest(const std::vector<sandbox::Grade>& grades) {
  SandboxGrade out;
  bool full = !grades.empty(), any = false;
  for (const sandbox::Grade& g : grades) {
    full = full && g.label == Protection::full;
    any = any || g.label != Protection::none;
    for (const auto& [what, held] : g.held) {
      auto [at, fresh] = out.held.emplace(what, held);
      if (!fresh) at->second = at->second && held;
    }
  }
  out.label = full ? Protection::full : any ? Protection::partial : Protection::none;
  return out;
}

std::string with_not_compared(const std::string& headline, const Verdict& verdict) {
  const std::string note = sanitize(not_compared_text(verdict), kMostNotCompared);
  if (note.empty()) return headline;
  return sanitize(headline, kMostHeadline) + "; " + note;
}

Result<Verdict> climb(const Context& ctx, const Services& services, const Task& task,
                      const EvaluateRequest& request, const Progress& progress) {
  return Climber(ctx, services, task, request, progress).run();
}

}  // namespace cutegen::eval
