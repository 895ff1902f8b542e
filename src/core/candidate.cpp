// SPDX-License-Identifier: Apache-2.0
#include "core/candidate.h"

#include "base/text.h"

#include "core/codec.h"

namespace cutegen {

Json to_json(const Edit& edit) {
  return {{"summary", edit.summary},
          {"rationale", edit.rationale},
          {"origin", edit.origin},
          {"params", edit.params}};
}

Result<Edit> edit_from_json(const Json& json) {
  ObjectReader r(json, "edit#");
  Edit e;
  CG_TRY(e.summary, r.string("summary"));
  CG_TRY(e.rationale, r.string_or("rationale", ""));
  CG_TRY(e.origin, r.string_or("origin", ""));
  if (r.has("params")) {
    CG_TRY(e.params, r.object("params"));
  }
  CG_CHECK(r.finish());
  return e;
}

Json to_json(const Candidate& c) {
  Json j{{"schema", "cutegen.candidate.v1"}, {"id", c.id}};
  if (c.parent) j["parent"] = *c.parent;
  j["edit"] = to_json(c.edit);
  j["program"] = to_json(c.program);
  return j;
}

Result<Candidate> candidate_from_json(const Json& json) {
  ObjectReader r(json, "candidate#");
  CG_CHECK(codec::check_schema(r, "cutegen.candidate.v1"));
  Candidate c;
  CG_TRY(c.id, r.string("id"));
  if (r.has("parent")) {
    CG_TRY(c.parent, r.string("parent"));
  }
  CG_TRY(Json edit, r.object("edit"));
  CG_TRY(c.edit, edit_from_json(edit));
  CG_TRY(Json program, r.object("program"));
  CG_TRY(c.program, program_from_json(program));
  CG_CHECK(r.finish());
  return c;
}

Json to_json(const Event& event) {
  return {{"seq", event.seq},
          {"type", to_string(event.type)},
          {"version", event.version},
          {"data", event.data}};
}

Result<Event> event_from_json(const Json& json) {
  ObjectReader r(json, "event#");
  Event e;
  CG_TRY(e.seq, r.integer("seq"));
  CG_TRY(std::string type, r.string("type"));
  auto known = parse_event_type(type);
  if (!known)
    return user_error("unknown event type '" + sanitize(type, 40) + "'", r.place("type"),
                      "read it with the version of cutegen that wrote it");
  e.type = *known;
  CG_TRY(int64_t version, r.integer("version"));
  if (e.seq < 0) return user_error("seq must not be negative", r.place("seq"));
  if (version < 1 || version > 1'000'000)
    return user_error("not a version number", r.place("version"));
  e.version = static_cast<int>(version);
  CG_TRY(e.data, r.any("data"));
  CG_CHECK(r.finish());
  return e;
}

}  // namespace cutegen
