// SPDX-License-Identifier: Apache-2.0
// Profiles the best program before a run ends and, on a GPU, certifies it, each within a time
// limit.
//
// Contract: wants_profile() and wants_certificate() are false if the run already has the result, so
// a resumed run repeats nothing. If profiling or certifying fails, the run continues, and the
// result contains the reason. Do not call profile_of() or certificate_of() after the Context has
// ended.
//
// Example: if (wants_certificate(view)) record(EventType::certified, to_json(certificate_of(...)));
#pragma once

#include "engine/record/view.h"
#include "engine/run/run.h"

namespace cutegen::engine {

// Whether to profile the best program. False for imported programs and programs with a profile.
bool wants_profile(const RunView& view);
bool wants_certificate(const RunView& view);

BestProfile profile_of(const std::string& candidate, Verdict verdict);

// A request with the standard baselines and the baselines of the task. Its time limit is the limit
// in the settings plus the minutes that the search did not use.
eval::CertifyRequest certify_request(const RunView& view);
Nanoseconds certify_limit(const RunView& view, int64_t clock_ms);
BestCertificate certificate_of(const Context& ctx, const RunView& view,
                               eval::EvaluatorClient& evaluator, Nanoseconds limit,
                               RunObserver& observer);
// The reason, if it is known in advance that certifying is impossible; otherwise empty.
std::string no_certificate(const OptimizeSettings& settings);

}  // namespace cutegen::engine
