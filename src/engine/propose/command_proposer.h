// SPDX-License-Identifier: Apache-2.0
// The proposer of `--proposer CMD`: a user's own program, which reads and writes lines of JSON.
//
// Contract: docs/proposer.md describes the protocol. A question is one line that contains the whole
// run so far, and an answer is one line. The proposer starts the command at the first question, and
// the proposer's destructor ends the command. If the proposer cannot read an answer, it sends the
// reason to the command and asks again. After two unreadable answers, the proposer returns a user
// error.
//
// Example: auto p = make_command_proposer("python3 mine.py", task); p->answer(ctx, ask, run);
#pragma once

#include "engine/propose/proposer.h"

namespace cutegen::engine {

std::unique_ptr<Proposer> make_command_proposer(const std::string& line, const Task& task);
Json proposer_question(const search::Ask& ask, const RunView& run);
Result<Answer> answer_from_json(const Json& json, const RunView& run);

}  // namespace cutegen::engine
