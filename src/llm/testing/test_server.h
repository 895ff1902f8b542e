// SPDX-License-Identifier: Apache-2.0
// For tests: starts tests/tools/model_server.py, a model server with scripted answers. All tests of
// a test program share one process of the model server.
//
// Example: TestModel m("anthropic", {{"steps", {{{"text", "hi"}}}}}); m->chat({}, request);
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <string>

#include "base/file.h"
#include "llm/http.h"
#include "llm/models.h"

extern char** environ;

namespace cutegen::llm {

inline constexpr const char* kTestKey = "sk-secret-of-the-tests-0123456789";

class TestServer {
 public:
  static TestServer& instance() {
    static TestServer server;
    return server;
  }
  // Posts a JSON body to a path and returns the server's answer.
  Json post(const std::string& path, const Json& body) {
    HttpOutcome out = http_.post(Context{}, {.url = base_ + path, .body = dump_json(body)}, {});
    EXPECT_EQ(out.status, 200) << out.body;
    auto json = parse_json(out.body, path);
    return json ? *json : Json();
  }
  const std::string& base() const { return base_; }

 private:
  TestServer() {
    std::array<int, 2> in{}, out{};
    CG_ASSERT(::pipe2(in.data(), O_CLOEXEC) == 0 && ::pipe2(out.data(), O_CLOEXEC) == 0);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, in[0], 0);
    posix_spawn_file_actions_adddup2(&actions, out[1], 1);
    std::string script = std::string(CUTEGEN_SOURCE_DIR) + "/tests/tools/model_server.py";
    std::string python = "python3", flag = "-B";
    std::array<char*, 4> arguments{python.data(), flag.data(), script.data(), nullptr};
    CG_ASSERT(::posix_spawnp(&pid_, "python3", &actions, nullptr, arguments.data(), environ) == 0);
    posix_spawn_file_actions_destroy(&actions);
    ::close(in[0]);
    ::close(out[1]);
    stdin_ = UniqueFd(in[1]);
    UniqueFd read_end(out[0]);
    std::string line;
    for (char c = 0; ::read(read_end.get(), &c, 1) == 1 && c != '\n';) line += c;
    CG_ASSERT(line.starts_with("port "));
    base_ = "http://127.0.0.1:" + line.substr(5);
  }
  ~TestServer() {
    stdin_.reset();
    ::waitpid(pid_, nullptr, 0);
  }
  pid_t pid_ = -1;
  UniqueFd stdin_;
  std::string base_;
  Http http_;
};

// TestModel is like a model of a real provider, but its requests go to the test server, which
// returns scripted answers.
class TestModel {
 public:
  TestModel(const std::string& provider, const Json& script, ModelConfig config = quick()) {
    static std::atomic<int> count = 0;
    path_ = "/t" + std::to_string(++count);
    TestServer::instance().post(path_, script);
    config.url = url();
    auto model = open_model(
        provider + ":" + (provider == "anthropic" ? "claude-opus-4-5" : "gpt-5"), config);
    EXPECT_TRUE(model) << model.error().text();
    if (model) model_ = std::move(*model);
  }
  static ModelConfig quick() {
    ModelConfig config;
    config.first_wait = std::chrono::milliseconds(1);
    config.idle = std::chrono::seconds(20);
    config.environment = {{"OPENAI_API_KEY", kTestKey}, {"ANTHROPIC_API_KEY", kTestKey}};
    return config;
  }
  ChatModel* operator->() const { return model_.get(); }
  ChatModel& operator*() const { return *model_; }
  std::string url() const { return TestServer::instance().base() + path_ + "/v1"; }
  // Returns the requests that the server has received: [{api, headers, body, did}].
  Json log() const { return TestServer::instance().post(path_ + "/log", {}); }
  Json body(size_t i) const { return log().at(i).at("body"); }

 private:
  std::string path_;
  std::unique_ptr<ChatModel> model_;
};

inline ChatRequest question(const std::string& text = "What is 6 times 7?") {
  ChatRequest request;
  request.system = "Be brief.";
  request.messages.push_back({.text = text});
  request.max_output_tokens = 1000;
  request.label = "test";
  return request;
}

}  // namespace cutegen::llm
