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

using protocol::MessageType;

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
    return repeat_verdict(ctx, MessageType::evaluate, program_id(request.program), request,
                          progress);
  }

  Result<Verdict> judge_foreign(const Context& ctx, const ForeignRequest& request,
                                const std::function<void(const std::string&)>& progress) override {
    return repeat_verdict(ctx, MessageType::foreign, foreign_id(request.answer), request, progress);
  }

  Result<Certificate> certify(const Context& ctx, const CertifyRequest& request,
                              const std::function<void(const std::string&)>& progress) override {
    return repeat<Certificate>(ctx, [&]() -> Result<Certificate> {
      CG_TRY(auto reply,
             ask_on_task<protocol::CertificateReply>(ctx, MessageType::certify, request, progress));
      return std::move(reply.certificate);
    });
  }

  Result<std::vector<BaselineTime>> time_baselines(
      const Context& ctx, const BaselinesRequest& request,
      const std::function<void(const std::string&)>& progress) override {
    using Times = std::vector<BaselineTime>;
    return repeat<Times>(ctx, [&]() -> Result<Times> {
      CG_TRY(auto reply,
             ask_on_task<protocol::BaselinesReply>(ctx, MessageType::baselines, request, progress));
      return std::move(reply.times);
    });
  }

  Result<void> measure_suite(const Context& ctx, const SuiteRequest& request,
                             const OnSuiteNews& news,
                             const std::function<void(const std::string&)>& progress) override {
    SuiteRequest rest = request;
    const ReplyListeners listeners{.progress = progress, .news = [&](const SuiteNews& n) {
                                     if (n.row && n.row->status != BaselineStatus::pending)
                                       std::erase_if(rest.tasks, [&](const SuiteFile& task) {
                                         return task.number == n.row->number;
                                       });
                                     if (news) news(n);
                                   }};
    auto done = repeat<protocol::EmptyReply>(ctx, [&] {
      return process_.ask<protocol::EmptyReply>(ctx, MessageType::suite,
                                                protocol::MeasureSuite{rest}, listeners);
    });
    if (!done && wire::is_closed(done.error()))
      return world_error(fmt::format("the evaluator died {} times", kMostRuns),
                         "run the same command again to continue");
    if (!done) return fail(done.error());
    return {};
  }

  // Does nothing if the task is not open, or if its evaluator has ended.
  void close_task(const Context& ctx, const std::string& id) override {
    files_.erase(id);
    if (open_.erase(id) == 0 || !process_.connected()) return;
    auto closed =
        process_.ask<protocol::EmptyReply>(ctx, MessageType::close_task, protocol::CloseTask{id});
    if (!closed) log_debug("a task was not closed: {}", closed.error().message);
  }

  void expect_children(const Context& ctx, const ChildrenToCome& children) override {
    if (!open_.contains(children.task) || !process_.connected()) return;
    protocol::ExpectChildren request{.count = children.count};
    request.parent.request.program = children.parent;
    request.parent.request.task = children.task;
    auto told = process_.ask<protocol::EmptyReply>(ctx, MessageType::expect_children, request);
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
    const protocol::OpenTask request{.file = file.path.string(), .asked = file.asked};
    CG_TRY(auto reply, process_.ask<protocol::OpenTaskReply>(ctx, MessageType::open_task, request));
    last_ = reply.opened.task.id;
    files_[last_] = file;
    open_.insert(last_);
    return std::move(reply.opened);
  }

  // Returns a task's id. Opens the task again if the evaluator has been restarted.
  Result<std::string> open_again(const Context& ctx, const std::string& task) {
    std::string id = task.empty() ? last_ : task;
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

  template <class Request>
  Result<Verdict> repeat_verdict(const Context& ctx, MessageType type, const std::string& id,
                                 const Request& request,
                                 const std::function<void(const std::string&)>& progress) {
    auto verdict = repeat<Verdict>(ctx, [&]() -> Result<Verdict> {
      CG_TRY(auto reply, ask_on_task<protocol::VerdictReply>(ctx, type, request, progress));
      return std::move(reply.verdict);
    });
    if (verdict || !wire::is_closed(verdict.error())) return verdict;
    Verdict aborted;
    aborted.status = Status::aborted;
    aborted.program_id = id;
    aborted.task_id = request.task.empty() ? last_ : request.task;
    aborted.device = options_.device.text();
    aborted.feedback.headline =
        fmt::format("the evaluator died {} times during this evaluation", kMostRuns);
    return aborted;
  }

  // Opens the task again first if the evaluator has been restarted.
  template <class Reply, class Request>
  Result<Reply> ask_on_task(const Context& ctx, MessageType type, const Request& request,
                            const std::function<void(const std::string&)>& progress) {
    protocol::OnTask<Request> asked{request};
    CG_TRY(asked.request.task, open_again(ctx, request.task));
    return process_.ask<Reply>(ctx, type, std::move(asked), {.progress = progress});
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

Result<void> EvaluatorClient::measure_suite(const Context&, const SuiteRequest&, const OnSuiteNews&,
                                            const std::function<void(const std::string&)>&) {
  return unsupported_error("this evaluator cannot measure suites of baselines");
}

Result<std::unique_ptr<EvaluatorClient>> EvaluatorClient::start(const Context& ctx,
                                                                EvaluatorOptions options) {
  auto client = std::make_unique<Client>(std::move(options));
  CG_CHECK(client->launch(ctx));
  return std::unique_ptr<EvaluatorClient>(std::move(client));
}

}  // namespace cutegen::eval
