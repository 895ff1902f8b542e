// SPDX-License-Identifier: Apache-2.0
// The data of the events at the end of a run (`profiled`, `certified`) and after it (`imported`),
// as JSON and back.
//
// Contract: store/events.cpp lists the fields. Reading checks the data like all journal data. An
// imported step says where its figures come from.
//
// Example: journal->append(EventType::certified, to_json(certified));
#pragma once

#include "engine/record/view.h"

namespace cutegen::engine {

using cutegen::to_json;

void fields(Fields& v, BestProfile& profiled);
void fields(Fields& v, BestCertificate& certified);
// The step must have `imported` and a verdict.
Json imported_data(const RunStep& step);
Result<RunStep> imported_step_from(const Json& data, const std::string& where);

}  // namespace cutegen::engine
