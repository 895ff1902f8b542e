// SPDX-License-Identifier: Apache-2.0
#include "eval/api/client.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <set>
#include <string_view>

#include "base/log.h"
#include "eval/api/expect_children.h"
#include "eval/api/foreign_file.h"
#include "eval/api/protocol.h"
#include "sandbox/sandbox.h"
#include "wire/channel.h"

extern char** environ;

namespace cutegen::eval {
namespace {

constexpr int kMostRuns = 3;  // the first, and two more when the evaluator died under it

// The evaluator is trusted, but what it starts should find no secrets in its environment.
std::vector<std::string> evaluator_environment() {
  std::vector<std::string> out = sandbox::scrubbed_environment();
  for (char** e = environ; e && *e; ++e) {
    std::string_view entry(*e), name = entry.substr(0, entry.find('='));
    bool ours = name.starts_with("CUTEGEN_") || name.starts_with("XDG_");
    bool secret = name.find("KEY") != name.npos || name.find("TOKEN") != name.npos ||
                  name.find("SECRET") != name.npos || name.find("PASSW") != name.npos ||
                  name.find("CREDENTIAL") != name.npos;
    if (ours && !secret && std::find(out.begin(), out.end(), entry) == out.end())
      out.emplace_back(entry);
  }
  return out;
}

class Client : public EvaluatorClient, public TakesChildrenToCome {
 public:
  explicit Client(EvaluatorOptions options) : options_(std::move(options)) {}

  Result<void> launch(const Context& ctx) {
    channel_.close();
    child_ = sandbox::Child();
    CG_TRY(auto program, sister_program("cutegen-evaluator"));
    CG_TRY(auto pair, wire::Channel::make_pair());
    sandbox::SpawnSpec spec;
    spec.argv = {program.string()};
    spec.env = evaluator_environment();
    spec.cwd = std::filesystem::current_path().string();
    spec.fds = {{pair.second.fd(), 3}};
    spec.capture_stderr = false;
    CG_TRY(child_, sandbox::spawn(spec));
    channel_ = std::move(pair.first);
    pair.second.close();
    CG_TRY(Json reply, ask(ctx, "hello", {{"options", to_json(options_)}}, {}));
    auto pid = reply.find("pid");
    if (pid == reply.end() || !pid->is_number_integer())
      return world_error("the evaluator did not send its hello");
    pid_ = pid->get<int>();
    return {};
  }

  Result<OpenedTask> open_task(const Context& ctx, const std::filesystem::path& file) override {
    return open_task_as(ctx, file, {});
  }

  Result<OpenedTask> open_task_as(const Context& ctx, const std::filesystem::path& file,
                                  const AskedAccuracy& asked) override {
    const TaskFile opened{std::filesystem::absolute(file), asked};
    return repeat<OpenedTask>(ctx, [&] { return open_once(ctx, opened); });
  }

  Result<Verdict> evaluate(const Context& ctx, const EvaluateRequest& request,
                           const std::function<void(const std::string&)>& progress) override {
    const Json body = to_json(request);
    return repeat_verdict(ctx, "evaluate", request.task, program_id(request.program), body,
                          progress);
  }

  Result<Verdict> judge_foreign(const Context& ctx, const ForeignRequest& request,
                                const std::function<void(const std::string&)>& progress) override {
    const Json body = to_json(request);
    return repeat_verdict(ctx, "foreign", request.task, foreign_id(request.answer), body, progress);
  }

  Result<Certificate> certify(const Context& ctx, const CertifyRequest& request,
                              const std::function<void(const std::string&)>& progress) override {
    return repeat<Certificate>(ctx, [&]() -> Result<Certificate> {
      CG_TRY(std::string id, open_again(ctx, request.task));
      Json body{{"task_id", id}, {"request", to_json(request)}};
      CG_TRY(Json reply, ask(ctx, "certify", body, progress));
      auto certificate = reply.find("certificate");
      if (certificate == reply.end())
        return world_error("the evaluator's reply has no certificate");
      return read_json<Certificate>(*certificate);
    });
  }

