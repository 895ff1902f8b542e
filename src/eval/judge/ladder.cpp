// SPDX-License-Identifier: Apache-2.0
#include "eval/judge/ladder.h"

#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <future>
#include <optional>

#include "base/log.h"
#include "base/text.h"
#include "eval/diagnosis/bottleneck.h"
#include "eval/diagnosis/feedback.h"
#include "eval/judge/time_shapes.h"
#include "eval/profile/gpu_profile.h"
#include "eval/rungs/audit.h"
#include "eval/rungs/correctness.h"
#include "eval/rungs/measure.h"
#include "eval/rungs/official.h"
#include "eval/rungs/prepare.h"
#include "eval/rungs/timing.h"
#include "eval/sets/excerpts.h"

namespace cutegen::eval {
namespace {

constexpr size_t kMostDetail = 1500;
constexpr Rung kRungs[] = {Rung::lint,        Rung::compile, Rung::audit,  Rung::load,
                           Rung::correctness, Rung::timing,  Rung::profile};

// Processor time of this thread: what an evaluation costs besides waiting for others.
Nanoseconds thread_time() {
  timespec t{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return std::chrono::seconds(t.tv_sec) + Nanoseconds(t.tv_nsec);
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
        prepared_(request.program, task) {
    verdict_.program_id = program_id(request.program);
    verdict_.task_id = task.id;
    verdict_.math_mode = mode_text(task);
    verdict_.device = services.device.name;
    verdict_.gpu = services.identity.gpu;
    verdict_.driver = services.identity.driver;
    verdict_.status = Status::correct;
  }

  Result<Verdict> run() {
    auto start = Clock::now();
    bool going = true;
    for (Rung rung : kRungs) {
      if (!going || !wanted(rung)) {
        verdict_.rungs.push_back({rung, RungResult::skipped, Nanoseconds(0),
                                  going ? "not asked for" : "an earlier step failed"});
        continue;
      }
      CG_TRY(going, climb_one(rung));
    }
    if (auto joined = join_listing(); !joined) {
      CG_CHECK(ctx_.check("evaluating"));
      verdict_.status = Status::aborted;
      verdict_.feedback.headline = sanitize(joined.error().text(), 400);
    }
    finish(start);
    return std::move(verdict_);
  }

 private:
  Evaluation evaluation() const { return {ctx_, services_, task_, prepared_, progress_}; }

  bool wanted(Rung rung) const {
    if (rung == Rung::profile) return request_.profile || request_.up_to == Rung::profile;
    return rung <= request_.up_to || (request_.profile && rung <= Rung::timing);
  }

  // False when the ladder ends here.
  Result<bool> climb_one(Rung rung) {
    CG_CHECK(ctx_.check("evaluating"));
    progress_(to_string(rung));
    auto start = Clock::now();
    RungReport report{rung, RungResult::passed, Nanoseconds(0), {}};
    auto end = step(rung, report.result);
    report.elapsed = Clock::now() - start;
    if (!end) {
      CG_CHECK(ctx_.check("evaluating"));
      end = rung_ended(Status::aborted, end.error().text());
    }
    if (!end->passed) report.result = RungResult::failed;
    report.detail = end->passed ? end->detail : end->headline;
    report.detail = sanitize(report.detail, 400);
    if (report.result == RungResult::skipped)
      verdict_.skipped.push_back(fmt::format("{}: {}", to_string(rung), report.detail));
    verdict_.rungs.push_back(report);
    if (end->passed) return true;
    verdict_.status = end->status;
    verdict_.feedback.headline = sanitize(end->headline, 400);
    verdict_.feedback.detail = sanitize(end->detail, kMostDetail);
    verdict_.feedback.mismatches = std::move(end->mismatches);
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
        if (end && end->passed && verdict_.audit) prepared_.note_registers(*verdict_.audit);
        return end;
      }
      case Rung::correctness: {
        services_.pool->pause();  // until here it restocked; from now on it would disturb
        if (services_.excerpts) services_.excerpts->pause();
        if (services_.official) services_.official->pause();
        CorrectnessRecord record;
        auto end = check_correctness(evaluation(), verdict_.program_id, record);
        official_ = record.official;
        coverage_ = std::move(record.coverage);
        verdict_.sets_judged = record.sets_judged;
        verdict_.compat = record.compat;
        if (end && end->passed) verdict_.accuracy = record.accuracy;
        verdict_.marks.insert(verdict_.marks.end(), record.marks.begin(), record.marks.end());
        verdict_.skipped.insert(verdict_.skipped.end(), record.skipped.begin(),
                                record.skipped.end());
        return end;
      }
      case Rung::timing:
        return time(result);
      case Rung::profile:
        return profile(result);
    }
    CG_ASSERT(false);
  }

