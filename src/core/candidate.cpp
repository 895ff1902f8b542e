// SPDX-License-Identifier: Apache-2.0
#include "core/candidate.h"

#include "base/text.h"

namespace cutegen {
namespace {

Result<EventType> event_type_from(const std::string& name) {
  if (auto type = parse_event_type(name)) return *type;
  return user_error("unknown event type '" + sanitize(name, 40) + "'", {},
                    "read it with the version of cutegen that wrote it");
}

}  // namespace

void fields(Fields& v, Rewrite& r) {
  v.document("rewrite#");
  v("rule", r.rule);
  v("effect", r.effect);
  v("applied", r.applied);
}

void fields(Fields& v, Edit& e) {
  v.document("edit#");
  v("summary", e.summary);
  v("rationale", e.rationale, field::may_lack);
  v("origin", e.origin, field::may_lack);
  v("params", e.params, field::may_lack + field::object);
  v("rewrites", e.rewrites, field::if_set);
}

void fields(Fields& v, Candidate& c) {
  v.document("candidate#");
  v.schema("cutegen.candidate.v1");
  v("id", c.id);
  v("parent", c.parent);
  v("edit", c.edit);
  v("program", c.program);
}

void fields(Fields& v, Event& e) {
  v.document("event#");
  v("seq", e.seq, field::at_least(0));
  v.by_name("type", e.type, event_type_from);
  v("version", e.version, field::between(1, 1'000'000));
  v("data", e.data);
}

}  // namespace cutegen
