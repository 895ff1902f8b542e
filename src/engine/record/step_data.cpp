// SPDX-License-Identifier: Apache-2.0
#include "engine/record/step_data.h"

namespace cutegen::engine {
namespace {

Result<search::Outcome> outcome_from(const std::string& name) {
  return from_name<search::Outcome>(name, "outcome").value_or(search::Outcome::nothing);
}

}  // namespace

void fields(Fields& v, Answered& x) {
  using search::Outcome;
  v.by_name("outcome", x.outcome, outcome_from);
  v("candidate", x.candidate);
  v.check(x.candidate || x.outcome != Outcome::proposed, "candidate", "missing field 'candidate'");
  v("tests", x.tests, field::if_set);
  v("advice", x.advice, field::if_set);
  const bool nothing = x.outcome == Outcome::unusable || x.outcome == Outcome::nothing;
  v("reason", x.reason, field::written_if(nothing));
  v("reasks", x.reasks, field::if_set);
}

void fields(Fields& v, Drafted& x) {
  v("candidate", x.candidate);
}

void fields(Fields& v, Evaluated& x) {
  v("candidate", x.candidate);
  v("verdict", x.verdict);
  v("elapsed_ms", x.elapsed_ms);
}

void fields(Fields& v, Certifying& x) {
  v("candidate", x.candidate);
  v("limit_ms", x.limit_ms, field::may_lack);
}

void fields(Fields& v, Interrupted& x) {
  v("reason", x.reason);
}

}  // namespace cutegen::engine
