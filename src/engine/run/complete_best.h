// SPDX-License-Identifier: Apache-2.0
// Completes the best program before a run ends: a profile, and on a GPU a certificate, each within
// its time.
//
// Contract: wants_*() say what is still missing, so a resumed run repeats nothing. A failure does
// not fail the run: the event has the reason instead of figures. Callers use profile_of() and
// certificate_of() only if the Context has not ended.
//
// Example: if (wants_certificate(view)) record(EventType::certified, to_json(certificate_of(...)));
#pragma once

#include "engine/record/view.h"
#include "engine/run/run.h"

namespace cutegen::engine {

// True if the best program was judged here and has no profile yet.
bool wants_profile(const RunView& view);
bool wants_certificate(const RunView& view);

BestProfile profile_of(const std::string& candidate, Verdict verdict);

// The request has the standard baselines and the task's own. Its time limit is the settings' limit
// plus the minutes that the search did not use.
eval::CertifyRequest certify_request(const RunView& view);
Nanoseconds certify_limit(const RunView& view, int64_t clock_ms);
BestCertificate certificate_of(const Context& ctx, const RunView& view,
                               eval::EvaluatorClient& evaluator, Nanoseconds limit,
                               RunObserver& observer);
// Why certifying is impossible, if that is known in advance; else empty.
std::string no_certificate(const OptimizeSettings& settings);

}  // namespace cutegen::engine
