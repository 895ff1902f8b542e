// SPDX-License-Identifier: Apache-2.0
// Kills the process of stark and astra runs with SIGKILL at random moments and resumes the runs.
// CUTEGEN_KILLS sets the least number of kills for each strategy, CUTEGEN_KILL_SEED other moments.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <random>
#include <set>
#include <thread>

#include "engine/run/replay_run.h"
#include "engine/testing/agent_world.h"

namespace cutegen::engine {
namespace {

using agent_test::AgentRun;
using agent_test::first_program;
using agent_test::next_program;

constexpr int kKills = 4;         // at least, for each strategy, without CUTEGEN_KILLS
constexpr int kMostOfOneRun = 4;  // kills of one run
constexpr int64_t kEvaluations = 8;

int number_from(const char* variable, int otherwise) {
  const char* text = std::getenv(variable);
  return text ? std::atoi(text) : otherwise;
}

// Answers every question as its role demands, with a program of its own for each question. The
// answer depends only on the request, so a killed run gets the same answers.
class Actor final : public llm::ChatModel {
 public:
  Result<llm::ChatReply> chat(const Context& ctx, const llm::ChatRequest& request) override {
    CG_CHECK(ctx.check("asking"));
    llm::ChatReply reply;
    reply.message.speaker = llm::Speaker::assistant;
    reply.message.text = text_for(request);
    reply.usage = {.input = 1000, .output = 100};
    reply.cost_usd = 0.01;
    reply.model = "actor";
    return reply;
  }
  const std::string& name() const override { return name_; }
  bool has_tools() const override { return false; }
  std::optional<double> most_usd(const llm::ChatRequest&) const override { return 0.01; }

 private:
  // The label is "ROLE ask N try 1".
  static std::string text_for(const llm::ChatRequest& request) {
    const std::string& label = request.label;
    const int ask = std::stoi(label.substr(label.find(" ask ") + 5));
    auto file = request.files.find("kernel.cu");
    const int from = file == request.files.end() ? 0 : std::stoi(file->second.substr(3));
    if (label.starts_with("tester")) return "{\"cases\": []}";
    if (label.starts_with("profiler")) return "BOTTLENECK: the loads";
    if (label.starts_with("planner") && from == 0) return "APPROACH 1: rows\nA loop over rows.\n";
    if (label.starts_with("planner"))
      return fmt::format(
          "CHANGE: another number\nIt is faster.\nSPAN kernel.cu\nBEGIN: // {0}\nEND: // {0}\n",
          from);
    return from == 0 ? first_program(ask) : next_program(from, ask);
  }
  std::string name_ = "relay:actor";
};

class KilledRun : public AgentRun {
 protected:
  KilledRun() {
    world_.judge = [](int n, int) {
      ::usleep(1000);
      return n % 5 == 3 ? toy::untimed(Status::failed, "out: wrong")
                        : toy::timed(20.0 + (n * 37) % 80);
    };
  }

  Parts acting() {
    Parts p = world_.parts();
    p.open_model = [](const OptimizeSettings&,
                      store::Store&) -> Result<std::unique_ptr<llm::ChatModel>> {
      return std::make_unique<Actor>();
    };
    return p;
  }

  // Starts the run, or continues it if the store has one.
  Result<RunResult> go(const std::filesystem::path& runs, const OptimizeSettings& wanted) {
    CG_TRY(auto s, store::Store::open(runs));
    CG_TRY(auto all, s->list());
    if (all.empty()) return optimize_with(acting(), {}, *s, wanted, recorder_);
    return resume_with(acting(), {}, *s, "last", recorder_);
  }

  // Runs in a child process, which dies after `pause`. Returns whether the run had already ended.
  bool killed(const std::filesystem::path& runs, const OptimizeSettings& wanted,
              std::chrono::microseconds pause) {
    const pid_t child = ::fork();
    if (child == 0) ::_exit(go(runs, wanted) ? 0 : 1);
    std::this_thread::sleep_for(pause);
    ::kill(child, SIGKILL);
    int status = 0;
    EXPECT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFSIGNALED(status) || WEXITSTATUS(status) == 0);
    return !WIFSIGNALED(status);
  }

