// SPDX-License-Identifier: Apache-2.0
#include "core/certificate.h"

#include <algorithm>

namespace cutegen {

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

void fields(Fields& v, CertifiedMode& m) {
  v("mode", m.mode);
  v("time_ns", m.time_ns);
  v("low_ns", m.low_ns);
  v("high_ns", m.high_ns);
  v("against", m.against, field::list(64));
}

void fields(Fields& v, CertifiedShape& s) {
  v("shape", s.shape);
  v("weight", s.weight);
  v("floor_ns", s.floor_ns);
  v("modes", s.modes, field::list(16));
}

void fields(Fields& v, CertifiedBaseline& b) {
  v("kind", b.kind);
  v("accuracy", b.accuracy);
}

void fields(Fields& v, Certificate& c) {
  v.document("certificate#");
  v.schema("cutegen.certificate.v1");
  v("program_id", c.program_id);
  v("task_id", c.task_id);
  v("shape", c.shape);
  v("gpu", c.gpu);
  v("uuid", c.uuid);
  v("driver", c.driver);
  v("torch", c.torch);
  v("floor_ns", c.floor_ns);
  v("bound_by", c.bound_by);
  v("processes", c.processes, field::clamped(0, 1000));
  v("apart", c.apart);
  v("modes", c.modes, field::list(16));
  v("missing", c.missing);
  v("sandbox", c.sandbox);
  v("elapsed_ns", c.elapsed);
  v("shapes", c.shapes, field::if_set + field::list(256));
  v("baselines", c.baselines, field::if_set + field::list(64));
  v("cudnn", c.cudnn, field::if_set);
  v("sm_clock_hz", c.sm_clock_hz);
  v("sm_clock_least_hz", c.sm_clock_least_hz);
  v("memory_clock_hz", c.memory_clock_hz);
}

}  // namespace cutegen
