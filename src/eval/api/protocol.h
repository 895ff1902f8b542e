// SPDX-License-Identifier: Apache-2.0
// The JSON messages between engine and evaluator (schema cutegen.evaluator.v1).
//
// Contract: engine and evaluator use the same fields() function for a message. The evaluator
// answers each request with one reply of the same type, or with {"error": ...}, and may send the
// messages `progress` and `suite_news` before the reply. A reader ignores unknown fields of the
// message itself, but refuses unknown fields of objects inside it. When the channel closes, the
// evaluator cancels its work. docs/protocols.md lists the messages' fields.
//
// Example: channel.send(ctx, message(MessageType::close_task, CloseTask{id}));
#pragma once

#include "base/fields.h"
#include "eval/api/client.h"

namespace cutegen::eval {

using cutegen::to_json;

void fields(Fields& v, EvaluatorOptions& options);
void fields(Fields& v, Admission& admission);
void fields(Fields& v, OpenedTask& task);
void fields(Fields& v, EvaluateRequest& request);
void fields(Fields& v, CertifyRequest& request);
void fields(Fields& v, ForeignRequest& request);
void fields(Fields& v, BaselinesRequest& request);

namespace protocol {

inline constexpr const char* kSchema = "cutegen.evaluator.v1";
inline constexpr int kMostTasks = 64, kMostSharing = 64;

enum class MessageType {
  hello,
  open_task,
  evaluate,
  certify,
  foreign,
  baselines,
  suite,
  suite_news,
  close_task,
  expect_children,
  progress
};
Names<MessageType> enum_names(MessageType);
// Returns an error if the schema or the type is unknown.
Result<MessageType> type_of(const Json& message);

struct Hello {
  EvaluatorOptions options;
};
struct HelloReply {
  int pid = 0;
};
struct OpenTask {
  std::string file;
  AskedAccuracy asked;
};
struct OpenTaskReply {
  OpenedTask opened;
};
// A request about an open task. In JSON, the task's id is outside the request.
template <class Request>
struct OnTask {
  Request request;
};
struct ExpectChildren {
  OnTask<EvaluateRequest> parent;
  int count = 0;
};
struct CloseTask {
  std::string task_id;
};
struct VerdictReply {
  Verdict verdict;
};
struct CertificateReply {
  Certificate certificate;
};
struct BaselinesReply {
  std::vector<BaselineTime> times;
};
struct MeasureSuite {
  SuiteRequest request;
};
struct EmptyReply {};
// The message `suite_news`, which the evaluator sends before the reply to `suite`.
struct NewsMessage {
  SuiteNews news;
};
struct ProgressText {
  std::string text;
};

void fields(Fields& v, Hello& x);
void fields(Fields& v, HelloReply& x);
void fields(Fields& v, OpenTask& x);
void fields(Fields& v, OpenTaskReply& x);
void fields(Fields& v, ExpectChildren& x);
void fields(Fields& v, CloseTask& x);
void fields(Fields& v, VerdictReply& x);
void fields(Fields& v, CertificateReply& x);
void fields(Fields& v, BaselinesReply& x);
void fields(Fields& v, MeasureSuite& x);
void fields(Fields& v, EmptyReply& x);
void fields(Fields& v, NewsMessage& x);
void fields(Fields& v, ProgressText& x);
template <class Request>
void fields(Fields& v, OnTask<Request>& x) {
  v("task_id", x.request.task);
  v("request", x.request);
}

// A message in JSON: schema and type, then the fields of `body`.
template <class Body>
struct Message {
  MessageType type;
  Body body;
};
template <class Body>
void fields(Fields& v, Message<Body>& x) {
  v.document("message#", ErrorKind::world);
  v.ignore_unknown();
  v.schema(kSchema);
  v("type", x.type);
  fields(v, x.body);
}

template <class Body>
Json message(MessageType type, Body body) {
  return cutegen::to_json(Message<Body>{.type = type, .body = std::move(body)});
}
template <class Body>
Result<Body> body_of(const Json& message) {
  CG_TRY(Message<Body> whole, read_json<Message<Body>>(message));
  return std::move(whole.body);
}

}  // namespace protocol
}  // namespace cutegen::eval
