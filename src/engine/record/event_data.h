// SPDX-License-Identifier: Apache-2.0
// The data of the events `opened` and `task`: settings and the opened task, as JSON and back.
//
// Contract: store/events.cpp lists fields and versions of every event. The data suffice to resume,
// replay and report a run without the task file.
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
