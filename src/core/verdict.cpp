// SPDX-License-Identifier: Apache-2.0
#include "core/verdict.h"

#include <algorithm>

#include "base/result.h"
#include "core/codec.h"
#include "core/origin_names.h"

namespace cutegen {
namespace {

constexpr const char* kSchema = "cutegen.verdict.v1";
constexpr const char* kForeign = "foreign:";  // id prefix of third-party solutions: never certified

constexpr codec::Names<Status, 5> kStatuses{{{Status::correct, "correct"},
                                             {Status::failed, "failed"},
                                             {Status::rejected, "rejected"},
                                             {Status::unsupported, "unsupported"},
                                             {Status::aborted, "aborted"}}};
constexpr codec::Names<Rung, 7> kRungs{{{Rung::lint, "lint"},
                                        {Rung::compile, "compile"},
                                        {Rung::audit, "audit"},
                                        {Rung::load, "load"},
                                        {Rung::correctness, "correctness"},
                                        {Rung::timing, "timing"},
                                        {Rung::profile, "profile"}}};
constexpr codec::Names<RungResult, 3> kResults{{{RungResult::passed, "passed"},
                                                {RungResult::failed, "failed"},
                                                {RungResult::skipped, "skipped"}}};

Json rung_report_json(const RungReport& r) {
  return {{"rung", to_string(r.rung)},
          {"result", codec::name_of(kResults, r.result)},
          {"elapsed_ns", r.elapsed.count()},
          {"detail", r.detail}};
}

Result<RungReport> rung_report_from(const Json& json, const std::string& where) {
  ObjectReader r(json, where);
  RungReport out;
  CG_TRY(out.rung, codec::enum_field(r, "rung", kRungs));
  CG_TRY(out.result, codec::enum_field(r, "result", kResults));
  CG_TRY(int64_t elapsed, r.integer("elapsed_ns"));
  out.elapsed = Nanoseconds(elapsed);
  CG_TRY(out.detail, r.string_or("detail", ""));
  CG_CHECK(r.finish());
  return out;
}

Json mismatch_json(const Mismatch& m) {
  Json j{{"shape", m.shape},         {"family", m.family},
         {"output", m.output},       {"elements", m.elements},
         {"wrong", m.wrong},         {"nan", m.nan},
         {"unwritten", m.unwritten}, {"first", m.first},
         {"pattern", m.pattern},     {"worst_ratio", m.worst_ratio}};
  if (m.gate != "element") j["gate"] = m.gate;
  return j;
}

Result<Mismatch> mismatch_from(const Json& json, const std::string& where) {
  ObjectReader r(json, where);
  Mismatch m;
  CG_TRY(m.shape, r.string("shape"));
  CG_TRY(m.family, r.string("family"));
  CG_TRY(m.output, r.string("output"));
  CG_TRY(m.elements, r.integer("elements"));
  CG_TRY(m.wrong, r.integer("wrong"));
  CG_TRY(m.nan, r.integer("nan"));
  CG_TRY(m.unwritten, r.integer("unwritten"));
  CG_TRY(m.first,
         codec::list<std::vector<int64_t>>(r, "first", 64, [](const Json& j, const std::string& w) {
           return codec::integers(j, w, 0, 64);
         }));
  CG_TRY(m.pattern, r.string("pattern"));
  CG_TRY(m.worst_ratio, r.number("worst_ratio"));
  CG_TRY(m.gate, r.string_or("gate", "element"));
  CG_CHECK(r.finish());
  return m;
}

Json feedback_json(const Feedback& f) {
  return {{"headline", f.headline},
          {"detail", f.detail},
          {"mismatches", codec::array_of(f.mismatches, mismatch_json)},
          {"bottleneck", f.bottleneck},
          {"resources", f.resources}};
}

Result<Feedback> feedback_from(const Json& json, const std::string& where) {
  ObjectReader r(json, where);
  Feedback f;
  CG_TRY(f.headline, r.string("headline"));
  CG_TRY(f.detail, r.string("detail"));
  CG_TRY(f.mismatches, codec::list<Mismatch>(r, "mismatches", 1024, mismatch_from));
  CG_TRY(f.bottleneck, r.string("bottleneck"));
  CG_TRY(f.resources, r.string_or("resources", ""));
  CG_CHECK(r.finish());
  return f;
}

Json shape_timing_json(const ShapeTiming& t) {
  Json j{
      {"shape", t.shape}, {"weight", t.weight}, {"time_ns", t.time_ns}, {"floor_ns", t.floor_ns}};
  if (t.low_ns) j["low_ns"] = *t.low_ns;
  if (t.high_ns) j["high_ns"] = *t.high_ns;
  for (const PairedRatio& p : t.paired) j["paired"].push_back(to_json(p));
  return j;
}

Json timing_json(const Timing& t) {
  Json j{{"origin", to_string(t.origin)},
         {"shape", t.shape},
         {"time_ns", t.time_ns},
         {"floor_ns", t.floor_ns}};
  if (t.low_ns) j["low_ns"] = *t.low_ns;
  if (t.high_ns) j["high_ns"] = *t.high_ns;
  if (t.roofline_ns > 0) j["roofline_ns"] = t.roofline_ns;
  if (t.reachable_ns > 0) j["reachable_ns"] = t.reachable_ns;
  j["bound_by"] = t.bound_by;
  if (t.samples) j["samples"] = t.samples;
  if (t.sm_clock_hz) j["sm_clock_hz"] = *t.sm_clock_hz;
  if (t.sm_clock_least_hz) j["sm_clock_least_hz"] = *t.sm_clock_least_hz;
  for (const PairedRatio& p : t.paired) j["paired"].push_back(to_json(p));
  if (t.clock)
    j["clock"] = {{"claimed_ns", t.clock->claimed_ns},
                  {"seen_ns", t.clock->seen_ns},
                  {"agrees", t.clock->agrees}};
  if (!t.shapes.empty()) j["shapes"] = codec::array_of(t.shapes, shape_timing_json);
  return j;
}

Result<ClockCheck> clock_from(const Json& json, const std::string& where) {
  ObjectReader r(json, where);
  ClockCheck c;
  CG_TRY(c.claimed_ns, r.number("claimed_ns"));
  CG_TRY(c.seen_ns, r.number("seen_ns"));
  CG_TRY(c.agrees, r.boolean("agrees"));
  CG_CHECK(r.finish());
  return c;
}

Result<PairedRatio> paired_from(const Json& json, const std::string& where) {
  ObjectReader r(json, where);
  PairedRatio p;
  CG_TRY(p.against, r.string("against"));
  CG_TRY(p.program_id, r.string_or("program_id", ""));
  CG_TRY(p.speedup, r.number("speedup"));
  CG_TRY(p.low, r.number("low"));
  CG_TRY(p.high, r.number("high"));
  CG_TRY(p.other_ns, r.number("other_ns"));
  CG_TRY(int64_t pairs, r.integer("pairs"));
  p.pairs = static_cast<int>(std::clamp<int64_t>(pairs, 0, INT32_MAX));
  CG_TRY(p.stopped, r.string("stopped"));
  CG_CHECK(r.finish());
  return p;
}

Result<ShapeTiming> shape_timing_from(const Json& json, const std::string& where) {
  ObjectReader r(json, where);
  ShapeTiming t;
  CG_TRY(t.shape, r.string("shape"));
  CG_TRY(t.weight, r.number("weight"));
  CG_TRY(t.time_ns, r.number("time_ns"));
  CG_TRY(t.floor_ns, r.number("floor_ns"));
  if (r.has("low_ns")) {
    CG_TRY(t.low_ns, r.number("low_ns"));
  }
  if (r.has("high_ns")) {
    CG_TRY(t.high_ns, r.number("high_ns"));
  }
  CG_TRY(t.paired, codec::list<PairedRatio>(r, "paired", 64, paired_from));
  CG_CHECK(r.finish());
  return t;
}

Result<Timing> timing_from(const Json& json, const std::string& where) {
  ObjectReader r(json, where);
  Timing t;
  CG_TRY(t.origin, codec::enum_field(r, "origin", codec::kOrigins));
  CG_TRY(t.shape, r.string("shape"));
  CG_TRY(t.time_ns, r.number("time_ns"));
  CG_TRY(t.floor_ns, r.number("floor_ns"));
  if (r.has("low_ns")) {
    CG_TRY(t.low_ns, r.number("low_ns"));
  }
  if (r.has("high_ns")) {
    CG_TRY(t.high_ns, r.number("high_ns"));
  }
  CG_TRY(t.roofline_ns, r.number_or("roofline_ns", 0));
  CG_TRY(t.reachable_ns, r.number_or("reachable_ns", 0));
  CG_TRY(t.shapes, codec::list<ShapeTiming>(r, "shapes", 256, shape_timing_from));
  CG_TRY(t.bound_by, r.string("bound_by"));
  CG_TRY(int64_t samples, r.integer_or("samples", 0));
  t.samples = static_cast<int>(std::clamp<int64_t>(samples, 0, INT32_MAX));
  if (r.has("sm_clock_hz")) {
    CG_TRY(t.sm_clock_hz, r.number("sm_clock_hz"));
  }
  if (r.has("sm_clock_least_hz")) {
    CG_TRY(t.sm_clock_least_hz, r.number("sm_clock_least_hz"));
  }
  if (r.has("paired")) {
    CG_TRY(t.paired, codec::list<PairedRatio>(r, "paired", 64, paired_from));
  }
  if (r.has("clock")) {
    CG_TRY(Json clock, r.object("clock"));
    CG_TRY(t.clock, clock_from(clock, r.place("clock")));
  }
  CG_CHECK(r.finish());
  return t;
}

Json compat_json(const Compat& c) {
  return {{"rule", c.rule}, {"elements", c.elements}, {"wrong", c.wrong}};
}

Result<Compat> compat_from(const Json& json, const std::string& where) {
  ObjectReader r(json, where);
  Compat c;
  CG_TRY(c.rule, r.string("rule"));
  CG_TRY(c.elements, r.integer("elements"));
  CG_TRY(c.wrong, r.integer("wrong"));
  CG_CHECK(r.finish());
  return c;
}

Json gate_json(const ErrorGate& g) {
  return {{"output", g.output},
          {"family", g.family},
          {"shape", g.shape},
          {"rms", g.rms},
          {"native_rms", g.native_rms},
          {"sequential_rms", g.sequential_rms},
          {"rms_limit", g.rms_limit},
          {"bias", g.bias},
          {"native_bias", g.native_bias},
          {"bias_limit", g.bias_limit}};
}

Result<ErrorGate> gate_from(const Json& json, const std::string& where) {
  ObjectReader r(json, where);
  ErrorGate g;
  CG_TRY(g.output, r.string("output"));
  CG_TRY(g.family, r.string("family"));
  CG_TRY(g.shape, r.string("shape"));
  CG_TRY(g.rms, r.number("rms"));
  CG_TRY(g.native_rms, r.number("native_rms"));
  CG_TRY(g.sequential_rms, r.number("sequential_rms"));
  CG_TRY(g.rms_limit, r.number("rms_limit"));
  CG_TRY(g.bias, r.number("bias"));
  CG_TRY(g.native_bias, r.number("native_bias"));
  CG_TRY(g.bias_limit, r.number("bias_limit"));
  CG_CHECK(r.finish());
  return g;
}

Json accuracy_json(const Accuracy& a) {
  Json j{{"elements", a.elements},
         {"error", a.error},
         {"native_error", a.native_error},
         {"largest", a.largest},
         {"share", a.share}};
  if (a.rms) j["rms"] = gate_json(*a.rms);
  if (a.bias) j["bias"] = gate_json(*a.bias);
  return j;
}

Result<Accuracy> accuracy_from(const Json& json, const std::string& where) {
  ObjectReader r(json, where);
  Accuracy a;
  CG_TRY(a.elements, r.integer("elements"));
  CG_TRY(a.error, r.number("error"));
  CG_TRY(a.native_error, r.number("native_error"));
  CG_TRY(a.largest, r.number("largest"));
  CG_TRY(a.share, r.number("share"));
  for (auto [key, gate] : {std::pair{"rms", &a.rms}, std::pair{"bias", &a.bias}})
    if (r.has(key)) {
      CG_TRY(Json json_gate, r.object(key));
      CG_TRY(*gate, gate_from(json_gate, r.place(key)));
    }
  CG_CHECK(r.finish());
  return a;
}

Result<void> read_measurements(ObjectReader& r, Verdict& v) {
  if (r.has("compat")) {
    CG_TRY(Json compat, r.object("compat"));
    CG_TRY(v.compat, compat_from(compat, r.place("compat")));
  }
  if (r.has("accuracy")) {
    CG_TRY(Json accuracy, r.object("accuracy"));
    CG_TRY(v.accuracy, accuracy_from(accuracy, r.place("accuracy")));
  }
  if (r.has("marks")) {
    CG_TRY(v.marks, r.strings("marks"));
  }
  CG_TRY(v.rungs, codec::list<RungReport>(r, "rungs", 64, rung_report_from));
  CG_TRY(Json feedback, r.object("feedback"));
  CG_TRY(v.feedback, feedback_from(feedback, r.place("feedback")));
  if (r.has("timing")) {
    CG_TRY(Json timing, r.object("timing"));
    CG_TRY(v.timing, timing_from(timing, r.place("timing")));
  }
  if (r.has("profile")) {
    CG_TRY(Json profile, r.object("profile"));
    CG_TRY(v.profile, profile_from_json(profile));
  }
  if (r.has("audit")) {
    CG_TRY(Json audit, r.object("audit"));
    CG_TRY(v.audit, binary_audit_from_json(audit));
  }
  CG_TRY(Json sandbox, r.object("sandbox"));
  CG_TRY(v.sandbox, sandbox_grade_from_json(sandbox));
  return {};
}

}  // namespace

const char* to_string(Status status) {
  return codec::name_of(kStatuses, status);
}
const char* to_string(Rung rung) {
  return codec::name_of(kRungs, rung);
}
Result<Rung> rung_from(const std::string& name) {
  return codec::value_of(kRungs, name, "rung");
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

Json to_json(const PairedRatio& p) {
  Json j{{"against", p.against}};
  if (!p.program_id.empty()) j["program_id"] = p.program_id;
  j.update({{"speedup", p.speedup},
            {"low", p.low},
            {"high", p.high},
            {"other_ns", p.other_ns},
            {"pairs", p.pairs},
            {"stopped", p.stopped}});
  return j;
}

Result<PairedRatio> paired_ratio_from_json(const Json& json) {
  return paired_from(json, "paired#");
}

Json to_json(const SandboxGrade& g) {
  Json held = Json::object();
  for (const auto& [name, value] : g.held) held[name] = value;
  return {{"label", g.label}, {"held", held}};
}

Result<SandboxGrade> sandbox_grade_from_json(const Json& json) {
  ObjectReader r(json, "sandbox#");
  SandboxGrade g;
  CG_TRY(g.label, r.string("label"));
  CG_TRY(Json held, r.object("held"));
  ObjectReader h(held, r.place("held"));
  for (const auto& [name, value] : held.items()) {
    CG_TRY(g.held[name], h.boolean(name));
  }
  CG_CHECK(r.finish());
  return g;
}

Json to_json(const Verdict& v) {
  Json j{{"schema", kSchema},
         {"status", to_string(v.status)},
         {"program_id", v.program_id},
         {"task_id", v.task_id},
         {"device", v.device},
         {"build_ids", v.build_ids},
         {"policy_version", v.policy_version},
         {"rungs", codec::array_of(v.rungs, rung_report_json)},
         {"feedback", feedback_json(v.feedback)}};
  if (v.program_id.starts_with(kForeign)) j["label"] = "foreign";
  if (!v.math_mode.empty()) j["math_mode"] = v.math_mode;
  if (!v.gpu.empty()) j["gpu"] = v.gpu;
  if (!v.driver.empty()) j["driver"] = v.driver;
  if (v.timing) j["timing"] = timing_json(*v.timing);
  if (v.profile) j["profile"] = to_json(*v.profile);
  if (v.audit) j["audit"] = to_json(*v.audit);
  j["sandbox"] = to_json(v.sandbox);
  j["skipped"] = v.skipped;
  if (!v.official_not_compared.empty()) j["official_not_compared"] = v.official_not_compared;
  j["sets_judged"] = v.sets_judged;
  if (v.compat) j["compat"] = compat_json(*v.compat);
  if (v.accuracy) j["accuracy"] = accuracy_json(*v.accuracy);
  if (!v.marks.empty()) j["marks"] = v.marks;
  j["elapsed_ns"] = v.elapsed.count();
  return j;
}

Result<Verdict> verdict_from_json(const Json& json) {
  ObjectReader r(json, "verdict#");
  CG_CHECK(codec::check_schema(r, kSchema));
  Verdict v;
  CG_TRY(v.status, codec::enum_field(r, "status", kStatuses));
  CG_TRY(v.program_id, r.string("program_id"));
  CG_TRY(std::string label, r.string_or("label", ""));
  if (label != (v.program_id.starts_with(kForeign) ? "foreign" : ""))
    return user_error("the label does not belong to the program_id", r.place("label"));
  CG_TRY(v.task_id, r.string("task_id"));
  CG_TRY(v.device, r.string("device"));
  CG_TRY(v.gpu, r.string_or("gpu", ""));
  CG_TRY(v.driver, r.string_or("driver", ""));
  CG_TRY(v.build_ids, r.strings("build_ids"));
  CG_TRY(int64_t policy, r.integer("policy_version"));
  CG_TRY(v.skipped, r.strings("skipped"));
  CG_TRY(v.math_mode, r.string_or("math_mode", ""));
  CG_TRY(v.official_not_compared, r.string_or("official_not_compared", ""));
  CG_TRY(int64_t sets, r.integer("sets_judged"));
  CG_TRY(int64_t elapsed, r.integer("elapsed_ns"));
  if (policy < 0 || policy > INT32_MAX || sets < 0 || sets > INT32_MAX)
    return user_error("policy_version and sets_judged must be small counts", "verdict#");
  v.policy_version = static_cast<int>(policy);
  v.sets_judged = static_cast<int>(sets);
  v.elapsed = Nanoseconds(elapsed);
  CG_CHECK(read_measurements(r, v));
  CG_CHECK(r.finish());
  return v;
}

}  // namespace cutegen
