// SPDX-License-Identifier: Apache-2.0
#include "engine/record/end_data.h"

namespace cutegen::engine {
namespace {

void imported_form(Fields& v, RunStep& step) {
  if (v.reading()) step.verdict.emplace(), step.imported.emplace();
  std::string decision = to_string(step.decision);
  v.ignore_unknown();
  v("candidate", step.candidate);
  v("verdict", *step.verdict);
  v("entry", step.imported->entry);
  v("entry_sha256", step.imported->entry_sha256);
  v("device", step.imported->device);
  v("origin", step.imported->origin);
  v("decision", decision);
  v("reason", step.reason);
  if (!v.reading()) return;
  auto known = from_name<Decision>(decision, "decision");
  const bool accepted = known && *known == Decision::accepted;
  step.decision = accepted ? Decision::accepted : Decision::rejected;
}

}  // namespace

void fields(Fields& v, BestProfile& p) {
  v.document("profiled");
  v.ignore_unknown();
  v("candidate", p.candidate);
  v("profile", p.profile);
  v("why", p.why, field::written_if(!p.profile));
}

void fields(Fields& v, BestCertificate& c) {
  v.document("certified");
  v.ignore_unknown();
  v("candidate", c.candidate);
  v("certificate", c.certificate);
  v("why", c.why, field::written_if(!c.certificate));
}

Json imported_data(const RunStep& step) {
  CG_ASSERT(step.imported && step.verdict);
  return to_json_as(step, imported_form);
}

Result<RunStep> imported_step_from(const Json& data, const std::string& where) {
  return read_json_as<RunStep>(data, imported_form, where);
}

}  // namespace cutegen::engine