  Result<std::vector<BaselineTime>> time_baselines(
      const Context& ctx, const BaselinesRequest& request,
      const std::function<void(const std::string&)>& progress) override {
    using Times = std::vector<BaselineTime>;
    return repeat<Times>(ctx, [&]() -> Result<Times> {
      CG_TRY(std::string id, open_again(ctx, request.task));
      Json body{{"task_id", id}, {"request", to_json(request)}};
      CG_TRY(Json reply, ask(ctx, "baselines", body, progress));
      return protocol::baseline_times_from_json(reply);
    });
  }

  // What is not open any more, or whose evaluator went away, is closed already.
  void close_task(const Context& ctx, const std::string& id) override {
    files_.erase(id);
    if (open_.erase(id) == 0 || !channel_) return;
    auto closed = ask(ctx, "close_task", {{"task_id", id}}, {});
    if (!closed) log_debug("a task was not closed: {}", closed.error().message);
  }

  void expect_children(const Context& ctx, const ChildrenToCome& children) override {
    if (!open_.contains(children.task) || !channel_) return;
    EvaluateRequest request;
    request.program = children.parent;
    const Json body{
        {"task_id", children.task}, {"request", to_json(request)}, {"count", children.count}};
    auto told = ask(ctx, "expect_children", body, {});
    if (!told) log_debug("the evaluator expects no children: {}", told.error().message);
  }

  int pid() const override { return pid_; }

 private:
  // The reply of one request; progress frames before it go to `progress`.
  Result<Json> ask(const Context& ctx, const std::string& type, const Json& body,
                   const std::function<void(const std::string&)>& progress) {
    auto reply = exchange(ctx, type, body, progress);
    bool ended = !reply && (reply.error().kind == ErrorKind::cancelled ||
                            reply.error().kind == ErrorKind::timeout);
    if (ended && ctx.done()) stop();  // what runs there has no reader any more
    return reply;
  }

  Result<Json> exchange(const Context& ctx, const std::string& type, const Json& body,
                        const std::function<void(const std::string&)>& progress) {
    CG_CHECK(channel_.send(ctx, protocol::message(type, body)));
    for (;;) {
      CG_TRY(wire::Frame frame, channel_.receive(ctx));
      if (auto e = frame.body.find("error"); e != frame.body.end())
        return fail(wire::error_from_json(*e));
      auto named = protocol::type_of(frame.body);
      if (!named) return fail(named.error());
      const std::string& got = *named;
      if (got == protocol::kProgress) {
        auto text = frame.body.find("text");
        if (progress && text != frame.body.end() && text->is_string())
          progress(text->get<std::string>());
        continue;
      }
      if (got != type) return world_error("the evaluator answered another request");
      return std::move(frame.body);
    }
  }

  void stop() {
    channel_.close();
    child_ = sandbox::Child();
    open_.clear();
  }

  // Runs `once`, again after a restart while the evaluator dies under it.
  template <class T, class F>
  Result<T> repeat(const Context& ctx, F once) {
    for (int run = 1;; ++run) {
      if (!channel_ || !child_.running()) {
        open_.clear();
        CG_CHECK(launch(ctx));
      }
      Result<T> result = once();
      bool died = !result && wire::is_closed(result.error());
      if (!died || run == kMostRuns) return result;
      auto status = child_.wait(ctx.with_timeout(std::chrono::seconds(2)));
      log_warning("the evaluator died ({}); cutegen starts it again",
                  status ? status->text() : status.error().message);
      stop();
    }
  }

  struct TaskFile {
    std::filesystem::path path;
    AskedAccuracy asked;
  };

