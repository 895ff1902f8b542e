// SPDX-License-Identifier: Apache-2.0
#include "core/profile.h"

#include "core/verdict.h"

namespace cutegen {

Names<Origin> enum_names(Origin) {
  static constexpr Name<Origin> names[] = {{Origin::measured, "measured"},
                                           {Origin::modelled, "modelled"},
                                           {Origin::cached, "cached"},
                                           {Origin::imported, "imported"},
                                           {Origin::skipped, "skipped"}};
  return names;
}

Names<Bound> enum_names(Bound) {
  static constexpr Name<Bound> names[] = {{Bound::unknown, "unknown"},
                                          {Bound::memory, "memory"},
                                          {Bound::compute, "compute"},
                                          {Bound::balanced, "balanced"},
                                          {Bound::latency, "latency"}};
  return names;
}

Names<CounterSource::Kind> enum_names(CounterSource::Kind) {
  using Kind = CounterSource::Kind;
  static constexpr Name<Kind> names[] = {{Kind::unknown, ""},
                                         {Kind::simulator, "simulator"},
                                         {Kind::resources, "resources"},
                                         {Kind::tool, "tool"}};
  return names;
}

std::string CounterSource::text() const {
  return kind == Kind::tool ? tool : to_string(kind);
}

CounterSource CounterSource::from(const std::string& text) {
  for (Kind kind : {Kind::unknown, Kind::simulator, Kind::resources})
    if (text == to_string(kind)) return {.kind = kind};
  return {.kind = Kind::tool, .tool = text};
}

void fields(Fields& v, LineProfile& l) {
  v("line", l.line);
  v("text", l.text);
  v("counters", l.counters);
}

// The default origin is modelled, so only other origins are written.
void fields(Fields& v, ProfileRemark& m) {
  v("kind", m.kind);
  v("line", m.line);
  v("message", m.message);
  v("origin", m.origin, field::written_if(m.origin != Origin::modelled));
}

void fields(Fields& v, Figure& f) {
  v("name", f.name);
  v("value", f.value);
  v("unit", f.unit);
}

void fields(Fields& v, Diagnosis& d) {
  v("bound", d.bound);
  v("unit", d.unit);
  v("origin", d.origin);
  v("summary", d.summary);
  v("evidence", d.evidence, field::list(64));
}

void fields(Fields& v, KernelProfile& k) {
  v("kernel", k.kernel);
  v("origin", k.origin);
  v("time_ns", k.time_ns);
  v("bound_by", k.bound_by);
  v("counters", k.counters);
  v("sampled_share", k.sampled_share, field::may_lack);
  v("sample_error", k.sample_error, field::may_lack);
  v("limited_by", k.limited_by, field::may_lack);
  v("lines", k.lines, field::if_set + field::list(4096));
  v("remarks", k.remarks, field::if_set + field::list(256));
  v("diagnosis", k.diagnosis, field::written_if(k.diagnosis.bound != Bound::unknown));
  v("modelled", k.modelled, field::if_set);
}

void fields(Fields& v, Profile& p) {
  v.document("profile#");
  v.schema("cutegen.profile.v1");
  v("shape", p.shape);
  std::string source = p.source.text();
  v("source", source, field::if_set);
  if (v.reading()) p.source = CounterSource::from(source);
  v("note", p.note, field::if_set);
  v("kernels", p.kernels, field::list(4096));
}

}  // namespace cutegen
