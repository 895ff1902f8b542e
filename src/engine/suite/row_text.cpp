// SPDX-License-Identifier: Apache-2.0
#include "engine/suite/row_text.h"

namespace cutegen::engine {

Json run_row_json(const RunRow& r) {
  Json out{{"class", r.workload},
           {"status", to_string(r.status)},
           {"reason", r.reason},
           {"first_ns", optional_json(r.first_ns)},
           {"best_ns", optional_json(r.best_ns)},
           {"time_origin", r.time_origin},
           {"floor_ns", optional_json(r.floor_ns)},
           {"floor_ratio", optional_json(r.floor_ratio())},
           {"evaluations", r.evaluations},
           {"seconds", r.seconds},
           {"run", r.run},
           {"error_code", r.error_code}};
  if (!r.baselines) return out;
  out["math_mode"] = r.math_mode;
  out["baselines"] = to_json(*r.baselines);
  auto gain = r.hardest_gain();
  out["gain"] = gain ? to_json(*gain) : Json(nullptr);
  if (!r.diagnosis.empty()) out["diagnosis"] = r.diagnosis;
  return out;
}

Result<void> read_run_row(ObjectReader& r, RunRow& row) {
  CG_TRY(row.workload, r.string("class"));
  CG_TRY(row.status, read_row_status(r, "status"));
  CG_TRY(row.reason, r.string("reason"));
  CG_TRY(row.first_ns, optional_number(r, "first_ns"));
  CG_TRY(row.best_ns, optional_number(r, "best_ns"));
  CG_TRY(row.time_origin, r.string("time_origin"));
  CG_TRY(row.floor_ns, optional_number(r, "floor_ns"));
  CG_TRY(row.evaluations, r.integer("evaluations"));
  CG_TRY(row.seconds, r.number("seconds"));
  CG_TRY(row.run, r.string("run"));
  CG_TRY(int64_t code, r.integer("error_code"));
  row.error_code = int(code);
  if (!r.has("baselines")) return {};
  CG_TRY(row.math_mode, r.string("math_mode"));
  CG_TRY(Json baselines, r.object("baselines"));
  CG_TRY(row.baselines, task_baselines_from_json(baselines));
  CG_TRY(row.diagnosis, r.string_or("diagnosis", ""));
  return {};
}

}  // namespace cutegen::engine
