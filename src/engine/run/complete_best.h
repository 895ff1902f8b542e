// SPDX-License-Identifier: Apache-2.0
// What a run owes its best program before it ends: a profile, and on a GPU a certificate, each
// within its time.
//
// Contract: wants_*() say what is still owed, so that a resumed run makes nothing twice. Trouble is
// no error of the run: it is the reason that stands in place of the figures. profile_of() and
// certificate_of() are only read where the Context has not ended.
//
// Example: if (wants_certificate(view)) record(EventType::certified, to_json(certificate_of(...)));
#pragma once

#include "engine/record/view.h"
#include "engine/run/run.h"

namespace cutegen::engine {

// Where the best program was judged here, and has none yet.
bool wants_profile(const RunView& view);
bool wants_certificate(const RunView& view);

BestProfile profile_of(const std::string& candidate, Verdict verdict);

// The four baselines and the task's own; the limit is that of the settings, and what the search
// left of its minutes.
eval::CertifyRequest certify_request(const RunView& view);
Nanoseconds certify_limit(const RunView& view, int64_t clock_ms);
BestCertificate certificate_of(const Context& ctx, const RunView& view,
                               eval::EvaluatorClient& evaluator, Nanoseconds limit,
                               RunObserver& observer);
// Why nothing is certified, where that is known before it is tried; else empty.
std::string no_certificate(const OptimizeSettings& settings);

}  // namespace cutegen::engine
