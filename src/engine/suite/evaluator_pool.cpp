// SPDX-License-Identifier: Apache-2.0
#include "engine/suite/evaluator_pool.h"

#include <fmt/format.h>

#include <algorithm>
#include <condition_variable>
#include <deque>

#include "eval/api/expect_children.h"
#include "eval/api/protocol.h"

namespace cutegen::engine {
namespace fs = std::filesystem;

// One evaluator and the calls that wait for it.
class EvaluatorPool::Seat {
 public:
  Seat(const Parts& parts, std::string name, Trace* trace)
      : parts_(parts), name_(std::move(name)), trace_(trace) {}

  // Takes the seat for one call. Waits for its turn until the Context ends.
  class Turn {
   public:
    Turn(Seat& seat, const Context& ctx) : seat_(seat) {
      constexpr auto kLook = std::chrono::milliseconds(20);  // how often the Context is checked
      std::unique_lock hold(seat_.lock_);
      seat_.queue_.push_back(this);
      while (seat_.queue_.front() != this && !ctx.done()) seat_.wake_.wait_for(hold, kLook);
      mine_ = seat_.queue_.front() == this;
      if (!mine_) std::erase(seat_.queue_, this);
    }
    ~Turn() {
      if (!mine_) return;
      std::lock_guard hold(seat_.lock_);
      seat_.queue_.pop_front();
      seat_.wake_.notify_all();
    }
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;

   private:
    Seat& seat_;
    bool mine_ = false;
  };

  // Only the call whose turn it is may use the members below, except leave().
  Result<eval::EvaluatorClient*> client(const Context& ctx, const eval::EvaluatorOptions& options) {
    CG_CHECK(ctx.check("waiting for an evaluator"));
    if (!client_ || broken_) {
      Trace::Span span(trace_, name_, "start");
      client_.reset();
      users_.clear();
      CG_TRY(client_, parts_.start_evaluator(ctx, options));
      broken_ = false;
      ++generation_;
    }
    close_left(ctx);
    return client_.get();
  }
  template <class T>
  Result<T> noted(Result<T> result) {
    if (!result && result.error().kind != ErrorKind::user &&
        result.error().kind != ErrorKind::unsupported)
      broken_ = true;
    return result;
  }
  int64_t generation() const { return generation_; }
  int pid() const { return client_ ? client_->pid() : 0; }
  void use(const std::string& task) { ++users_[task]; }
  Trace::Span span(const std::string& what) { return {trace_, name_, what}; }

  // Notes that a lease has ended. Any thread may call this at any time.
  void leave(const std::string& task, int64_t generation) {
    std::lock_guard hold(lock_);
    if (!task.empty()) left_.emplace_back(task, generation);
  }

  int leases = 0;  // guarded by the pool's lock

 private:
  // Closes the tasks that no run uses any more.
  void close_left(const Context& ctx) {
    std::vector<std::pair<std::string, int64_t>> left;
    {
      std::lock_guard hold(lock_);
      left.swap(left_);
    }
    for (const auto& [task, generation] : left) {
      auto users = users_.find(task);
      if (generation != generation_ || users == users_.end() || --users->second > 0) continue;
      users_.erase(users);
      client_->close_task(ctx, task);
    }
  }

  const Parts& parts_;
  std::string name_;
  Trace* trace_;
  std::mutex lock_;  // guards the queue and left_
  std::condition_variable wake_;
  std::deque<const Turn*> queue_;
  std::vector<std::pair<std::string, int64_t>> left_;
  std::unique_ptr<eval::EvaluatorClient> client_;
  std::map<std::string, int> users_;  // leases of each open task
  bool broken_ = false;
  int64_t generation_ = 0;  // counts the starts of the evaluator
};

// A run's view of a seat.
class EvaluatorPool::Lease final : public eval::EvaluatorClient, public eval::TakesChildrenToCome {
 public:
  Lease(EvaluatorPool& pool, Seat& seat, eval::EvaluatorOptions options)
      : pool_(pool), seat_(seat), options_(std::move(options)) {}
  ~Lease() override {
    seat_.leave(task_, generation_);
    std::lock_guard hold(pool_.lock_);
    --seat_.leases;
  }

  // Starts the evaluator if none runs, so that the caller gets its errors here.
  Result<void> begin(const Context& ctx) {
    Seat::Turn turn(seat_, ctx);
    CG_CHECK(seat_.client(ctx, options_));
    return {};
  }

  Result<eval::OpenedTask> open_task(const Context& ctx, const fs::path& file) override {
    return open_task_as(ctx, file, {});
  }

  Result<eval::OpenedTask> open_task_as(const Context& ctx, const fs::path& file,
                                        const AskedAccuracy& asked) override {
    Seat::Turn turn(seat_, ctx);
    CG_TRY(eval::EvaluatorClient * client, seat_.client(ctx, options_));
    return open(ctx, *client, file, asked);
  }

