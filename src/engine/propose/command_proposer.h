// SPDX-License-Identifier: Apache-2.0
// The proposer of `--proposer CMD`: a user's own program that answers JSON lines.
//
// Contract (docs/proposer.md documents it for users): each question is one line with the whole run
// so far, each answer is one line. The command starts with the first question and ends with the
// proposer. After an unreadable answer the proposer sends the reason and asks again; a second one
// in a row is a user error.
//
// Example: auto p = make_command_proposer("python3 mine.py", task); p->answer(ctx, ask, run);
#pragma once

#include "engine/propose/proposer.h"

namespace cutegen::engine {

std::unique_ptr<Proposer> make_command_proposer(const std::string& line, const Task& task);
Json proposer_question(const search::Ask& ask, const RunView& run);
Result<Answer> answer_from_json(const Json& json, const RunView& run);

}  // namespace cutegen::engine
