// SPDX-License-Identifier: Apache-2.0
// Fixtures for tests of runs that ask a model: a scripted model, numbered programs, a temporary
// store.
//
// Contract: the source of program n begins with "// n". The toy evaluator reads the number n and
// uses it to choose the verdict.
//
// Example: script_.answers = {first_program(1), next_program(1, 2)}; run(*store(), settings(2));
#pragma once

#include <gtest/gtest.h>

#include <deque>

#include "engine/testing/toy_world.h"

namespace cutegen::engine::agent_test {

inline std::string source(int n) {
  return "// " + std::to_string(n) +
         "\nextern \"C\" __global__ void k(const float* x, float* out, int n) {}\n";
}

inline constexpr const char* kPlan = R"json({"cutegen": 1, "dialect": "cuda",
 "sources": ["kernel.cu"], "symbols": {"n": "size(x)"},
 "steps": [{"id": "k", "kernel": "k", "grid": ["ceil_div(n,256)"], "block": [256],
 "args": [{"tensor": "x"}, {"tensor": "out"}, {"i32": "n"}]}]})json";

inline std::string first_program(int n) {
  return "SUMMARY: program " + std::to_string(n) + "\n```file kernel.cu\n" + source(n) +
         "```\n```file plan.json\n" + kPlan + "\n```\n";
}

inline std::string next_program(int from, int to) {
  return "SUMMARY: from " + std::to_string(from) + " to " + std::to_string(to) +
         "\n```edit kernel.cu\n<<<<<<< SEARCH\n// " + std::to_string(from) + "\n=======\n// " +
         std::to_string(to) + "\n>>>>>>> REPLACE\n```\n";
}

struct Crash {};

// One answer of the model: text, tool calls, or both. The text "crash" simulates a crash of cutegen
// before it receives the answer.
struct Said {
  Said(std::string words) : text(std::move(words)) {}  // NOLINT
  Said(const char* words) : text(words) {}             // NOLINT
  std::string text;
  std::vector<llm::ToolCall> calls;
};

// The scripted model's answers in order. Each answer costs one cent.
struct Script {
  std::deque<Said> answers{};
  std::vector<llm::ChatRequest> asked{};
  bool tools = false;
};

inline llm::ToolCall call(const std::string& name, const Json& arguments = Json::object()) {
  return {.id = "id-" + name, .name = name, .arguments = arguments};
}

inline Said calls(std::vector<llm::ToolCall> wanted, const char* words = "") {
  Said out(words);
  out.calls = std::move(wanted);
  return out;
}

inline Json whole_files(int n) {
  return {{"kernel", source(n)}, {"plan", kPlan}};
}

class ScriptedModel final : public llm::ChatModel {
 public:
  explicit ScriptedModel(Script& script) : script_(script) {}
  Result<llm::ChatReply> chat(const Context& ctx, const llm::ChatRequest& request) override {
    CG_CHECK(ctx.check("asking"));
    script_.asked.push_back(request);
    if (script_.answers.empty()) return world_error("the script has ended");
    Said said = script_.answers.front();
    script_.answers.pop_front();
    if (said.text == "crash") throw Crash{};
    llm::ChatReply reply;
    reply.message = {
        .speaker = llm::Speaker::assistant, .text = said.text, .calls = std::move(said.calls)};
    if (!reply.message.calls.empty()) reply.stop = llm::Stop::tool;
    reply.usage = {.input = 1000, .output = 100};
    reply.cost_usd = 0.01;
    reply.model = "script";
    return reply;
  }
  const std::string& name() const override { return name_; }
  bool has_tools() const override { return script_.tools; }
  std::optional<double> most_usd(const llm::ChatRequest&) const override { return 0.01; }

 private:
  Script& script_;
  std::string name_ = "relay:script";
};

class AgentRun : public testing::Test {
 protected:
  AgentRun() : dir_(toy::scratch_path("agent")) { std::filesystem::create_directories(dir_); }
  ~AgentRun() override { std::filesystem::remove_all(dir_); }

  std::unique_ptr<store::Store> store() {
    auto s = store::Store::open(dir_ / "runs");
    EXPECT_TRUE(s) << s.error().text();
    return std::move(*s);
  }
  OptimizeSettings settings(int64_t evaluations) const {
    OptimizeSettings s;
    s.file = dir_ / "relu.py";
    s.model = "relay:script";
    s.search.budget.evaluations = evaluations;
    s.search.agents =
        search::AgentSettings{.dialect = Dialect::cuda, .chains = 1, .planner = false};
    return s;
  }
  Parts parts() {
    Parts p = world_.parts();
    p.open_model = [this](const OptimizeSettings&,
                          store::Store&) -> Result<std::unique_ptr<llm::ChatModel>> {
      return std::make_unique<ScriptedModel>(script_);
    };
    return p;
  }
  Result<RunResult> run(store::Store& s, const OptimizeSettings& wanted) {
    return optimize_with(parts(), {}, s, wanted, recorder_);
  }

  std::filesystem::path dir_;
  Script script_;
  toy::ToyWorld world_{.judge = [](int n, int) {
    return n == 2 ? toy::untimed(Status::failed, "out: wrong") : toy::timed(100.0 - n);
  }};
  toy::Recorder recorder_;
};

}  // namespace cutegen::engine::agent_test
