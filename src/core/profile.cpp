// SPDX-License-Identifier: Apache-2.0
#include "core/profile.h"

#include "base/result.h"
#include "core/origin_names.h"
#include "core/verdict.h"

namespace cutegen {
namespace {

Json counters_json(const std::map<std::string, double>& counters) {
  Json out = Json::object();
  for (const auto& [name, value] : counters) out[name] = value;
  return out;
}

Result<std::map<std::string, double>> counters_from(ObjectReader& r,
                                                    const std::string& key = "counters") {
  CG_TRY(Json json, r.object(key));
  ObjectReader c(json, r.place(key));
  std::map<std::string, double> out;
  for (const auto& [name, value] : json.items()) {
    CG_TRY(out[name], c.number(name));
  }
  return out;
}

Json line_json(const LineProfile& l) {
  return {{"line", l.line}, {"text", l.text}, {"counters", counters_json(l.counters)}};
}

Result<LineProfile> line_from(const Json& json, const std::string& where) {
  ObjectReader r(json, where);
  LineProfile l;
  CG_TRY(int64_t line, r.integer("line"));
  l.line = static_cast<int>(line);
  CG_TRY(l.text, r.string("text"));
  CG_TRY(l.counters, counters_from(r));
  CG_CHECK(r.finish());
  return l;
}

// A kernel's figures are modelled by default, so only other origins are written.
Json remark_json(const ProfileRemark& m) {
  Json j{{"kind", m.kind}, {"line", m.line}, {"message", m.message}};
  if (m.origin != Origin::modelled) j["origin"] = to_string(m.origin);
  return j;
}

Result<ProfileRemark> remark_from(const Json& json, const std::string& where) {
  ObjectReader r(json, where);
  ProfileRemark m;
  CG_TRY(m.kind, r.string("kind"));
  CG_TRY(int64_t line, r.integer("line"));
  m.line = static_cast<int>(line);
  CG_TRY(m.message, r.string("message"));
  if (r.has("origin")) {
    CG_TRY(m.origin, codec::enum_field(r, "origin", codec::kOrigins));
  }
  CG_CHECK(r.finish());
  return m;
}

Json figure_json(const Figure& f) {
  return {{"name", f.name}, {"value", f.value}, {"unit", f.unit}};
}

Result<Figure> figure_from(const Json& json, const std::string& where) {
  ObjectReader r(json, where);
  Figure f;
  CG_TRY(f.name, r.string("name"));
  CG_TRY(f.value, r.number("value"));
  CG_TRY(f.unit, r.string("unit"));
  CG_CHECK(r.finish());
  return f;
}

Json diagnosis_json(const Diagnosis& d) {
  return {{"bound", d.bound},
          {"unit", d.unit},
          {"origin", to_string(d.origin)},
          {"summary", d.summary},
          {"evidence", codec::array_of(d.evidence, figure_json)}};
}

Result<Diagnosis> diagnosis_from(const Json& json, const std::string& where) {
  ObjectReader r(json, where);
  Diagnosis d;
  CG_TRY(d.bound, r.string("bound"));
  CG_TRY(d.unit, r.string("unit"));
  CG_TRY(d.origin, codec::enum_field(r, "origin", codec::kOrigins));
  CG_TRY(d.summary, r.string("summary"));
  CG_TRY(d.evidence, codec::list<Figure>(r, "evidence", 64, figure_from));
  CG_CHECK(r.finish());
  return d;
}

Json kernel_profile_json(const KernelProfile& k) {
  Json j{{"kernel", k.kernel},
         {"origin", to_string(k.origin)},
         {"time_ns", k.time_ns},
         {"bound_by", k.bound_by},
         {"counters", counters_json(k.counters)},
         {"sampled_share", k.sampled_share},
         {"sample_error", k.sample_error},
         {"limited_by", k.limited_by}};
  if (!k.lines.empty()) j["lines"] = codec::array_of(k.lines, line_json);
  if (!k.remarks.empty()) j["remarks"] = codec::array_of(k.remarks, remark_json);
  if (!k.diagnosis.bound.empty()) j["diagnosis"] = diagnosis_json(k.diagnosis);
  if (!k.modelled.empty()) j["modelled"] = counters_json(k.modelled);
  return j;
}

Result<KernelProfile> kernel_profile_from(const Json& json, const std::string& where) {
  ObjectReader r(json, where);
  KernelProfile k;
  CG_TRY(k.kernel, r.string("kernel"));
  CG_TRY(k.origin, codec::enum_field(r, "origin", codec::kOrigins));
  CG_TRY(k.time_ns, r.number("time_ns"));
  CG_TRY(k.bound_by, r.string("bound_by"));
  CG_TRY(k.counters, counters_from(r));
  CG_TRY(k.sampled_share, r.number_or("sampled_share", 1));
  CG_TRY(k.sample_error, r.number_or("sample_error", 0));
  CG_TRY(k.limited_by, r.string_or("limited_by", ""));
  if (r.has("lines")) {
    CG_TRY(k.lines, codec::list<LineProfile>(r, "lines", 4096, line_from));
  }
  if (r.has("remarks")) {
    CG_TRY(k.remarks, codec::list<ProfileRemark>(r, "remarks", 256, remark_from));
  }
  if (r.has("diagnosis")) {
    CG_TRY(Json diagnosis, r.object("diagnosis"));
    CG_TRY(k.diagnosis, diagnosis_from(diagnosis, r.place("diagnosis")));
  }
  if (r.has("modelled")) {
    CG_TRY(k.modelled, counters_from(r, "modelled"));
  }
  CG_CHECK(r.finish());
  return k;
}

}  // namespace

const char* to_string(Origin origin) {
  return codec::name_of(codec::kOrigins, origin);
}

Json to_json(const Profile& p) {
  Json j{{"schema", "cutegen.profile.v1"}, {"shape", p.shape}};
  if (!p.source.empty()) j["source"] = p.source;
  if (!p.note.empty()) j["note"] = p.note;
  j["kernels"] = codec::array_of(p.kernels, kernel_profile_json);
  return j;
}

Result<Profile> profile_from_json(const Json& json) {
  ObjectReader r(json, "profile#");
  CG_CHECK(codec::check_schema(r, "cutegen.profile.v1"));
  Profile p;
  CG_TRY(p.shape, r.string("shape"));
  CG_TRY(p.source, r.string_or("source", ""));
  CG_TRY(p.note, r.string_or("note", ""));
  CG_TRY(p.kernels, codec::list<KernelProfile>(r, "kernels", 4096, kernel_profile_from));
  CG_CHECK(r.finish());
  return p;
}

}  // namespace cutegen
