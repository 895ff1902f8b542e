// SPDX-License-Identifier: Apache-2.0
#include "device/messages.h"

namespace cutegen::device {
namespace {

constexpr const char* kSchema = "cutegen.runner.v1";
constexpr int64_t kMostModuleBytes = int64_t{256} << 20;
constexpr FieldRule kModuleBytes = field::between(0, kMostModuleBytes);

void begin(Fields& v, const char* place) {
  v.document(place, ErrorKind::world);
  v.schema(kSchema);
}

void type_field(Fields& v, const char* type) {
  std::string found = type;
  v("type", found);
  v.check(found == type, "type", "the message is not '" + std::string(type) + "'");
}

// The fields of a message that begins with its type. `place`: what errors name.
void head(Fields& v, const char* place, const char* type) {
  begin(v, place);
  type_field(v, type);
}

}  // namespace

Names<CallType> enum_names(CallType) {
  static constexpr Name<CallType> names[] = {
      {CallType::open, "open"},      {CallType::load, "load"}, {CallType::share, "share"},
      {CallType::run, "run"},        {CallType::time, "time"}, {CallType::read, "read"},
      {CallType::release, "release"}};
  return names;
}

Names<ReportType> enum_names(ReportType) {
  static constexpr Name<ReportType> names[] = {{ReportType::ran, "ran"},
                                               {ReportType::timed, "timed"}};
  return names;
}

Result<CallType> call_type(const Json& call) {
  auto schema = call.find("schema"), type = call.find("type");
  if (schema == call.end() || *schema != kSchema || type == call.end() || !type->is_string())
    return world_error("a request of another protocol reached the runner");
  auto known = from_name<CallType>(type->get<std::string>(), "type");
  if (!known) return world_error("the runner does not know this request");
  return *known;
}

void fields(Fields& v, OpenCall& c) {
  head(v, "open#", "open");
  v.by_name("device", c.device, DeviceName::parse);
  v("profiled", c.profiled, field::if_set);
}

// The order of the fields is the protocol's: the type comes third.
void fields(Fields& v, Opened& r) {
  begin(v, "opened#");
  v("locked", r.locked);
  v("missing", r.missing, field::may_lack);
  type_field(v, "opened");
  v("facts", r.facts);
  v("identity", r.identity);
}

void fields(Fields& v, LoadCall& c) {
  head(v, "load#", "load");
  v("bytes", c.bytes, kModuleBytes);
  v("code_bytes", c.code_bytes, field::may_lack + kModuleBytes);
}

void fields(Fields& v, Loaded& r) {
  head(v, "loaded#", "loaded");
  v("facts", r.facts);
}

void fields(Fields& v, ShareCall& c) {
  head(v, "share#", "share");
  v("first", c.first);
  v("buffers", c.buffers);
}

void fields(Fields& v, Shared&) {
  head(v, "shared#", "shared");
}

void fields(Fields& v, RunCall& c) {
  head(v, "run#", "run");
  v("buffers", c.buffers);
  v.as("plan", c.steps, plan_form);
  v("settings", c.settings);
  v("keep", c.keep, field::if_set);
}

void fields(Fields& v, TimeCall& c) {
  head(v, "time#", "time");
  v("request", c.request);
}

void fields(Fields& v, Ran& r) {
  begin(v, "ran#");
  v("type", r.type);
  v("report", r.report);
}

void fields(Fields& v, ReadCall& c) {
  head(v, "read#", "read");
  v("probes", c.probes);
}

void fields(Fields& v, HasRead&) {
  head(v, "read#", "read");
}

void fields(Fields& v, ReleaseCall&) {
  head(v, "release#", "release");
}

void fields(Fields& v, Released&) {
  head(v, "released#", "released");
}

}  // namespace cutegen::device