  Result<Verdict> evaluate(const Context& ctx, const eval::EvaluateRequest& given,
                           const std::function<void(const std::string&)>& progress) override {
    Seat::Turn turn(seat_, ctx);
    CG_TRY(eval::EvaluatorClient * client, seat_.client(ctx, options_));
    CG_CHECK(open_again(ctx, *client));
    eval::EvaluateRequest request = given;
    request.task = task_;
    tell_children(ctx, *client);
    auto span = seat_.span("evaluate");
    return seat_.noted(client->evaluate(ctx, request, [&](const std::string& line) {
      span.next(line.substr(0, line.find(' ')));
      if (progress) progress(line);
    }));
  }

  Result<std::vector<BaselineTime>> time_baselines(
      const Context& ctx, const eval::BaselinesRequest& given,
      const std::function<void(const std::string&)>& progress) override {
    Seat::Turn turn(seat_, ctx);
    CG_TRY(eval::EvaluatorClient * client, seat_.client(ctx, options_));
    CG_CHECK(open_again(ctx, *client));
    eval::BaselinesRequest request = given;
    request.task = task_;
    auto span = seat_.span("baselines");
    return seat_.noted(client->time_baselines(ctx, request, progress));
  }

  // Sends the hint at once if no other run has the evaluator, else before the next evaluation.
  void expect_children(const Context& ctx, const eval::ChildrenToCome& children) override {
    constexpr auto kShort = std::chrono::milliseconds(100);
    children_ = children;
    const Context soon = ctx.with_timeout(kShort);
    Seat::Turn turn(seat_, soon);
    auto client = seat_.client(soon, options_);
    if (client) tell_children(ctx, **client);
  }

  int pid() const override { return seat_.pid(); }

 private:
  void tell_children(const Context& ctx, eval::EvaluatorClient& client) {
    if (!children_ || generation_ != seat_.generation()) return;
    children_->task = task_;
    cutegen::eval::expect_children(client, ctx, *children_);
    children_.reset();
  }

  // Opens the task again if the evaluator was restarted and has no task.
  Result<void> open_again(const Context& ctx, eval::EvaluatorClient& client) {
    if (generation_ == seat_.generation()) return {};
    const std::string before = task_;
    CG_TRY(eval::OpenedTask again, open(ctx, client, file_, asked_));
    if (again.task.id == before) return {};
    return user_error("the task file changed while it was in use", file_.string(),
                      "run the command again with the new file");
  }

  Result<eval::OpenedTask> open(const Context& ctx, eval::EvaluatorClient& client,
                                const fs::path& file, const AskedAccuracy& asked) {
    auto span = seat_.span("open task");
    auto opened = seat_.noted(client.open_task_as(ctx, file, asked));
    if (!opened) return opened;
    if (task_ != opened->task.id || generation_ != seat_.generation()) {
      seat_.leave(task_, generation_);
      seat_.use(opened->task.id);
    }
    task_ = opened->task.id;
    file_ = file;
    asked_ = asked;
    generation_ = seat_.generation();
    return opened;
  }

  EvaluatorPool& pool_;
  Seat& seat_;
  eval::EvaluatorOptions options_;
  std::string task_;
  fs::path file_;
  AskedAccuracy asked_;
  int64_t generation_ = 0;
  std::optional<eval::ChildrenToCome> children_;  // not sent yet
};

EvaluatorPool::EvaluatorPool(const Parts& parts, PoolSettings settings)
    : parts_(parts), settings_(settings) {
  settings_.evaluators = std::clamp(settings_.evaluators, 1, std::max(1, settings_.runs));
  for (int i = 1; i <= settings_.evaluators; ++i)
    seats_.push_back(
        std::make_unique<Seat>(parts_, fmt::format("evaluator {}", i), settings_.trace));
}

EvaluatorPool::~EvaluatorPool() = default;

Result<std::unique_ptr<eval::EvaluatorClient>> EvaluatorPool::lease(
    const Context& ctx, const eval::EvaluatorOptions& given) {
  eval::EvaluatorOptions options = given;
  const int share = (settings_.runs + settings_.evaluators - 1) / settings_.evaluators;
  options.tasks = std::min(share, eval::protocol::kMostTasks);
  Seat* seat = nullptr;
  {
    std::lock_guard hold(lock_);
    seat = std::min_element(seats_.begin(), seats_.end(), [](auto& a, auto& b) {
             return a->leases < b->leases;
           })->get();
    ++seat->leases;
  }
  auto lease = std::make_unique<Lease>(*this, *seat, std::move(options));
  CG_CHECK(lease->begin(ctx));
  return std::unique_ptr<eval::EvaluatorClient>(std::move(lease));
}

}  // namespace cutegen::engine
