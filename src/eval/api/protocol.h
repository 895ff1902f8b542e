// SPDX-License-Identifier: Apache-2.0
// The protocol between engine and evaluator (schema cutegen.evaluator.v1): JSON forms.
//
// Contract: both sides use the one list of fields of a message. The evaluator answers each request
// with one reply of the same type, or {"error": ...}. Before the reply of a long request it may
// send any number of messages of the types `progress` and `suite_news`. Readers ignore unknown
// fields of a message, but not of the values in it. When the channel ends, the evaluator cancels
// its work. docs/evaluation.md lists the fields.
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
// An error if the schema is another one, or if no message has this type.
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
// A request about an open task; its id is request.task.
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
// A message before the reply to `suite`.
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

// Schema and type, and then the fields of the body.
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
