// SPDX-License-Identifier: Apache-2.0
// The data of the events at the end of a run (`profiled`, `certified`) and after it (`imported`),
// as JSON and back.
//
// Contract: store/events.cpp lists the fields. What is read is checked like everything of a
// journal; an imported step says where its figures come from.
//
// Example: journal->append(EventType::certified, to_json(certified));
#pragma once

#include "engine/record/view.h"

namespace cutegen::engine {

Json to_json(const BestProfile& profiled);
Result<BestProfile> best_profile_from(const Json& data);
Json to_json(const BestCertificate& certified);
Result<BestCertificate> best_certificate_from(const Json& data);
// Of a step with `imported` and a verdict.
Json imported_data(const RunStep& step);
Result<RunStep> imported_step_from(ObjectReader& r);

}  // namespace cutegen::engine