  Result<OpenedTask> open_once(const Context& ctx, const TaskFile& file) {
    Json body{{"file", file.path.string()}};
    if (!file.asked.empty()) body["asked"] = to_json(file.asked);
    CG_TRY(Json reply, ask(ctx, "open_task", body, {}));
    auto opened = reply.find("opened");
    if (opened == reply.end()) return world_error("the evaluator's reply has no task");
    CG_TRY(OpenedTask task, read_json<OpenedTask>(*opened));
    last_ = task.task.id;
    files_[last_] = file;
    open_.insert(last_);
    return task;
  }

  // A task's id; it is opened again if this evaluator is a fresh one.
  Result<std::string> open_again(const Context& ctx, const std::string& task) {
    const std::string id = task.empty() ? last_ : task;
    auto file = files_.find(id);
    if (file == files_.end()) return user_error("no task is open", {}, "open a task first");
    if (!open_.contains(id)) {  // a fresh evaluator knows no task
      const TaskFile opened = file->second;
      CG_TRY(OpenedTask again, open_once(ctx, opened));
      if (id != again.task.id)
        return user_error("the task file changed while it was in use", opened.path.string(),
                          "run the command again with the new file");
    }
    return id;
  }

  Result<Verdict> repeat_verdict(const Context& ctx, const std::string& type,
                                 const std::string& task, const std::string& id,
                                 const Json& request,
                                 const std::function<void(const std::string&)>& progress) {
    auto verdict =
        repeat<Verdict>(ctx, [&] { return verdict_once(ctx, type, task, request, progress); });
    if (verdict || !wire::is_closed(verdict.error())) return verdict;
    Verdict aborted;
    aborted.status = Status::aborted;
    aborted.program_id = id;
    aborted.task_id = task.empty() ? last_ : task;
    aborted.device = options_.device.text();
    aborted.feedback.headline =
        fmt::format("the evaluator died {} times during this evaluation", kMostRuns);
    return aborted;
  }

  Result<Verdict> verdict_once(const Context& ctx, const std::string& type, const std::string& task,
                               const Json& request,
                               const std::function<void(const std::string&)>& progress) {
    CG_TRY(std::string id, open_again(ctx, task));
    CG_TRY(Json reply, ask(ctx, type, {{"task_id", id}, {"request", request}}, progress));
    auto verdict = reply.find("verdict");
    if (verdict == reply.end()) return world_error("the evaluator's reply has no verdict");
    return read_json<Verdict>(*verdict);
  }

  EvaluatorOptions options_;
  sandbox::Child child_;
  wire::Channel channel_;
  std::map<std::string, TaskFile> files_;  // of the tasks, by their ids
  std::set<std::string> open_;             // those that this evaluator has
  std::string last_;                       // the task that was opened last
  int pid_ = -1;
};

}  // namespace

Result<OpenedTask> EvaluatorClient::open_task_as(const Context& ctx,
                                                 const std::filesystem::path& file,
                                                 const AskedAccuracy& asked) {
  if (asked.empty()) return open_task(ctx, file);
  return unsupported_error("this evaluator takes the accuracy of a task only from its files");
}

Result<Certificate> EvaluatorClient::certify(const Context&, const CertifyRequest&,
                                             const std::function<void(const std::string&)>&) {
  return unsupported_error("this evaluator cannot certify");
}

Result<Verdict> EvaluatorClient::judge_foreign(const Context&, const ForeignRequest&,
                                               const std::function<void(const std::string&)>&) {
  return unsupported_error("this evaluator cannot judge third-party solutions");
}

Result<std::vector<BaselineTime>> EvaluatorClient::time_baselines(
    const Context&, const BaselinesRequest&, const std::function<void(const std::string&)>&) {
  return unsupported_error("this evaluator cannot time baselines");
}

Result<std::unique_ptr<EvaluatorClient>> EvaluatorClient::start(const Context& ctx,
                                                                EvaluatorOptions options) {
  auto client = std::make_unique<Client>(std::move(options));
  CG_CHECK(client->launch(ctx));
  return std::unique_ptr<EvaluatorClient>(std::move(client));
}

}  // namespace cutegen::eval
