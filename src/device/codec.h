// SPDX-License-Identifier: Apache-2.0
// JSON forms of the values that the evaluator and the runner (the process that executes programs)
// exchange: launches, module facts, settings and reports.
//
// Contract: reading limits every size and the length of every string, and refuses unknown fields,
// because the evaluator does not trust the runner. In JSON, bytes are hex digits.
//
// Example: CG_TRY(auto report, read_json<device::RunReport>(frame.body.at("report")));
#pragma once

#include "base/fields.h"
#include "device/device.h"

namespace cutegen {

void fields(Fields& v, ModuleFacts& facts);
void fields(Fields& v, DeviceFacts& facts);

namespace device {

using cutegen::to_json;

Json to_json(const PlanSteps& steps);
Result<PlanSteps> plan_steps_from_json(const Json& json);
void plan_form(Fields& v, PlanSteps& steps);  // for Fields::as
void fields(Fields& v, DeviceIdentity& identity);
void fields(Fields& v, RunSettings& settings);
void fields(Fields& v, TimeRequest& request);
void fields(Fields& v, RunReport& report);

}  // namespace device
}  // namespace cutegen
