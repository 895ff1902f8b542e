// SPDX-License-Identifier: Apache-2.0
#include "engine/agent_proposer.h"

#include <fmt/format.h>

#include "agent/edit.h"
#include "agent/hints.h"
#include "agent/roles.h"
#include "base/text.h"
#include "engine/command_proposer.h"
#include "eval/lint.h"

namespace cutegen {
namespace {

// The question's matter, from the strategy's words and the run's events.
std::string text_of(const Json& context, const char* key) {
  auto it = context.find(key);
  return it != context.end() && it->is_string() ? it->get<std::string>() : std::string();
}

int count_of(const Json& context, const char* key, int fallback) {
  auto it = context.find(key);
  return it != context.end() && it->is_number_integer() ? it->get<int>() : fallback;
}

bool flag_of(const Json& context, const char* key, bool fallback) {
  auto it = context.find(key);
  return it != context.end() && it->is_boolean() ? it->get<bool>() : fallback;
}

std::vector<Attempt> attempts_of(const RunView& run) {
  std::vector<Attempt> out;
  for (const RunStep& step : run.steps) {
    if (!step.verdict) continue;
    Attempt a{step.candidate.id,
              step.candidate.parent.value_or(""),
              step.candidate.edit.summary,
              step.verdict->status,
              step.verdict->feedback.headline,
              step.time_ns(),
              step.decision == Decision::accepted};
    out.push_back(std::move(a));
  }
  return out;
}

Question question_of(const Ask& ask, const RunView& run) {
  Question q;
  q.role = ask.role;
  q.purpose = text_of(ask.context, "purpose");
  q.stage = text_of(ask.context, "stage");
  q.approach = text_of(ask.context, "approach");
  q.advice = text_of(ask.context, "advice");
  q.profile = flag_of(ask.context, "profile", false);
  q.repair = count_of(ask.context, "repair", 0);
  q.approaches = count_of(ask.context, "approaches", 1);
  if (const RunStep* step = run.find(text_of(ask.context, "parent"))) {
    q.subject = &step->candidate;
    if (step->verdict) q.verdict = &*step->verdict;
  }
  if (flag_of(ask.context, "memory", true)) q.history = attempts_of(run);
  return q;
}

class AgentProposer final : public Proposer {
 public:
  AgentProposer(llm::RunModel& model, const std::string& origin, const ModelSettings& settings,
                TaskBrief brief)
      : model_(model), origin_(origin), settings_(settings), brief_(std::move(brief)) {
    limits_.tokens = settings.prompt_tokens;
    limits_.prefix_tokens = settings.prompt_tokens * 5 / 8;
  }

  Result<Answer> answer(const Context& ctx, const Ask& ask, const RunView& run) override {
    if (ask.role == "recipe") return recipe(ctx);
    Question question = question_of(ask, run);
    llm::ChatRequest request = make_request(brief_, question, limits_);
    request.effort = settings_.effort;
    request.temperature = settings_.temperature;
    llm::ChatModel& model = model_.begin_ask();
    std::vector<std::string> reasks;
    for (int attempt = 1;; ++attempt) {
      request.label = fmt::format("{} ask {} try {}", ask.role, run.answers + 1, attempt);
      auto reply = model.chat(ctx, request);
      if (!reply && llm::is_budget_end(reply.error())) return Answer{{}, reply.error().message};
      if (!reply) return fail(reply.error());
      auto read = read_reply(*reply, question, run);
      if (read) {
        read->reasks = reasks;
        return std::move(*read);
      }
      reasks.push_back(read.error().reason);
      if (attempt > settings_.reasks || reply->stop == llm::Stop::refusal)
        return unusable(read.error(), reasks);
      if (!reply->message.text.empty()) request.messages.push_back(reply->message);
      request.messages.push_back(
          {.text = reask_text(read.error(), writes(question) && attempt == settings_.reasks)});
    }
  }

 private:
  using Read = tl::expected<Answer, Reask>;

  static bool writes(const Question& q) { return q.role == "coder" || q.role == "debugger"; }

