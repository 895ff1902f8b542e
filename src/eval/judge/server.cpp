// SPDX-License-Identifier: Apache-2.0
#include "eval/judge/server.h"

#include <unistd.h>

#include <condition_variable>
#include <mutex>
#include <optional>
#include <thread>

#include "base/log.h"
#include "eval/api/protocol.h"
#include "eval/baselines/suite.h"
#include "eval/judge/evaluator.h"

namespace cutegen::eval {

using protocol::MessageType;

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
    CG_TRY(MessageType type, protocol::type_of(body));
    if (type == MessageType::hello) return answer(type, body, &Server::hello);
    if (type == MessageType::progress || type == MessageType::suite_news)
      return user_error(std::string("the evaluator does not know the request '") + to_string(type) +
                        "'");
    if (type == MessageType::suite) return answer(type, body, &Server::measure_suite);
    if (!evaluator_) return user_error("the first request must be hello");
    switch (type) {
      case MessageType::open_task:
        return answer(type, body, &Server::open_task);
      case MessageType::evaluate:
        return work_on<protocol::VerdictReply>(type, body, &Evaluator::evaluate);
      case MessageType::certify:
        return work_on<protocol::CertificateReply>(type, body, &Evaluator::certify);
      case MessageType::foreign:
        return work_on<protocol::VerdictReply>(type, body, &Evaluator::judge_foreign);
      case MessageType::baselines:
        return work_on<protocol::BaselinesReply>(type, body, &Evaluator::time_baselines);
      case MessageType::close_task:
        return answer(type, body, &Server::close_task);
      default:
        return answer(type, body, &Server::expect_children);
    }
  }

  // Reads the request, and writes the reply.
  template <class Request, class Reply>
  Result<Json> answer(MessageType type, const Json& body,
                      Result<Reply> (Server::*work)(const Request&)) {
    CG_TRY(Request request, protocol::body_of<Request>(body));
    CG_TRY(Reply reply, (this->*work)(request));
    return protocol::message(type, std::move(reply));
  }

  // Reads a request about an open task, and writes the reply.
  template <class Reply, class Request, class T>
  Result<Json> work_on(MessageType type, const Json& body,
                       Result<T> (Evaluator::*work)(const Context&, const Request&,
                                                    const Progress&)) {
    CG_TRY(auto on, protocol::body_of<protocol::OnTask<Request>>(body));
    CG_TRY(T result, ((*evaluator_).*work)(ctx_, on.request, progress_));
    return protocol::message(type, Reply{std::move(result)});
  }

  Result<protocol::HelloReply> hello(const protocol::Hello& request) {
    const std::string& level = request.options.log_level;
    if (!level.empty()) set_log_level(log_level_from(level, LogLevel::warning));
    if (request.options.suites) {
      suites_ = request.options;
    } else {
      CG_TRY(evaluator_, Evaluator::open(ctx_, request.options));
    }
    return protocol::HelloReply{.pid = ::getpid()};
  }

  Result<protocol::OpenTaskReply> open_task(const protocol::OpenTask& request) {
    protocol::OpenTaskReply out;
    CG_TRY(out.opened, evaluator_->open_task(ctx_, request.file, request.asked));
    return out;
  }

  Result<protocol::EmptyReply> measure_suite(const protocol::MeasureSuite& request) {
    if (!suites_) return user_error("the first request must be hello, with the option 'suites'");
    const OnSuiteNews news = [this](const SuiteNews& n) {
      reply(protocol::message(MessageType::suite_news, protocol::NewsMessage{n}));
    };
    CG_CHECK(eval::measure_suite(real_suite_parts(*suites_, request.request), ctx_, request.request,
                                 news, progress_));
    return protocol::EmptyReply{};
  }

  Result<protocol::EmptyReply> expect_children(const protocol::ExpectChildren& request) {
    const EvaluateRequest& parent = request.parent.request;
    evaluator_->expect_children(parent.program, request.count, parent.task);
    return protocol::EmptyReply{};
  }

  Result<protocol::EmptyReply> close_task(const protocol::CloseTask& request) {
    evaluator_->close_task(request.task_id);
    return protocol::EmptyReply{};
  }

  wire::Channel channel_;
  std::mutex lock_, send_lock_;
  std::condition_variable wake_;
  std::optional<Json> request_;
  bool busy_ = false;
  std::stop_source stop_;
  Context ctx_{stop_.get_token()};
  std::unique_ptr<Evaluator> evaluator_;
  std::optional<EvaluatorOptions> suites_;  // set if the evaluator only measures suites
  const Progress progress_ = [this](const std::string& text) {
    reply(protocol::message(MessageType::progress, protocol::ProgressText{text}));
  };
};

}  // namespace

int serve_evaluator(wire::Channel channel) {
  return Server(std::move(channel)).serve();
}

}  // namespace cutegen::eval
