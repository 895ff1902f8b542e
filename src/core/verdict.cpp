// SPDX-License-Identifier: Apache-2.0
#include "core/verdict.h"

#include <algorithm>

#include "base/fields.h"

namespace cutegen {
namespace {

constexpr const char* kSchema = "cutegen.verdict.v1";
constexpr const char* kForeign = "foreign:";  // id prefix of third-party solutions: never certified

// A third-party solution carries the label "foreign", so that nobody mistakes it for a kernel
// program.
void label_field(Fields& v, const Verdict& x) {
  const std::string expected = x.program_id.starts_with(kForeign) ? "foreign" : "";
  std::string label = v.reading() ? "" : expected;
  v("label", label, field::if_set);
  v.check(label == expected, "label", "the label does not belong to the program_id");
}

}  // namespace

Names<Status> enum_names(Status) {
  static constexpr Name<Status> names[] = {{Status::correct, "correct"},
                                           {Status::failed, "failed"},
                                           {Status::rejected, "rejected"},
                                           {Status::unsupported, "unsupported"},
                                           {Status::aborted, "aborted"}};
  return names;
}

Names<Rung> enum_names(Rung) {
  static constexpr Name<Rung> names[] = {
      {Rung::lint, "lint"},      {Rung::compile, "compile"},         {Rung::audit, "audit"},
      {Rung::load, "load"},      {Rung::correctness, "correctness"}, {Rung::timing, "timing"},
      {Rung::profile, "profile"}};
  return names;
}

Names<Gate> enum_names(Gate) {
  static constexpr Name<Gate> names[] = {
      {Gate::element, "element"}, {Gate::rms, "rms"}, {Gate::bias, "bias"}, {Gate::user, "user"}};
  return names;
}

Names<RungResult> enum_names(RungResult) {
  static constexpr Name<RungResult> names[] = {{RungResult::passed, "passed"},
                                               {RungResult::failed, "failed"},
                                               {RungResult::skipped, "skipped"}};
  return names;
}

Result<Rung> rung_from(const std::string& name) {
  return from_name<Rung>(name, "rung");
}

int exit_code(Status status) {
  switch (status) {
    case Status::correct:
      return kExitOk;
    case Status::failed:
      return kExitFailed;
    case Status::rejected:
      return kExitRejected;
    case Status::unsupported:
      return kExitUnsupported;
    case Status::aborted:
      return kExitEnvironment;
  }
  return kExitInternal;
}

void fields(Fields& v, RungReport& r) {
  v("rung", r.rung);
  v("result", r.result);
  v("elapsed_ns", r.elapsed);
  v("detail", r.detail, field::may_lack);
}

void fields(Fields& v, Mismatch& m) {
  v("shape", m.shape);
  v("family", m.family);
  v("output", m.output);
  v("elements", m.elements);
  v("wrong", m.wrong);
  v("nan", m.nan);
  v("unwritten", m.unwritten);
  v("first", m.first, field::list(64) + field::at_least(0));
  v("pattern", m.pattern);
  v("worst_ratio", m.worst_ratio);
  v("gate", m.gate, field::written_if(m.gate != Gate::element));
}

void fields(Fields& v, Feedback& f) {
  v("headline", f.headline);
  v("detail", f.detail);
  v("mismatches", f.mismatches, field::list(1024));
  v("bottleneck", f.bottleneck);
  v("resources", f.resources, field::may_lack);
}

void fields(Fields& v, PairedRatio& p) {
  v("against", p.against);
  v("program_id", p.program_id, field::if_set);
  v("speedup", p.speedup);
  v("low", p.low);
  v("high", p.high);
  v("other_ns", p.other_ns);
  v("pairs", p.pairs, field::clamped(0, INT32_MAX));
  v("stopped", p.stopped);
}

void fields(Fields& v, ShapeTiming& t) {
  v("shape", t.shape);
  v("weight", t.weight);
  v("time_ns", t.time_ns);
  v("floor_ns", t.floor_ns);
  v("low_ns", t.low_ns);
  v("high_ns", t.high_ns);
  v("paired", t.paired, field::if_set + field::list(64));
}

void fields(Fields& v, ClockCheck& c) {
  v("claimed_ns", c.claimed_ns);
  v("seen_ns", c.seen_ns);
  v("agrees", c.agrees);
}

void fields(Fields& v, Timing& t) {
  v("origin", t.origin);
  v("shape", t.shape);
  v("time_ns", t.time_ns);
  v("floor_ns", t.floor_ns);
  v("low_ns", t.low_ns);
  v("high_ns", t.high_ns);
  v("roofline_ns", t.roofline_ns, field::if_set);
  v("reachable_ns", t.reachable_ns, field::if_set);
  v("bound_by", t.bound_by);
  v("samples", t.samples, field::if_set + field::clamped(0, INT32_MAX));
  v("sm_clock_hz", t.sm_clock_hz);
  v("sm_clock_least_hz", t.sm_clock_least_hz);
  v("paired", t.paired, field::if_set + field::list(64));
  v("clock", t.clock);
  v("shapes", t.shapes, field::if_set + field::list(256));
}

void fields(Fields& v, Compat& c) {
  v("rule", c.rule);
  v("elements", c.elements);
  v("wrong", c.wrong);
}

void fields(Fields& v, ErrorGate& g) {
  v("output", g.output);
  v("family", g.family);
  v("shape", g.shape);
  v("rms", g.rms);
  v("native_rms", g.native_rms);
  v("sequential_rms", g.sequential_rms);
  v("rms_limit", g.rms_limit);
  v("bias", g.bias);
  v("native_bias", g.native_bias);
  v("bias_limit", g.bias_limit);
}

void fields(Fields& v, Accuracy& a) {
  v("elements", a.elements);
  v("error", a.error);
  v("native_error", a.native_error);
  v("largest", a.largest);
  v("share", a.share);
  v("rms", a.rms);
  v("bias", a.bias);
}

void fields(Fields& v, SandboxGrade& g) {
  v.document("sandbox#");
  v("label", g.label);
  v("held", g.held);
}

std::string not_compared_text(const Verdict& verdict) {
  std::vector<std::pair<std::string, std::string>> shapes;  // the shapes of each reason
  auto add = [&](const std::string& why, const std::string& shape) {
    auto at = std::find_if(shapes.begin(), shapes.end(), [&](auto& s) { return s.first == why; });
    if (at == shapes.end())
      shapes.emplace_back(why, shape);
    else
      at->second += " and " + shape;
  };
  if (!verdict.official_not_compared.empty())
    add(verdict.official_not_compared, "the official shape");
  for (const auto& [shape, why] : verdict.weighted_not_compared)
    add(why, "the shape '" + shape + "'");
  std::string out;
  for (const auto& [why, names] : shapes)
    out += (out.empty() ? "" : "; ") + ("outputs of " + names + " were not compared (" + why + ")");
  return out;
}

std::optional<Status> status_in(const Json& verdict) {
  auto status = verdict.is_object() ? verdict.find("status") : verdict.end();
  if (status == verdict.end() || !status->is_string()) return std::nullopt;
  auto known = from_name<Status>(status->get<std::string>(), "status");
  return known ? std::optional(*known) : std::nullopt;
}

void fields(Fields& v, Verdict& x) {
  v.document("verdict#");
  v.schema(kSchema);
  v("status", x.status);
  v("program_id", x.program_id);
  v("task_id", x.task_id);
  v("device", x.device);
  v("build_ids", x.build_ids);
  v("policy_version", x.policy_version, field::between(0, INT32_MAX));
  v("rungs", x.rungs, field::list(64));
  v("feedback", x.feedback);
  label_field(v, x);
  v("math_mode", x.math_mode, field::if_set);
  v("gpu", x.gpu, field::if_set);
  v("driver", x.driver, field::if_set);
  v("timing", x.timing);
  v("profile", x.profile);
  v("audit", x.audit);
  v("sandbox", x.sandbox);
  v("skipped", x.skipped);
  v("official_not_compared", x.official_not_compared, field::if_set);
  v("weighted_not_compared", x.weighted_not_compared, field::if_set);
  v("sets_judged", x.sets_judged, field::between(0, INT32_MAX));
  v("compat", x.compat);
  v("accuracy", x.accuracy);
  v("marks", x.marks, field::if_set);
  v("elapsed_ns", x.elapsed);
}

}  // namespace cutegen
