// SPDX-License-Identifier: Apache-2.0
// JSON forms of the values that travel between the evaluator and the runner: launches, module
// facts, settings and reports.
//
// Contract: reading validates everything, because the evaluator does not trust the runner. It caps
// every size and every string, and refuses unknown fields. Bytes travel as hex.
//
// Example: CG_TRY(RunReport r, run_report_from_json(frame.body.at("report")));
#pragma once

#include "base/json.h"
#include "device/device.h"

namespace cutegen::device {

Json to_json(const PlanSteps& steps);
Result<PlanSteps> plan_steps_from_json(const Json& json);
Json to_json(const ModuleFacts& facts);
Result<ModuleFacts> module_facts_from_json(const Json& json);
Json to_json(const DeviceFacts& facts);
Result<DeviceFacts> device_facts_from_json(const Json& json);
Json to_json(const DeviceIdentity& identity);
Result<DeviceIdentity> device_identity_from_json(const Json& json);
const char* to_string(BufferContent content);
Result<BufferContent> buffer_content_from(const std::string& name);
Json to_json(const RunSettings& settings);
Result<RunSettings> run_settings_from_json(const Json& json);
Json to_json(const TimeRequest& request);
Result<TimeRequest> time_request_from_json(const Json& json);
Json to_json(const RunReport& report);
Result<RunReport> run_report_from_json(const Json& json);

}  // namespace cutegen::device
