// SPDX-License-Identifier: Apache-2.0
#include "eval/api/client.h"

#include <fmt/format.h>

#include <map>
#include <set>

#include "base/log.h"
#include "eval/api/evaluator_process.h"
#include "eval/api/expect_children.h"
#include "eval/api/foreign_file.h"
#include "eval/api/protocol.h"

namespace cutegen::eval {
namespace {

constexpr int kMostRuns = 3;  // the first run, and two more if the evaluator dies

class Client : public EvaluatorClient, public TakesChildrenToCome {
 public:
  explicit Client(EvaluatorOptions options) : options_(std::move(options)) {}

  Result<void> launch(const Context& ctx) { return process_.start(ctx, options_); }

  Result<OpenedTask> open_task(const Context& ctx, const std::filesystem::path& file) override {
    return open_task_as(ctx, file, {});
  }

  Result<OpenedTask> open_task_as(const Context& ctx, const std::filesystem::path& file,
                                  const AskedAccuracy& asked) override {
    const TaskFile opened{.path = std::filesystem::absolute(file), .asked = asked};
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
      CG_TRY(Json reply, process_.ask(ctx, "certify", body, progress));
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
      CG_TRY(Json reply, process_.ask(ctx, "baselines", body, progress));
      return protocol::baseline_times_from_json(reply);
    });
  }

  // Does nothing if the task is not open, or if its evaluator has ended.
  void close_task(const Context& ctx, const std::string& id) override {
    files_.erase(id);
    if (open_.erase(id) == 0 || !process_.connected()) return;
    auto closed = process_.ask(ctx, "close_task", {{"task_id", id}});
    if (!closed) log_debug("a task was not closed: {}", closed.error().message);
  }

  void expect_children(const Context& ctx, const ChildrenToCome& children) override {
    if (!open_.contains(children.task) || !process_.connected()) return;
    EvaluateRequest request;
    request.program = children.parent;
    const Json body{
        {"task_id", children.task}, {"request", to_json(request)}, {"count", children.count}};
    auto told = process_.ask(ctx, "expect_children", body);
    if (!told) log_debug("the evaluator expects no children: {}", told.error().message);
  }

  int pid() const override { return process_.pid(); }

 private:
  // Runs `once`. If the evaluator dies meanwhile, restarts it and runs `once` again.
  template <class T, class F>
  Result<T> repeat(const Context& ctx, F once) {
    for (int run = 1;; ++run) {
      if (!process_.running()) {
        open_.clear();
        CG_CHECK(launch(ctx));
      }
      Result<T> result = once();
      bool died = !result && wire::is_closed(result.error());
      if (!died || run == kMostRuns) return result;
      log_warning("the evaluator died ({}); cutegen starts it again", process_.how_it_ends(ctx));
      process_.stop();
    }
  }

  struct TaskFile {
    std::filesystem::path path;
    AskedAccuracy asked;
  };

  Result<OpenedTask> open_once(const Context& ctx, const TaskFile& file) {
    Json body{{"file", file.path.string()}};
    if (!file.asked.empty()) body["asked"] = to_json(file.asked);
    CG_TRY(Json reply, process_.ask(ctx, "open_task", body));
    auto opened = reply.find("opened");
    if (opened == reply.end()) return world_error("the evaluator's reply has no task");
    CG_TRY(OpenedTask task, read_json<OpenedTask>(*opened));
    last_ = task.task.id;
    files_[last_] = file;
    open_.insert(last_);
    return task;
  }

  // Returns a task's id. Opens the task again if the evaluator has been restarted.
  Result<std::string> open_again(const Context& ctx, const std::string& task) {
    const std::string id = task.empty() ? last_ : task;
    auto file = files_.find(id);
    if (file == files_.end()) return user_error("no task is open", {}, "open a task first");
    if (!open_.contains(id)) {  // a restarted evaluator has no open tasks
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
    CG_TRY(Json reply, process_.ask(ctx, type, {{"task_id", id}, {"request", request}}, progress));
    auto verdict = reply.find("verdict");
    if (verdict == reply.end()) return world_error("the evaluator's reply has no verdict");
    return read_json<Verdict>(*verdict);
  }

  EvaluatorOptions options_;
  EvaluatorProcess process_;
  std::map<std::string, TaskFile> files_;  // task files by task id
  std::set<std::string> open_;             // ids of the tasks that the running evaluator has open
  std::string last_;                       // id of the task opened last
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