  Result<RungEnd> audit(RungResult& result) {
    auditor_.emplace(services_, task_, prepared_.images());
    CG_TRY(AuditOutcome outcome, auditor_->assemble(ctx_));
    if (services_.on_gpu()) prepared_.keep_code(std::move(outcome.code));
    if (!outcome.end.passed) return audited(std::move(outcome), result);
    if (!services_.precision_tells) {  // the listing may end the ladder
      CG_TRY(outcome, auditor_->list(ctx_));
      return audited(std::move(outcome), result);
    }
    result = outcome.result;
    verdict_.audit = std::move(outcome.audit);  // registers, for the next rungs
    listing_ = std::async(std::launch::async, [this] { return auditor_->list(ctx_); });
    return outcome.end;
  }

  RungEnd audited(AuditOutcome outcome, RungResult& result) {
    result = outcome.result;
    verdict_.marks.insert(verdict_.marks.end(), outcome.marks.begin(), outcome.marks.end());
    if (result != RungResult::skipped)
      for (const std::string& s : outcome.audit.skipped) verdict_.skipped.push_back("audit: " + s);
    verdict_.feedback.resources = summary_of(outcome.audit);
    verdict_.audit = std::move(outcome.audit);
    return outcome.end;
  }

  // What the listing adds to the rung audit. No timing runs meanwhile.
  Result<void> join_listing() {
    if (!listing_.valid()) return {};
    CG_TRY(AuditOutcome outcome, listing_.get());
    RungReport& report = verdict_.rungs[static_cast<size_t>(Rung::audit)];
    RungEnd end = audited(std::move(outcome), report.result);
    if (report.result != RungResult::skipped) report.detail = sanitize(end.detail, 400);
    return {};
  }

  Result<RungEnd> time(RungResult& result) {
    const bool measured = services_.on_gpu();
    CG_CHECK(join_listing());
    services_.runner->settle(ctx_);  // a context that is being made or ends would be timed too
    if (services_.official) services_.official->make_room(task_);
    CG_TRY(ShapesTimed timed, time_shapes(prepared_, [&](const PreparedShape& shape) {
             return measured ? measure(shape)
                             : time_official(evaluation(), {&coverage_, verdict_.program_id,
                                                            wanted(Rung::profile), &shape});
           }));
    TimingOutcome& outcome = timed.outcome;
    official_timing_ = std::move(timed.official);
    result = outcome.result;
    verdict_.marks.insert(verdict_.marks.end(), outcome.marks.begin(), outcome.marks.end());
    verdict_.timing = outcome.timing;
    verdict_.official_not_compared = outcome.official_not_compared;
    kernels_ = std::move(outcome.kernels);
    if (outcome.timing && !measured)
      verdict_.feedback.bottleneck = bottleneck_of(kernels_, official_timing_->floor_ns);
    return outcome.end;
  }

  Result<TimingOutcome> measure(const PreparedShape& shape) {
    MeasureOptions options{verdict_.program_id};
    if (auto set = official_.find(shape.shape->name); set != official_.end())
      options.set = set->second;
    if (request_.against) options.against = &*request_.against;
    options.shape = &shape;
    options.drop_losers = timed_shapes(prepared_).size() == 1;
    if (!options.drop_losers) progress_("timing: " + shape.shape->name);
    return measure_official(evaluation(), options);
  }

  // On a simulator the counters of the timing run are the profile: it needs no second run.
  Result<RungEnd> profile(RungResult& result) {
    if (kernels_.empty()) {
      result = RungResult::skipped;
      return rung_passed("no profile: nothing was timed");
    }
    if (services_.on_gpu()) {
      const Timing* timing = official_timing_ ? &*official_timing_ : nullptr;
      const BinaryAudit* audit = verdict_.audit ? &*verdict_.audit : nullptr;
      CG_TRY(GpuProfile made,
             profile_on_gpu(evaluation(), {verdict_.program_id, kernels_, timing, audit}));
      verdict_.profile = std::move(made.profile);
      profiler_ = std::move(made.grade);
    } else {
      verdict_.profile = Profile{kernels_, task_.official().name, "simulator", {}};
      for (KernelProfile& k : verdict_.profile->kernels) diagnose(k, services_.gpu);
    }
    return profiled();
  }

