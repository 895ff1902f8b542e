// SPDX-License-Identifier: Apache-2.0
#include "engine/run/complete_best.h"

#include <fmt/format.h>

#include "base/text.h"
#include "eval/api/wanted_baselines.h"

namespace cutegen::engine {
namespace {

constexpr size_t kWhy = 600;

// The incumbent, if this run's own evaluator found it correct.
const RunStep* own_best(const RunView& view) {
  const RunStep* best = view.incumbent();
  const bool judged = best && !best->imported && best->verdict;
  return judged && best->verdict->status == Status::correct ? best : nullptr;
}

}  // namespace

bool wants_profile(const RunView& view) {
  const RunStep* best = own_best(view);
  const auto gain = view.gain();
  const bool slower = view.settings.profile_slower && gain && gain->speedup < 1;
  if (!best || best->verdict->profile || !(view.settings.profile_best || slower)) return false;
  return !view.profiled || view.profiled->candidate != view.best;
}

bool wants_certificate(const RunView& view) {
  if (!own_best(view) || !no_certificate(view.settings).empty()) return false;
  return !view.certified || view.certified->candidate != view.best;
}

BestProfile profile_of(const std::string& candidate, Verdict verdict) {
  BestProfile out{.candidate = candidate, .why = {}, .profile = std::move(verdict.profile)};
  if (verdict.status != Status::correct) {
    out.profile.reset();
    out.why = fmt::format("a second evaluation gave {}: {}", to_string(verdict.status),
                          sanitize(verdict.feedback.headline, kWhy));
  } else if (!out.profile) {
    out.why = "the evaluator counted nothing";
  }
  return out;
}

eval::CertifyRequest certify_request(const RunView& view) {
  eval::CertifyRequest request;
  request.program = view.incumbent()->candidate.program;
  request.task = view.task->task.id;
  if (const auto& own = view.task->task.baseline)
    if (auto named = eval::baselines_named({*own}); named && !named->front().target.empty())
      request.baselines.push_back(named->front());
  return request;
}

Nanoseconds certify_limit(const RunView& view, int64_t clock_ms) {
  const double left = view.settings.search.budget.minutes - double(clock_ms) / 60e3;
  const double minutes = view.settings.certify_minutes + std::max(0.0, left);
  return Nanoseconds(int64_t(minutes * 60e9));
}

BestCertificate certificate_of(const Context& ctx, const RunView& view,
                               eval::EvaluatorClient& evaluator, Nanoseconds limit,
                               RunObserver& observer) {
  BestCertificate out{.candidate = view.best, .why = {}, .certificate = {}};
  const Context limited = ctx.with_timeout(limit);
  auto made = evaluator.certify(limited, certify_request(view), [&](const std::string& line) {
    observer.on_progress("certifying " + view.best + ": " + line);
  });
  if (made)
    out.certificate = std::move(*made);
  else if (limited.done())
    out.why = fmt::format("not finished within {:.0f} s (give it more time with --certify-minutes)",
                          std::chrono::duration<double>(limit).count());
  else
    out.why = sanitize(made.error().text(), kWhy);
  return out;
}

std::string no_certificate(const OptimizeSettings& settings) {
  if (!settings.evaluator.device.is_gpu())
    return settings.evaluator.device.text() + " is a simulator, which cannot measure time";
  return settings.certify_minutes > 0 ? "" : "not requested (--certify-minutes 0)";
}

}  // namespace cutegen::engine
