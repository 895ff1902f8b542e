// SPDX-License-Identifier: Apache-2.0
// The protocol between engine and evaluator (schema cutegen.evaluator.v1): JSON forms.
//
// Requests: hello {options}, open_task {file, asked}, evaluate {task_id, program, up_to, profile},
// certify {task_id, program, baselines}, foreign {task_id, file}, baselines {task_id, baselines},
// close_task {task_id}, expect_children {task_id, request, count}. The evaluator answers each
// request with one reply of the same type, or {"error": ...}. Before the reply of a long request it
// may send any number of {"type": "progress", "text": ...}. When the channel ends, the evaluator
// cancels its work. docs/evaluation.md lists the fields.
//
// Example: channel.send(ctx, message("open_task", {{"file", path}}));
#pragma once

#include "base/fields.h"
#include "eval/api/client.h"

namespace cutegen::eval {

using cutegen::to_json;

void fields(Fields& v, EvaluatorOptions& options);
void fields(Fields& v, Admission& admission);
void fields(Fields& v, OpenedTask& task);
void fields(Fields& v, EvaluateRequest& request);
void fields(Fields& v, CertifyRequest& request);
void fields(Fields& v, ForeignRequest& request);
void fields(Fields& v, BaselinesRequest& request);

namespace protocol {

inline constexpr const char* kSchema = "cutegen.evaluator.v1";
inline constexpr const char* kProgress = "progress";  // type of the messages that precede a reply
inline constexpr int kMostTasks = 64, kMostSharing = 64;

// `body` with schema and type added in front.
Json message(const std::string& type, const Json& body);
// The type of a message; an error if its schema is another one.
Result<std::string> type_of(const Json& message);

// The times in the reply of `baselines`.
Result<std::vector<BaselineTime>> baseline_times_from_json(const Json& reply);

}  // namespace protocol
}  // namespace cutegen::eval
