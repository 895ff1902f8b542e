// SPDX-License-Identifier: Apache-2.0
#include "llm/relay.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <cerrno>

#include "base/file.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/text.h"
#include "llm/chat_json.h"
#include "llm/client.h"
#include "llm/tokens.h"

namespace cutegen::llm {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMaxAnswer = size_t{4} << 20;
constexpr size_t kMaxQuestion = size_t{64} << 20;
constexpr int kMostQuestions = 1'000'000;
constexpr const char* kRequest = ".request.json";

// Identifies a question by its text and label, because a resumed run asks it again.
std::string identity(const ChatRequest& request) {
  return Hasher{}.field(request_hash(request)).field(request.label).hex();
}

bool is_number(const std::string& text) {
  return text.size() >= 4 && text.find_first_not_of("0123456789") == std::string::npos;
}

// Returns size and time of the last change; empty if there is no such file.
std::optional<std::pair<int64_t, int64_t>> state_of(const fs::path& path) {
  struct stat info{};
  if (::stat(path.c_str(), &info) != 0 || !S_ISREG(info.st_mode)) return std::nullopt;
  return std::pair{int64_t(info.st_size),
                   int64_t(info.st_mtim.tv_sec) * 1'000'000'000 + info.st_mtim.tv_nsec};
}

// The time since a file's last change, by the system clock, which also stamps files.
Nanoseconds age_of(int64_t changed_ns) {
  auto now = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<Nanoseconds>(now) - Nanoseconds(changed_ns);
}

void call_form(Fields& v, ToolCall& c) {
  v("name", c.name);
  v("arguments", c.arguments, field::object);
}

void reply_form(Fields& v, ChatReply& r) {
  v("text", r.message.text, field::may_lack);
  v.as("calls", r.message.calls, call_form, field::may_lack);
  v("refusal", r.detail, field::may_lack);
}

Result<void> write_program(const fs::path& dir, const std::map<std::string, std::string>& files) {
  if (files.empty()) return {};
  CG_CHECK(private_dir(dir));
  for (const auto& [name, text] : files) {
    CG_ASSERT(name == fs::path(name).filename() && !name.starts_with('.'));
    CG_CHECK(write_file(dir / name, text));
  }
  return {};
}

void append_message(std::string& out, const Message& message) {
  for (const ToolResult& result : message.results)
    out += fmt::format("\nResult of tool call {}{}:\n\n````\n{}\n````\n", result.call_id,
                       result.is_error ? " (an error)" : "", result.text);
  if (!message.text.empty()) out += "\n" + message.text + "\n";
  for (const ToolCall& call : message.calls)
    out += fmt::format("\nTool call {}: `{}` with\n\n```json\n{}\n```\n", call.id, call.name,
                       dump_json(call.arguments, 2));
}

}  // namespace

std::string relay_page(const ChatRequest& request, const std::string& number) {
  std::string out =
      fmt::format("# Question {}{}\n\n", number, request.label.empty() ? "" : ": " + request.label);
  out += fmt::format(
      "Write the answer to `{0}.answer.md` in this folder. The whole text of this file is the "
      "reply.\n",
      number);
  if (!request.tools.empty() && request.may_call)
    out += fmt::format(
        "To call tools, write `{0}.answer.json` instead: "
        "`{{\"text\": \"...\", \"calls\": [{{\"name\": \"...\", \"arguments\": {{}}}}]}}`.\n",
        number);
  if (!request.may_call) out += "You cannot call tools any more.\n";
  if (!request.files.empty())
    out += fmt::format("`{}.program/` contains the program in question.\n", number);
  out += fmt::format("Use at most {} tokens.\n", request.max_output_tokens);
  if (!request.system.empty())
    out +=
        "\n"
        "## Rules for every question\n"
        "\n" +
        request.system + "\n";
  for (const ToolSpec& tool : request.tools)
    out += fmt::format("\n## Tool `{}`\n\n{}\n\n```json\n{}\n```\n", tool.name, tool.description,
                       dump_json(tool.parameters, 2));
  if (!request.output_schema.is_null())
    out +=
        "\n## Form of the answer\n\nOne JSON object that fits this schema, and nothing "
        "else:\n\n```json\n" +
        dump_json(request.output_schema, 2) + "\n```\n";
  const Message* before = nullptr;
  for (const Message& message : request.messages) {
    bool user = message.speaker == Speaker::user;
    if (!before || before->speaker != message.speaker)
      out += user ? "\n## You are asked\n" : "\n## You answered\n";
    append_message(out, message);
    before = &message;
  }
  return out;
}

Result<ChatReply> relay_reply_from_json(const Json& json, const std::string& where) {
  CG_TRY(ChatReply reply, read_json_as<ChatReply>(json, reply_form, where));
  reply.message.speaker = Speaker::assistant;
  for (size_t i = 0; i < reply.message.calls.size(); ++i)
    reply.message.calls[i].id = "call_" + std::to_string(i + 1);
  if (!reply.detail.empty())
    reply.stop = Stop::refusal;
  else if (!reply.message.calls.empty())
    reply.stop = Stop::tool;
  else if (reply.message.text.empty())
    return user_error("the answer is empty", where, "give text, calls or refusal");
  return reply;
}

Result<std::unique_ptr<RelayModel>> RelayModel::open(const std::string& name, const fs::path& dir,
                                                     const RelaySettings& settings) {
  CG_CHECK(private_dir(dir));
  std::unique_ptr<RelayModel> model(new RelayModel(name, dir, settings));
  CG_CHECK(model->read_folder());
  return model;
}

// Reads the questions that are already in the folder.
Result<void> RelayModel::read_folder() {
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(dir_, error)) {
    std::string file = entry.path().filename().string();
    if (!file.ends_with(kRequest)) continue;
    std::string number = file.substr(0, file.size() - std::string(kRequest).size());
    if (!is_number(number)) continue;
    auto text = read_file(entry.path(), kMaxQuestion);
    auto json = text ? parse_json(*text, file) : Result<Json>(fail(text.error()));
    auto request =
        json ? read_json<ChatRequest>(*json, file) : Result<ChatRequest>(fail(json.error()));
    if (request)
      numbers_[identity(*request)] = number;
    else
      log_warning("{} is not a question of this version; cutegen leaves it alone", file);
  }
  if (error) return world_error("cannot read '" + dir_.string() + "': " + error.message());
  return {};
}

