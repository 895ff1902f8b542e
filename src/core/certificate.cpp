// SPDX-License-Identifier: Apache-2.0
#include "core/certificate.h"

#include <algorithm>
#include <array>

#include "core/codec.h"

namespace cutegen {
namespace {

constexpr const char* kSchema = "cutegen.certificate.v1";

Json mode_json(const CertifiedMode& m) {
  Json against = Json::array();
  for (const PairedRatio& p : m.against) against.push_back(to_json(p));
  return {{"mode", m.mode},
          {"time_ns", m.time_ns},
          {"low_ns", m.low_ns},
          {"high_ns", m.high_ns},
          {"against", std::move(against)}};
}

Result<PairedRatio> ratio_from(const Json& json, const std::string&) {
  return paired_ratio_from_json(json);
}

Result<CertifiedMode> mode_from(const Json& json, const std::string& where) {
  ObjectReader r(json, where);
  CertifiedMode m;
  CG_TRY(m.mode, r.string("mode"));
  CG_TRY(m.time_ns, r.number("time_ns"));
  CG_TRY(m.low_ns, r.number("low_ns"));
  CG_TRY(m.high_ns, r.number("high_ns"));
  CG_TRY(m.against, codec::list<PairedRatio>(r, "against", 64, ratio_from));
  CG_CHECK(r.finish());
  return m;
}

// The clocks, with their names in JSON.
template <typename C>
auto clocks_of(C& c) {
  return std::array{std::pair{"sm_clock_hz", &c.sm_clock_hz},
                    std::pair{"sm_clock_least_hz", &c.sm_clock_least_hz},
                    std::pair{"memory_clock_hz", &c.memory_clock_hz}};
}

Json shape_json(const CertifiedShape& s) {
  return {{"shape", s.shape},
          {"weight", s.weight},
          {"floor_ns", s.floor_ns},
          {"modes", codec::array_of(s.modes, mode_json)}};
}

Result<CertifiedShape> shape_from(const Json& json, const std::string& where) {
  ObjectReader r(json, where);
  CertifiedShape s;
  CG_TRY(s.shape, r.string("shape"));
  CG_TRY(s.weight, r.number("weight"));
  CG_TRY(s.floor_ns, r.number("floor_ns"));
  CG_TRY(s.modes, codec::list<CertifiedMode>(r, "modes", 16, mode_from));
  CG_CHECK(r.finish());
  return s;
}

Json baseline_json(const CertifiedBaseline& b) {
  return {{"kind", b.kind}, {"accuracy", to_json(b.accuracy)}};
}

Result<CertifiedBaseline> baseline_from(const Json& json, const std::string& where) {
  ObjectReader r(json, where);
  CertifiedBaseline b;
  CG_TRY(b.kind, r.string("kind"));
  CG_TRY(Json accuracy, r.object("accuracy"));
  CG_TRY(b.accuracy, baseline_accuracy_from_json(accuracy));
  CG_CHECK(r.finish());
  return b;
}

}  // namespace

const BaselineAccuracy* accuracy_of(const Certificate& c, const std::string& kind) {
  for (const CertifiedBaseline& b : c.baselines)
    if (b.kind == kind) return &b.accuracy;
  return nullptr;
}

const PairedRatio* hardest(const CertifiedMode& mode) {
  auto at = std::min_element(mode.against.begin(), mode.against.end(),
                             [](auto& a, auto& b) { return a.other_ns < b.other_ns; });
  return at == mode.against.end() ? nullptr : &*at;
}

Json to_json(const Certificate& c) {
  Json modes = Json::array();
  for (const CertifiedMode& m : c.modes) modes.push_back(mode_json(m));
  Json out{{"schema", kSchema},
           {"program_id", c.program_id},
           {"task_id", c.task_id},
           {"shape", c.shape},
           {"gpu", c.gpu},
           {"uuid", c.uuid},
           {"driver", c.driver},
           {"torch", c.torch},
           {"floor_ns", c.floor_ns},
           {"bound_by", c.bound_by},
           {"processes", c.processes},
           {"apart", c.apart},
           {"modes", std::move(modes)},
           {"missing", c.missing},
           {"sandbox", to_json(c.sandbox)},
           {"elapsed_ns", c.elapsed.count()}};
  if (!c.shapes.empty()) out["shapes"] = codec::array_of(c.shapes, shape_json);
  if (!c.baselines.empty()) out["baselines"] = codec::array_of(c.baselines, baseline_json);
  if (!c.cudnn.empty()) out["cudnn"] = c.cudnn;
  for (const auto& [key, hz] : clocks_of(c))
    if (*hz) out[key] = **hz;
  return out;
}

Result<Certificate> certificate_from_json(const Json& json) {
  ObjectReader r(json, "certificate#");
  Certificate c;
  CG_TRY(std::string schema, r.string("schema"));
  if (schema != kSchema)
    return user_error("a certificate of another version: " + schema, r.place("schema"));
  CG_TRY(c.program_id, r.string("program_id"));
  CG_TRY(c.task_id, r.string("task_id"));
  CG_TRY(c.shape, r.string("shape"));
  CG_TRY(c.gpu, r.string("gpu"));
  CG_TRY(c.uuid, r.string("uuid"));
  CG_TRY(c.driver, r.string("driver"));
  CG_TRY(c.torch, r.string("torch"));
  CG_TRY(c.floor_ns, r.number("floor_ns"));
  CG_TRY(c.bound_by, r.string("bound_by"));
  CG_TRY(int64_t processes, r.integer("processes"));
  c.processes = static_cast<int>(std::clamp<int64_t>(processes, 0, 1000));
  CG_TRY(c.apart, r.number("apart"));
  CG_TRY(c.modes, codec::list<CertifiedMode>(r, "modes", 16, mode_from));
  CG_TRY(c.missing, r.strings("missing"));
  CG_TRY(Json sandbox, r.object("sandbox"));
  CG_TRY(c.sandbox, sandbox_grade_from_json(sandbox));
  CG_TRY(int64_t elapsed, r.integer("elapsed_ns"));
  c.elapsed = Nanoseconds(elapsed);
  CG_TRY(c.shapes, codec::list<CertifiedShape>(r, "shapes", 256, shape_from));
  CG_TRY(c.baselines, codec::list<CertifiedBaseline>(r, "baselines", 64, baseline_from));
  CG_TRY(c.cudnn, r.string_or("cudnn", ""));
  for (const auto& [key, hz] : clocks_of(c))
    if (r.has(key)) {
      CG_TRY(*hz, r.number(key));
    }
  CG_CHECK(r.finish());
  return c;
}

}  // namespace cutegen