  static Answer unusable(const Reask& why, const std::vector<std::string>& reasks) {
    Answer answer;
    answer.unusable = true;
    answer.reason = why.reason + ": " + sanitize(why.text, 300);
    answer.reasks = reasks;
    return answer;
  }

  Result<Answer> recipe(const Context& ctx) const {
    CG_TRY(auto builtin, make_proposer("builtin", brief_.task));
    CG_TRY(Answer answer, builtin->answer(ctx, Ask{"coder", {{"purpose", "first"}}}, RunView{}));
    if (!answer.candidate) answer.unusable = true;
    return answer;
  }

  Read read_reply(const llm::ChatReply& reply, const Question& question, const RunView& run) const {
    if (reply.stop == llm::Stop::refusal)
      return tl::unexpected(Reask{"refusal", "the model declined: " + sanitize(reply.detail, 200)});
    if (!writes(question)) {
      auto advice = parse_advice(reply.message.text, question);
      if (!advice) return tl::unexpected(advice.error());
      Answer answer;
      answer.advice = std::move(*advice);
      return answer;
    }
    const KernelProgram* base = question.subject ? &question.subject->program : nullptr;
    auto parsed = parse_reply(reply.message.text, base, reply.stop == llm::Stop::length);
    if (!parsed) return tl::unexpected(parsed.error());
    auto program =
        apply_reply(*parsed, base, [this](const KernelProgram& p) { return faults_of(p); });
    if (!program) return tl::unexpected(program.error());
    if (!question.history.empty())
      if (auto tried = tried_before(*program, run)) return tl::unexpected(*tried);
    Answer answer;
    Candidate c;
    if (question.subject) c.parent = question.subject->id;
    c.edit.summary =
        parsed->summary.empty() ? question.purpose + " by the " + question.role : parsed->summary;
    c.edit.rationale = parsed->rationale;
    c.edit.origin = origin_;
    c.program = std::move(*program);
    answer.candidate = std::move(c);
    return answer;
  }

  // What can be said without a compiler. Broken rules are left to the evaluator's verdict.
  [[nodiscard]] std::vector<Error> faults_of(const KernelProgram& program) const {
    std::vector<Error> out = check_plan(program.plan, brief_.task);
    for (const LintFinding& finding : lint_program(program))
      if (!finding.rule) out.push_back(finding.error);
    auto certain = certain_faults(program, brief_.gpu);
    out.insert(out.end(), certain.begin(), certain.end());
    if (program.plan.dialect != brief_.dialect)
      out.push_back({ErrorKind::user, "the dialect is '" + program.plan.dialect + "'",
                     "plan.json#/dialect", "this run wants \"" + brief_.dialect + "\""});
    return out;
  }

  static std::optional<Reask> tried_before(const KernelProgram& program, const RunView& run) {
    std::string id = program_id(program);
    for (const RunStep& step : run.steps)
      if (program_id(step.candidate.program) == id)
        return Reask{"repeated", "This program is the same as " + step.candidate.id +
                                     ", which was tried before. Make another change."};
    return std::nullopt;
  }

  llm::RunModel& model_;
  std::string origin_;  // the model as the user named it
  ModelSettings settings_;
  TaskBrief brief_;
  PromptLimits limits_;
};

}  // namespace

bool asks_model(const OptimizeSettings& settings) {
  return settings.model != "builtin" && !settings.model.starts_with(kCommandModel);
}

Result<std::unique_ptr<Proposer>> make_agent_proposer(llm::RunModel& model,
                                                      const OptimizeSettings& settings,
                                                      const OpenedTask& task) {
  TaskBrief brief{task.task, {}, settings.evaluator.device, task.floor_ns, task.floor_bound_by};
  std::string device = settings.evaluator.device;
  CG_TRY(brief.gpu, find_gpu(device.starts_with("sim:") ? device.substr(4) : device));
  if (settings.search.agents) brief.dialect = settings.search.agents->dialect;
  return std::make_unique<AgentProposer>(model, settings.model, settings.model_settings,
                                         std::move(brief));
}

}  // namespace cutegen