// Takes the next free number by creating its .md file, which only one process can do.
Result<std::string> RelayModel::claim() {
  for (int n = int(numbers_.size()) + 1; n < kMostQuestions; ++n) {
    std::string number = fmt::format("{:04}", n);
    UniqueFd fd(::open((dir_ / (number + ".request.md")).c_str(),
                       O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
    if (fd) return number;
    if (errno != EEXIST) return errno_error("cannot write into '" + dir_.string() + "'");
  }
  return world_error("the relay's folder is full", "give another folder");
}

// Writes the question unless the folder already has it, and returns its number.
Result<std::string> RelayModel::place(const ChatRequest& request) {
  std::lock_guard lock(mutex_);
  std::string id = identity(request);
  if (auto it = numbers_.find(id); it != numbers_.end()) return it->second;
  CG_TRY(std::string number, claim());
  CG_CHECK(write_program(dir_ / (number + ".program"), request.files));
  CG_CHECK(write_file(dir_ / (number + ".request.md"), relay_page(request, number)));
  CG_CHECK(write_file(dir_ / (number + kRequest), dump_json(to_json(request), 2) + "\n"));
  numbers_[id] = number;
  return number;
}

// Returns the text of NNNN.answer.md once the file has stopped changing.
std::optional<std::string> RelayModel::settled_text(const std::string& number) {
  fs::path path = dir_ / (number + ".answer.md");
  auto before = state_of(path);
  if (!before || before->first == 0 || age_of(before->second) < settings_.settled)
    return std::nullopt;
  auto text = read_file(path, kMaxAnswer);
  if (!text) {
    tell_problem(number, text.error().message);
    return std::nullopt;
  }
  if (state_of(path) != before || trim(*text).empty()) return std::nullopt;
  return *text;
}

Result<std::optional<ChatReply>> RelayModel::look(const std::string& number) {
  fs::path json_path = dir_ / (number + ".answer.json");
  if (auto state = state_of(json_path)) {
    auto text = read_file(json_path, kMaxAnswer);
    auto json = text ? parse_json(*text, json_path.filename().string(), kMaxAnswer)
                     : Result<Json>(fail(text.error()));
    auto reply = json ? relay_reply_from_json(*json, json_path.filename().string())
                      : Result<ChatReply>(fail(json.error()));
    if (reply) return std::optional(std::move(*reply));
    // A file that is still being written is not yet JSON.
    if (age_of(state->second) >= settings_.settled) tell_problem(number, reply.error().text());
    return std::optional<ChatReply>();
  }
  auto text = settled_text(number);
  if (!text) return std::optional<ChatReply>();
  ChatReply reply;
  reply.message.speaker = Speaker::assistant;
  reply.message.text = sanitize(*text, kMaxAnswer);
  return std::optional(std::move(reply));
}

void RelayModel::tell_problem(const std::string& number, const std::string& problem) const {
  fs::path path = dir_ / (number + ".problem.txt");
  if (auto old = read_file(path, kMaxAnswer); old && *old == problem + "\n") return;
  log_warning("{}: the answer cannot be used: {}", (dir_ / number).string(), problem);
  if (auto written = write_file(path, problem + "\n"); !written)
    log_warning("{}", written.error().text());
}

Result<ChatReply> RelayModel::chat(const Context& ctx, const ChatRequest& request) {
  CG_TRY(std::string number, place(request));
  std::string what = "waiting for " + (dir_ / (number + ".answer.md")).string();
  auto begin = Clock::now();
  for (;;) {
    CG_TRY(auto reply, look(number));
    if (reply) {
      std::error_code ignored;
      fs::remove(dir_ / (number + ".problem.txt"), ignored);
      reply->model = name_;
      reply->cost_usd = 0;
      reply->usage.input = estimate_tokens(request);
      reply->usage.output = estimate_tokens(reply->message);
      reply->usage.estimated = true;
      return std::move(*reply);
    }
    if (settings_.wait.count() > 0 && Clock::now() - begin >= settings_.wait)
      return world_error(
          "no answer came in " + std::to_string(settings_.wait.count()) + " min, " + what,
          "write the answer, then resume the run");
    CG_CHECK(wait_for(ctx, settings_.poll, what));
  }
}

}  // namespace cutegen::llm
