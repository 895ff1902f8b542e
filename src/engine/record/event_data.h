// SPDX-License-Identifier: Apache-2.0
// Converts the data of the events `opened` (the run's settings) and `task` (the task as the
// evaluator describes it) to JSON and back.
//
// Contract: store/events.cpp lists the fields and the version of every event. With the data of
// `opened` and `task`, cutegen can resume, replay and report a run without the task file.
//
// Example: journal->append(EventType::task, task_data(opened));
//          CG_TRY(auto t, task_from(event.data));
#pragma once

#include "engine/record/settings.h"

namespace cutegen::engine {

using cutegen::to_json;

void fields(Fields& v, OptimizeSettings& settings);
Json task_data(const eval::OpenedTask& opened);
Result<eval::OpenedTask> task_from(const Json& data);

}  // namespace cutegen::engine
