// SPDX-License-Identifier: Apache-2.0
#include "engine/suite/row_text.h"

namespace cutegen::engine {

void run_row_fields(Fields& v, RunRow& r) {
  v("class", r.workload);
  v("status", r.status);
  v("reason", r.reason);
  v("first_ns", r.first_ns, field::or_null);
  v("best_ns", r.best_ns, field::or_null);
  v("time_origin", r.time_origin);
  v("floor_ns", r.floor_ns, field::or_null);
  v.also("floor_ratio", write_json(r.floor_ratio()));
  v("evaluations", r.evaluations);
  v("seconds", r.seconds);
  v("run", r.run);
  v("error_code", r.error_code);
  v("rewrites", r.rewrites, field::if_set);
  if (!r.baselines && !v.has("baselines")) return;
  v("math_mode", r.math_mode);
  v("baselines", r.baselines);
  v.also("gain", v.reading() ? Json() : write_json(r.hardest_gain()));
  v("diagnosis", r.diagnosis, field::if_set);
}

}  // namespace cutegen::engine
