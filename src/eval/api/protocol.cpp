// SPDX-License-Identifier: Apache-2.0
#include "eval/api/protocol.h"

namespace cutegen::eval {
namespace {

constexpr size_t kMostBaselines = 16;
constexpr double kMostBuildSeconds = 3600;
constexpr int64_t kMostProcesses = 16;

void seconds_field(Fields& v, const char* key, double& seconds) {
  v(key, seconds);
  v.check(seconds > 0 && seconds <= kMostBuildSeconds, key,
          std::string(key) + " is not a time of at most an hour");
}

}  // namespace

namespace protocol {
namespace {

constexpr int kMostChildren = 1000;

// While reading: refuses a reply without `key`.
void must_have(Fields& v, const char* key, const char* error) {
  if (v.reading()) v.check(v.has(key), key, error);
}

}  // namespace

Names<MessageType> enum_names(MessageType) {
  static constexpr Name<MessageType> names[] = {
      {MessageType::hello, "hello"},           {MessageType::open_task, "open_task"},
      {MessageType::evaluate, "evaluate"},     {MessageType::certify, "certify"},
      {MessageType::foreign, "foreign"},       {MessageType::baselines, "baselines"},
      {MessageType::suite, "suite"},           {MessageType::suite_news, "suite_news"},
      {MessageType::close_task, "close_task"}, {MessageType::expect_children, "expect_children"},
      {MessageType::progress, "progress"}};
  return names;
}

Result<MessageType> type_of(const Json& message) {
  auto schema = message.find("schema"), type = message.find("type");
  if (schema == message.end() || *schema != kSchema)
    return world_error("the peer does not use the protocol cutegen.evaluator.v1",
                       "use programs of the same build");
  if (type == message.end() || !type->is_string()) return world_error("a message has no type");
  const auto name = type->get<std::string>();
  auto known = from_name<MessageType>(name, "type");
  if (!known) return user_error("the evaluator does not know the request '" + name + "'");
  return *known;
}

void fields(Fields& v, Hello& x) {
  v("options", x.options);
}

void fields(Fields& v, HelloReply& x) {
  must_have(v, "pid", "the evaluator did not send its hello");
  v("pid", x.pid);
}

void fields(Fields& v, OpenTask& x) {
  v("file", x.file);
  v("asked", x.asked, field::written_if(!x.asked.empty()));
}

void fields(Fields& v, OpenTaskReply& x) {
  must_have(v, "opened", "the evaluator's reply has no task");
  v("opened", x.opened);
}

void fields(Fields& v, ExpectChildren& x) {
  fields(v, x.parent);
  v("count", x.count, field::clamped(0, kMostChildren));
}

void fields(Fields& v, CloseTask& x) {
  v("task_id", x.task_id);
}

void fields(Fields& v, VerdictReply& x) {
  must_have(v, "verdict", "the evaluator's reply has no verdict");
  v("verdict", x.verdict);
}

void fields(Fields& v, CertificateReply& x) {
  must_have(v, "certificate", "the evaluator's reply has no certificate");
  v("certificate", x.certificate);
}

void fields(Fields& v, BaselinesReply& x) {
  v("times", x.times);
  v.check(x.times.size() <= kMostBaselines, "times",
          "the evaluator reports other baselines than requested");
}

void fields(Fields& v, MeasureSuite& x) {
  v("request", x.request);
}

void fields(Fields&, EmptyReply&) {}

void fields(Fields& v, NewsMessage& x) {
  v("news", x.news);
}

void fields(Fields& v, ProgressText& x) {
  v("text", x.text);
}

}  // namespace protocol

void fields(Fields& v, EvaluatorOptions& o) {
  v.document("options#");
  v.by_name("device", o.device, DeviceName::parse);
  v("python", o.python);
  v("require_sandbox", o.require_sandbox);
  v("use_cache", o.use_cache);
  v("runner_threads", o.runner_threads);
  v("tasks", o.tasks, field::may_lack + field::between(1, protocol::kMostTasks));
  v("sharing", o.sharing, field::may_lack + field::between(1, protocol::kMostSharing));
  v("read_cute_ahead", o.read_cute_ahead, field::may_lack);
  v("programs", o.programs, field::may_lack);
  v("suites", o.suites, field::if_set);
  v("log_level", o.log_level);
}

void fields(Fields& v, Admission& a) {
  v("admitted", a.admitted);
  v("lazy_answers_tried", a.lazy_answers_tried);
  v("passing", a.passing);
  v("families", a.families);
  v("remark", a.remark);
}

void fields(Fields& v, OpenedTask& t) {
  v.document("task#");
  v("task", t.task);
  v("admission", t.admission);
  v("floor_ns", t.floor_ns);
  v("floor_bound_by", t.floor_bound_by);
  v("toolchain", t.toolchain);
  v("torch", t.torch);
  v("device", t.device);
  v("reachable_ns", t.reachable_ns, field::if_set);
  v("roofline_ns", t.roofline_ns, field::if_set);
  v("gpu", t.gpu, field::if_set);
  v("driver", t.driver, field::if_set);  // real GPUs only
  v("product", t.product, field::if_set);
  v("counters", t.counters, field::if_set);
  v("sandbox", t.sandbox);
  v("start", t.start);
}

void fields(Fields& v, EvaluateRequest& q) {
  v.document("request#");
  v("program", q.program);
  v.by_name("up_to", q.up_to, rung_from);
  v("profile", q.profile);
  v("against", q.against);
  v("tests", q.tests, field::if_set + field::most(kMostTestCases));
}

void fields(Fields& v, CertifyRequest& q) {
  v.document("certify#");
  v("program", q.program);
  v("baselines", q.baselines, field::most(kMostBaselines));
  v("processes", q.processes, field::between(1, kMostProcesses));
  v("precise", q.precise);
  v.check(q.precise > 0, "precise", "precise is not above 0");
}

void fields(Fields& v, ForeignRequest& q) {
  v.document("foreign#");
  v("name", q.answer.name);
  v("source", q.answer.source);
  v.by_name("up_to", q.up_to, rung_from);
  seconds_field(v, "seconds", q.seconds);
}

void fields(Fields& v, BaselinesRequest& q) {
  v.document("baselines#");
  v("baselines", q.baselines, field::most(kMostBaselines));
  seconds_field(v, "build_seconds", q.build_seconds);
}

}  // namespace cutegen::eval
