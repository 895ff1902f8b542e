// SPDX-License-Identifier: Apache-2.0
// Converts the data of events at the end of a run (`profiled`, `certified`) and after the run
// (`imported`) to JSON and back.
//
// Contract: store/events.cpp lists the fields of each event. Reading returns an error if a field is
// missing or has a wrong type. The data of `imported` name the device that produced the figures.
//
// Example: journal->append(EventType::certified, to_json(certified));
#pragma once

#include "engine/record/view.h"

namespace cutegen::engine {

using cutegen::to_json;

void fields(Fields& v, BestProfile& profiled);
void fields(Fields& v, BestCertificate& certified);
// The step must have values in its fields `imported` and `verdict`.
Json imported_data(const RunStep& step);
Result<RunStep> imported_step_from(const Json& data, const std::string& where);

}  // namespace cutegen::engine