  std::vector<Event> events_of(const std::filesystem::path& runs) {
    auto s = store::Store::open(runs);
    return s && !(*s)->list()->empty() ? *(*s)->read("last") : std::vector<Event>();
  }

  static std::vector<std::string> steps_of(const std::vector<Event>& events) {
    auto view = view_run(events);
    EXPECT_TRUE(view) << view.error().text();
    std::vector<std::string> out;
    for (const RunStep& s : view->steps)
      out.push_back(s.candidate.id + " " + program_id(s.candidate.program) + " " +
                    std::to_string(s.time_ns().value_or(0)) + " " + to_string(s.decision));
    out.push_back("evaluations " + std::to_string(view->evaluations));
    out.push_back("answers " + std::to_string(view->answers));
    return out;
  }

  // No answer is paid for twice, and no candidate is evaluated twice.
  static void expect_each_once(const std::vector<Event>& events) {
    std::set<std::string> paid;
    std::set<std::pair<std::string, bool>> judged;
    for (const Event& e : events) {
      if (e.type == EventType::call_ended && e.data.contains("reply")) {
        EXPECT_TRUE(paid.insert(e.data.value("request_hash", "")).second);
      }
      if (e.type == EventType::evaluated) {
        EXPECT_TRUE(
            judged.emplace(e.data.value("candidate", ""), e.data.value("profile", false)).second);
      }
    }
    EXPECT_FALSE(paid.empty());
  }

  void kill_and_compare(search::StrategyKind strategy) {
    OptimizeSettings wanted = settings(kEvaluations);
    wanted.strategy = strategy;
    wanted.model = "relay:actor";
    const auto begin = Clock::now();
    ASSERT_TRUE(go(dir_ / "calm", wanted));
    const auto whole = std::chrono::duration_cast<std::chrono::microseconds>(Clock::now() - begin);
    const auto calm = steps_of(events_of(dir_ / "calm"));
    ASSERT_GT(calm.size(), size_t(kEvaluations));
    expect_each_once(events_of(dir_ / "calm"));
    std::mt19937_64 random(uint64_t(number_from("CUTEGEN_KILL_SEED", 1)));
    const int most = number_from("CUTEGEN_KILLS", kKills);
    int kills = 0, resumed = 0;
    // On a busy machine the first kills may all come before the first event.
    for (int run = 0; (kills < most || resumed == 0) && run < 20 * most; ++run) {
      const auto runs = dir_ / ("run" + std::to_string(run));
      for (int i = 0; i < kMostOfOneRun; ++i) {
        const std::vector<Event> before = events_of(runs);
        const auto pause = std::chrono::microseconds(random() % uint64_t(whole.count()));
        if (killed(runs, wanted, pause)) break;
        ++kills;
        const std::vector<Event> after = events_of(runs);
        ASSERT_GE(after.size(), before.size()) << "the journal lost an event";
        resumed += !before.empty();
      }
      auto last = go(runs, wanted);
      const std::vector<Event> events = events_of(runs);
      ASSERT_FALSE(events.empty());
      if (last) {  // otherwise, the killed process had ended the run
        EXPECT_EQ(events.back().type, EventType::finished);
      }
      EXPECT_EQ(steps_of(events), calm) << runs;
      expect_each_once(events);
      auto s = store::Store::open(runs);
      ASSERT_TRUE(s);
      auto again = replay_with(acting(), {}, **s, "last", recorder_);
      EXPECT_TRUE(again) << again.error().text();
    }
    EXPECT_GE(kills, most);
    EXPECT_GT(resumed, 0);
    RecordProperty("kills", kills);
    RecordProperty("resumed", resumed);
    std::printf("%d kills, %d of them of a run that went on\n", kills, resumed);
  }
};

TEST_F(KilledRun, StarkLosesAndRepeatsNothing) {
  kill_and_compare(search::StrategyKind::stark);
}

TEST_F(KilledRun, AstraLosesAndRepeatsNothing) {
  kill_and_compare(search::StrategyKind::astra);
}

}  // namespace
}  // namespace cutegen::engine
