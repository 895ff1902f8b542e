// SPDX-License-Identifier: Apache-2.0
// Converts the data of the events `answered`, `drafted`, `evaluated`, `certifying` and
// `interrupted` to JSON and back.
//
// Contract: each struct has one function fields(), with which the run loop writes and RunView reads
// the event's data. The file store/events.cpp documents the fields. Reading ignores unknown fields,
// because a later version may have written them. The structs of a strategy's actions are in
// search/strategy.h.
//
// Example: CG_CHECK(record(EventType::drafted, to_json(Drafted{candidate})));
//          CG_TRY(auto drafted, data_of<Drafted>(event));
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/fields.h"
#include "core/candidate.h"
#include "core/test_case.h"
#include "core/verdict.h"
#include "search/strategy.h"

namespace cutegen::engine {

struct Answered {
  search::Outcome outcome = search::Outcome::nothing;
  std::optional<Candidate> candidate;  // set if the outcome is `proposed`
  std::vector<TestCase> tests;
  std::vector<std::string> advice;
  std::string reason;               // set if the outcome is `unusable` or `nothing`
  std::vector<std::string> reasks;  // why the engine asked again, for each repeated question
};

struct Drafted {
  Candidate candidate;
};

struct Evaluated {
  std::string candidate;
  Verdict verdict;
  int64_t elapsed_ms = 0;
};

struct Certifying {
  std::string candidate;
  int64_t limit_ms = 0;
};

struct Interrupted {
  std::string reason;
};

void fields(Fields& v, Answered& x);
void fields(Fields& v, Drafted& x);
void fields(Fields& v, Evaluated& x);
void fields(Fields& v, Certifying& x);
void fields(Fields& v, Interrupted& x);

// Reads the data of an event. An error message contains the event's number.
template <class T>
Result<T> data_of(const Event& event) {
  auto form = [](Fields& v, T& x) {
    v.ignore_unknown();
    fields(v, x);
  };
  return read_json_as<T>(event.data, form, "event " + std::to_string(event.seq));
}

}  // namespace cutegen::engine
