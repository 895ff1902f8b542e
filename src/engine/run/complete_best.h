// SPDX-License-Identifier: Apache-2.0
// Profiles the best program before a run ends. On a GPU, also certifies the program, which means
// measuring its speedups over the baselines in fresh processes. Certifying has a time limit.
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

// Returns whether the settings ask for a profile of the best program. The result is false for an
// imported program, and for a program that has a profile.
bool wants_profile(const RunView& view);
bool wants_certificate(const RunView& view);

BestProfile profile_of(const std::string& candidate, Verdict verdict);

// Returns a request with the standard baselines and the task's baselines. The time limit is
// certify_limit(): the settings' minutes plus the minutes that the search did not use.
eval::CertifyRequest certify_request(const RunView& view);
Nanoseconds certify_limit(const RunView& view, int64_t clock_ms);
BestCertificate certificate_of(const Context& ctx, const RunView& view,
                               eval::EvaluatorClient& evaluator, Nanoseconds limit,
                               RunObserver& observer);
// Returns the reason if the settings exclude a certificate; otherwise an empty text.
std::string no_certificate(const OptimizeSettings& settings);

}  // namespace cutegen::engine
