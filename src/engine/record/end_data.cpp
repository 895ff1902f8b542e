// SPDX-License-Identifier: Apache-2.0
#include "engine/record/end_data.h"

namespace cutegen::engine {
namespace {

constexpr Origin kOrigins[] = {Origin::measured, Origin::modelled, Origin::cached, Origin::imported,
                               Origin::skipped};

Result<Origin> origin_from(ObjectReader& r) {
  CG_TRY(std::string name, r.string("origin"));
  for (Origin origin : kOrigins)
    if (name == to_string(origin)) return origin;
  return user_error("unknown origin '" + name + "'", r.place("origin"));
}

}  // namespace

Json to_json(const BestProfile& p) {
  Json out{{"candidate", p.candidate}};
  if (p.profile)
    out["profile"] = to_json(*p.profile);
  else
    out["why"] = p.why;
  return out;
}

Result<BestProfile> best_profile_from(const Json& data) {
  ObjectReader r(data, "profiled");
  BestProfile out;
  CG_TRY(out.candidate, r.string("candidate"));
  CG_TRY(out.why, r.string_or("why", ""));
  if (!r.has("profile")) return out;
  CG_TRY(Json profile, r.object("profile"));
  CG_TRY(out.profile, profile_from_json(profile));
  return out;
}

Json to_json(const BestCertificate& c) {
  Json out{{"candidate", c.candidate}};
  if (c.certificate)
    out["certificate"] = to_json(*c.certificate);
  else
    out["why"] = c.why;
  return out;
}

Result<BestCertificate> best_certificate_from(const Json& data) {
  ObjectReader r(data, "certified");
  BestCertificate out;
  CG_TRY(out.candidate, r.string("candidate"));
  CG_TRY(out.why, r.string_or("why", ""));
  if (!r.has("certificate")) return out;
  CG_TRY(Json certificate, r.object("certificate"));
  CG_TRY(out.certificate, certificate_from_json(certificate));
  return out;
}

Json imported_data(const RunStep& step) {
  CG_ASSERT(step.imported && step.verdict);
  return {{"candidate", to_json(step.candidate)}, {"verdict", to_json(*step.verdict)},
          {"entry", step.imported->entry},        {"entry_sha256", step.imported->entry_sha256},
          {"device", step.imported->device},      {"origin", to_string(step.imported->origin)},
          {"decision", to_string(step.decision)}, {"reason", step.reason}};
}

Result<RunStep> imported_step_from(ObjectReader& r) {
  RunStep step;
  CG_TRY(Json candidate, r.object("candidate"));
  CG_TRY(step.candidate, candidate_from_json(candidate));
  CG_TRY(Json verdict, r.object("verdict"));
  CG_TRY(step.verdict, verdict_from_json(verdict));
  ImportedFrom from;
  CG_TRY(from.entry, r.string("entry"));
  CG_TRY(from.entry_sha256, r.string("entry_sha256"));
  CG_TRY(from.device, r.string("device"));
  CG_TRY(from.origin, origin_from(r));
  step.imported = std::move(from);
  CG_TRY(std::string decision, r.string("decision"));
  step.decision =
      decision == to_string(Decision::accepted) ? Decision::accepted : Decision::rejected;
  CG_TRY(step.reason, r.string("reason"));
  return step;
}

}  // namespace cutegen::engine