  RungEnd profiled() {
    const Profile& p = *verdict_.profile;
    const double floor = official_timing_ ? official_timing_->floor_ns : 0;
    verdict_.feedback.bottleneck = bottleneck_of(p.kernels, floor);
    double error = 0;
    for (const KernelProfile& k : p.kernels) error = std::max(error, k.sample_error);
    std::string detail = fmt::format("{} kernel{}, counters of the {}", p.kernels.size(),
                                     p.kernels.size() == 1 ? "" : "s", p.source);
    if (p.source == "simulator") detail += fmt::format(" +-{:.1f}%", 100 * error);
    if (!p.note.empty()) {
      verdict_.skipped.push_back("profile: " + p.note);
      detail += "; " + p.note;
    }
    return rung_passed(detail);
  }

  void finish(Clock::time_point start) {
    for (const KernelImage& image : prepared_.images())
      if (!image.build_id.empty()) verdict_.build_ids.push_back(image.build_id);
    for (const std::string& s : prepared_.skipped()) verdict_.skipped.push_back(s);
    std::vector<sandbox::Grade> grades{services_.runner->grade()};
    if (services_.simulator && !services_.simulator->grade().held.empty())
      grades.push_back(services_.simulator->grade());
    if (!prepared_.compile_grade().held.empty()) grades.push_back(prepared_.compile_grade());
    if (profiler_) grades.push_back(*profiler_);
    verdict_.sandbox = weakest(grades);
    if (verdict_.status == Status::correct) {
      verdict_.feedback.headline = verdict_.sets_judged
                                       ? fmt::format("correct on {} sets", verdict_.sets_judged)
                                       : "no step failed; correctness was not judged";
      if (verdict_.timing)
        verdict_.feedback.headline +=
            ", " + verdict_.rungs[static_cast<size_t>(Rung::timing)].detail;
      if (!verdict_.official_not_compared.empty())
        verdict_.feedback.headline =
            sanitize(fmt::format("{}; outputs of the official shape were not compared ({})",
                                 verdict_.feedback.headline, verdict_.official_not_compared),
                     400);
    }
    verdict_.elapsed = Clock::now() - start;
    auto ms = [](Nanoseconds t) { return static_cast<double>(t.count()) / 1e6; };
    Nanoseconds waited = services_.runner->take_waited();
    Nanoseconds compiling = verdict_.rungs[static_cast<size_t>(Rung::compile)].elapsed;
    log_info(
        "evaluation: {:.1f} ms: compile {:.1f}, runner {:.1f}, evaluator {:.1f}; processor time of "
        "this thread {:.1f} ms",
        ms(verdict_.elapsed), ms(compiling), ms(waited), ms(verdict_.elapsed - compiling - waited),
        ms(thread_time() - cpu_start_));
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
  std::future<Result<AuditOutcome>> listing_;  // ends before what it uses
  Coverage coverage_;
  std::map<std::string, OfficialSetPtr> official_;  // what each large timed shape was judged on
  std::optional<Timing> official_timing_;           // of the official shape alone, for its profile
};

}  // namespace

SandboxGrade weakest(const std::vector<sandbox::Grade>& grades) {
  SandboxGrade out;
  bool full = !grades.empty(), any = false;
  for (const sandbox::Grade& g : grades) {
    full = full && g.label == "full";
    any = any || g.label != "none";
    for (const auto& [what, held] : g.held) {
      auto [at, fresh] = out.held.emplace(what, held);
      if (!fresh) at->second = at->second && held;
    }
  }
  out.label = full ? "full" : any ? "partial" : "none";
  return out;
}

Result<Verdict> climb(const Context& ctx, const Services& services, const Task& task,
                      const EvaluateRequest& request, const Progress& progress) {
  return Climber(ctx, services, task, request, progress).run();
}

}  // namespace cutegen::eval
