// SPDX-License-Identifier: Apache-2.0
#include "wire/compiler_messages.h"

namespace cutegen::wire {
namespace {

constexpr const char* kSchema = "cutegen.compiler.v1";
constexpr size_t kMostParts = 512;

void head(Fields& v, const char* place, const char* type) {
  v.document(place, ErrorKind::world);
  v.schema(kSchema);
  std::string found = type;
  v("type", found);
  v.check(found == type, "type", "the message is not '" + std::string(type) + "'");
}

}  // namespace

Names<CompileMode> enum_names(CompileMode) {
  static constexpr Name<CompileMode> names[] = {
      {CompileMode::forked, "forked"}, {CompileMode::plain, "plain"}, {CompileMode::warm, "warm"}};
  return names;
}

void fields(Fields& v, CompilerReady& x) {
  head(v, "ready#", "ready");
  v("how", x.how);
  v("why", x.why);
  v("version", x.version);
  v("warm_up_ns", x.warm_up);
  v("headers", x.headers);
}

void fields(Fields& v, CompileCall& x) {
  head(v, "request#", "compile");
  v("source", x.source);
  v("memory_bytes", x.memory_bytes);
  v("timeout_ms", x.timeout_ms);
}

void fields(Fields& v, CompileReply& x) {
  v.document("reply#", ErrorKind::world);
  v("ok", x.ok);
  v("how", x.how);
  v("status", x.status);
  v("ptx", x.ptx);
  v("log", x.log);
  v("headers", x.headers);
  v("refused", x.refused);
  v("grade", x.grade);
  v("missing", x.missing);
  v("spent_ns", x.spent);
}

void fields(Fields& v, CompileDied& x) {
  v.document("reply#", ErrorKind::world);
  v("died", x.died);
  v("timed_out", x.timed_out, field::may_lack);
}

bool is_death(const Json& reply) {
  return reply.is_object() && reply.contains("died");
}

void fields(Fields& v, KeepCall& x) {
  head(v, "keep#", "keep");
  v("parts", x.parts);
  v.check(x.parts.size() >= 2 && x.parts.size() <= kMostParts, "parts",
          "a chain has from 2 to " + std::to_string(kMostParts) + " parts");
  v("memory_bytes", x.memory_bytes);
  v("timeout_ms", x.timeout_ms);
}

void fields(Fields& v, Parked& x) {
  head(v, "parked#", "parked");
  v("part", x.part);
  v("spent_ns", x.spent);
}

void fields(Fields& v, Kept&) {
  head(v, "kept#", "kept");
}

bool is_kept(const Json& message) {
  return read_json<Kept>(message).has_value();
}

}  // namespace cutegen::wire
