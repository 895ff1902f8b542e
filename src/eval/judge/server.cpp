// SPDX-License-Identifier: Apache-2.0
#include "eval/judge/server.h"

#include <unistd.h>

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <thread>

#include "base/log.h"
#include "eval/api/protocol.h"
#include "eval/judge/evaluator.h"

namespace cutegen::eval {
namespace {

class Server {
 public:
  explicit Server(wire::Channel channel) : channel_(std::move(channel)) {}

  int serve() {
    std::thread worker([this] { work(); });
    for (;;) {
      auto frame = channel_.receive(Context());
      if (!frame) break;
      std::unique_lock hold(lock_);
      if (request_ || busy_) {
        hold.unlock();
        reply_error({.kind = ErrorKind::user,
                     .message = "the evaluator is busy",
                     .where = {},
                     .remedy = "wait for its reply"});
        continue;
      }
      request_ = std::move(frame->body);
      hold.unlock();
      wake_.notify_all();
    }
    stop_.request_stop();  // the engine is gone: stop its work
    wake_.notify_all();
    worker.join();
    return kExitOk;
  }

 private:
  void work() {
    for (;;) {
      Json request;
      {
        std::unique_lock hold(lock_);
        wake_.wait(hold, [this] { return request_ || stop_.stop_requested(); });
        if (stop_.stop_requested()) break;
        request = std::move(*request_);
        request_.reset();
        busy_ = true;
      }
      auto answer = handle(request);
      {
        std::lock_guard hold(lock_);
        busy_ = false;
      }
      if (answer)
        reply(*answer);
      else
        reply_error(answer.error());
    }
    evaluator_.reset();  // ends the child processes
  }

  void reply(const Json& body) {
    std::lock_guard one(send_lock_);
    if (auto sent = channel_.send(ctx_, body); !sent)
      log_debug("a reply was not sent: {}", sent.error().message);
  }
  void reply_error(const Error& error) {
    std::lock_guard one(send_lock_);
    if (auto sent = channel_.send_error(ctx_, error); !sent)
      log_debug("a reply was not sent: {}", sent.error().message);
  }

  Result<Json> handle(const Json& body) {
    CG_TRY(std::string type, protocol::type_of(body));
    if (type == "hello") return hello(body);
    if (!evaluator_) return user_error("the first request must be hello");
    if (type == "open_task") return open_task(body);
    if (type == "evaluate") return work_on(type, body, "verdict", &Evaluator::evaluate);
    if (type == "certify") return work_on(type, body, "certificate", &Evaluator::certify);
    if (type == "foreign") return work_on(type, body, "verdict", &Evaluator::judge_foreign);
    if (type == "baselines") return work_on(type, body, "times", &Evaluator::time_baselines);
    if (type == "close_task") return close_task(body);
    if (type == "expect_children") return expect_children(body);
    return user_error("the evaluator does not know the request '" + type + "'");
  }

  Result<Json> hello(const Json& body) {
    ObjectReader r(body, "hello#");
    CG_TRY(Json json, r.object("options"));
    CG_TRY(EvaluatorOptions options, read_json<EvaluatorOptions>(json));
    if (!options.log_level.empty())
      set_log_level(log_level_from(options.log_level, LogLevel::warning));
    CG_TRY(evaluator_, Evaluator::open(ctx_, std::move(options)));
    return protocol::message("hello", {{"pid", ::getpid()}});
  }

  std::function<void(const std::string&)> progress() {
    return
        [this](const std::string& text) { reply(protocol::message("progress", {{"text", text}})); };
  }

  Result<Json> open_task(const Json& body) {
    ObjectReader r(body, "open_task#");
    CG_TRY(std::string file, r.string("file"));
    CG_TRY(Json json, r.object_or_null("asked"));
    AskedAccuracy asked;
    if (!json.is_null()) {
      CG_TRY(asked, read_json<AskedAccuracy>(json));
    }
    CG_TRY(OpenedTask opened, evaluator_->open_task(ctx_, file, asked));
    return protocol::message("open_task", {{"opened", to_json(opened)}});
  }

  // Handles {task_id, request}: works on an open task and puts the result into field `key` of the
  // reply.
  template <class Request, class T>
  Result<Json> work_on(const std::string& type, const Json& body, const char* key,
                       Result<T> (Evaluator::*work)(const Context&, const Request&,
                                                    const Progress&)) {
    ObjectReader r(body, type + "#");
    CG_TRY(std::string task_id, r.string("task_id"));
    CG_TRY(Json json, r.object("request"));
    CG_TRY(Request request, read_json<Request>(json));
    request.task = task_id;
    CG_TRY(T result, ((*evaluator_).*work)(ctx_, request, progress()));
    return protocol::message(type, {{key, write_json(result)}});
  }

  Result<Json> expect_children(const Json& body) {
    constexpr int64_t kMost = 1000;
    ObjectReader r(body, "expect_children#");
    CG_TRY(std::string task_id, r.string("task_id"));
    CG_TRY(Json json, r.object("request"));
    CG_TRY(int64_t count, r.integer("count"));
    CG_TRY(EvaluateRequest request, read_json<EvaluateRequest>(json));
    const int children = int(std::clamp<int64_t>(count, 0, kMost));
    evaluator_->expect_children(request.program, children, task_id);
    return protocol::message("expect_children", Json::object());
  }

  Result<Json> close_task(const Json& body) {
    ObjectReader r(body, "close_task#");
    CG_TRY(std::string task_id, r.string("task_id"));
    evaluator_->close_task(task_id);
    return protocol::message("close_task", Json::object());
  }

  wire::Channel channel_;
  std::mutex lock_, send_lock_;
  std::condition_variable wake_;
  std::optional<Json> request_;
  bool busy_ = false;
  std::stop_source stop_;
  Context ctx_{stop_.get_token()};
  std::unique_ptr<Evaluator> evaluator_;
};

}  // namespace

int serve_evaluator(wire::Channel channel) {
  return Server(std::move(channel)).serve();
}

}  // namespace cutegen::eval
