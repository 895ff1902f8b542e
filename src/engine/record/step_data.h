// SPDX-License-Identifier: Apache-2.0
// The data of the events of single steps (`answered`, `drafted`, `evaluated`, `certifying`,
// `interrupted`), as JSON and back.
//
// Contract: the loop writes and RunView reads an event by the one list of fields of its struct.
// store/events.cpp lists the fields for people. A reader ignores unknown fields, because a later
// version may have written them. The actions of a strategy have their structs in search/strategy.h.
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
  std::optional<Candidate> candidate;  // if the outcome is `proposed`
  std::vector<TestCase> tests;
  std::vector<std::string> advice;
  std::string reason;               // if the outcome is `unusable` or `nothing`
  std::vector<std::string> reasks;  // why cutegen asked a model again
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

// Reads the data of an event. Errors name the event.
template <class T>
Result<T> data_of(const Event& event) {
  auto form = [](Fields& v, T& x) {
    v.ignore_unknown();
    fields(v, x);
  };
  return read_json_as<T>(event.data, form, "event " + std::to_string(event.seq));
}

}  // namespace cutegen::engine
