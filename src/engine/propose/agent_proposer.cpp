// SPDX-License-Identifier: Apache-2.0
#include "engine/propose/agent_proposer.h"

#include <fmt/format.h>

#include "agent/changes.h"
#include "agent/edit.h"
#include "agent/grounded.h"
#include "agent/hints.h"
#include "agent/roles.h"
#include "agent/test_proposals.h"
#include "base/text.h"
#include "engine/propose/command_proposer.h"
#include "eval/source/lint.h"

namespace cutegen::engine {
namespace {

// The next functions build a question from the strategy's context and the run's events.
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

// Whether the question may show the candidate. If the strategy lists candidates (`window`), it may
// show only these.
bool in_window(const Json& context, const std::string& id) {
  auto window = context.find("window");
  return window == context.end() || !window->is_array() ||
         std::ranges::find(*window, Json(id)) != window->end();
}

std::vector<agent::Attempt> attempts_of(const Json& context, const RunView& run) {
  std::vector<agent::Attempt> out;
  for (const RunStep& step : run.steps) {
    if (!in_window(context, step.candidate.id)) continue;
    // Skip drafts of the open question, so that a resumed run asks the same question again.
    if (!step.verdict || run.is_open_draft(step)) continue;
    agent::Attempt a{.id = step.candidate.id,
                     .parent = step.candidate.parent.value_or(""),
                     .summary = step.candidate.edit.summary,
                     .status = step.verdict->status,
                     .headline = step.verdict->feedback.headline,
                     .time_ns = step.time_ns(),
                     .kept = step.decision == Decision::accepted};
    out.push_back(std::move(a));
  }
  return out;
}

bool writes(const agent::Question& q) {
  return q.role == Role::coder || q.role == Role::debugger;
}

agent::Question question_of(const search::Ask& ask, const RunView& run) {
  agent::Question q;
  q.role = ask.role;
  // cutegen's strategies write a known purpose; any other text means none.
  q.purpose = parse_purpose(text_of(ask.context, "purpose"), {}).value_or(Purpose::none);
  q.stage = parse_stage(text_of(ask.context, "stage"), {}).value_or(Stage::none);
  q.approach = text_of(ask.context, "approach");
  q.advice = text_of(ask.context, "advice");
  q.reading = text_of(ask.context, "reading");
  q.grounded = flag_of(ask.context, "grounded", false);
  q.family = text_of(ask.context, "family");
  q.profile = flag_of(ask.context, "profile", false);
  q.repair = count_of(ask.context, "repair", 0);
  q.approaches = count_of(ask.context, "approaches", 1);
  if (auto tests = ask.context.find("tests"); tests != ask.context.end() && tests->is_array())
    for (const Json& test : *tests)
      if (test.is_string()) q.tests.push_back(test.get<std::string>());
  if (const RunStep* step = run.find(text_of(ask.context, "parent"))) {
    q.subject = &step->candidate;
    if (step->verdict) q.verdict = &*step->verdict;
  }
  if (!flag_of(ask.context, "memory", true)) return q;
  q.history = attempts_of(ask.context, run);
  const RunStep* best = run.incumbent();
  if (best && in_window(ask.context, best->candidate.id)) {
    q.best = best->candidate.id;
    q.best_ns = best->time_ns();
    if (!q.subject && writes(q)) q.other = &best->candidate;
  }
  return q;
}

// Chooses the program that questions about a candidate show in full: the one chosen for its parent
// if few lines changed since, else the candidate. Depends only on the programs, so a resumed run
// asks the same questions.
class Bases {
 public:
  const Candidate& of(const RunStep& step, const RunView& run) {
    const std::string& id = step.candidate.id;
    if (auto known = known_.find(id); known != known_.end())
      return run.find(known->second)->candidate;
    const Candidate* base = &step.candidate;
    if (const RunStep* parent = run.find(step.candidate.parent.value_or(""))) {
      const Candidate& earlier = of(*parent, run);
      if (agent::changes_text(earlier.program, step.candidate.program)) base = &earlier;
    }
    known_[id] = base->id;
    return *base;
  }

 private:
  std::map<std::string, std::string> known_;
};

std::string label_of(const agent::Question& question, const RunView& run, int attempt,
                     const agent::ToolDesk* desk) {
  std::string out =
      fmt::format("{} ask {} try {}", to_string(question.role), run.answers + 1, attempt);
  if (desk && desk->calls() > 0) out += fmt::format(" after {} calls", desk->calls());
  return out;
}

bool calls_tools(const llm::ChatReply& reply, const agent::ToolDesk* desk) {
  return desk && desk->calls_left() > 0 && !reply.message.calls.empty() &&
         reply.stop != llm::Stop::refusal;
}

// APIs demand a result for each tool call, even for one that was not allowed.
void ask_again(llm::ChatRequest& request, const llm::ChatReply& reply, std::string text) {
  llm::Message again{.text = std::move(text)};
  for (const llm::ToolCall& call : reply.message.calls)
    again.results.push_back({.call_id = call.id,
                             .text = "not done: this question has no calls left",
                             .is_error = true});
  if (!reply.message.text.empty() || !reply.message.calls.empty())
    request.messages.push_back(reply.message);
  request.messages.push_back(std::move(again));
}

Answer unusable(const agent::Reask& why, const std::vector<std::string>& reasks) {
  Answer answer;
  answer.unusable = true;
  answer.reason = why.reason + ": " + sanitize(why.text, 300);
  answer.reasks = reasks;
  return answer;
}

Result<Answer> recipe_answer(const Context& ctx, const agent::TaskBrief& brief) {
  eval::OpenedTask task{.task = brief.task};
  task.gpu = brief.gpu.id;
  CG_TRY(auto builtin, make_proposer("builtin", task));
  CG_TRY(Answer answer,
         builtin->answer(ctx, search::Ask{.role = Role::coder, .context = {{"purpose", "first"}}},
                         RunView{}));
  if (!answer.candidate) answer.unusable = true;
  return answer;
}

// Finds faults without a compiler. The evaluator's verdict reports broken policy rules.
std::vector<Error> faults_of(const KernelProgram& program, const agent::TaskBrief& brief) {
  std::vector<Error> out = check_plan(program.plan, brief.task);
  for (const eval::LintFinding& finding : eval::lint_program(program))
    if (!finding.rule) out.push_back(finding.error);
  auto certain = agent::certain_faults(program, brief.gpu);
  out.insert(out.end(), certain.begin(), certain.end());
  if (program.plan.dialect != brief.dialect)
    out.push_back(
        {.kind = ErrorKind::user,
         .message = std::string("the dialect is '") + to_string(program.plan.dialect) + "'",
         .where = "plan.json#/dialect",
         .remedy = std::string("this run wants \"") + to_string(brief.dialect) + "\""});
  return out;
}

std::optional<agent::Reask> tried_before(const KernelProgram& program, const RunView& run) {
  std::string id = program_id(program);
  for (const RunStep& step : run.steps)
    if (!run.is_open_draft(step) && program_id(step.candidate.program) == id)
      return agent::Reask{.reason = "repeated",
                          .text = "This program is the same as " + step.candidate.id +
                                  ", which the run tried before. Make another change."};
  return std::nullopt;
}

// Checks that a grounded answer changes only the spans of its plan.
tl::expected<void, agent::Reask> keeps_the_rest(const agent::Question& question,
                                                const KernelProgram& program) {
  if (!question.grounded || !question.subject) return {};
  auto spans = agent::parse_spans(question.advice, question.subject->program);
  if (!spans) return tl::unexpected(spans.error());
  return agent::check_outside(*spans, question.subject->program, program);
}

class AgentProposer final : public Proposer {
 public:
  AgentProposer(llm::RunModel& model, RunTools& tools, const OptimizeSettings& settings,
                agent::TaskBrief brief)
      : model_(model),
        tools_(tools),
        origin_(settings.model),
        settings_(settings.model_settings),
        brief_(std::move(brief)) {
    limits_.tokens = settings_.prompt_tokens;
    limits_.prefix_tokens = settings_.prompt_tokens * 5 / 8;
    limits_.tool_calls = settings_.tool_calls;
  }

  Result<Answer> answer(const Context& ctx, const search::Ask& ask, const RunView& run) override {
    if (ask.role == Role::recipe) return recipe_answer(ctx, brief_);
    agent::Question question = question_of(ask, run);
    // With `memory` off, the question shows no other attempts.
    const RunStep* subject = question.subject ? run.find(question.subject->id) : nullptr;
    if (subject && flag_of(ask.context, "memory", true)) question.base = &bases_.of(*subject, run);
    std::unique_ptr<agent::ToolHost> host;
    std::optional<agent::ToolDesk> desk;
    if (settings_.tools != ToolsMode::off) {
      host = tools_.begin_ask(run, question, flag_of(ask.context, "memory", true));
      desk.emplace(setting_of(question, run), *host);
      limits_.tools = agent::tool_specs(offer_of(question));
    }
    temperature_ = settings_.temperature;
    if (auto own = ask.context.find("temperature");
        !temperature_ && own != ask.context.end() && own->is_number())
      temperature_ = own->get<double>();
    CG_TRY(Answer answer, converse(ctx, question, run, desk ? &*desk : nullptr));
    if (!desk || !writes(question)) return answer;
    CG_TRY(answer.candidate, desk->choose(ctx, std::move(answer.candidate)));
    if (answer.candidate) answer.unusable = false;
    return answer;
  }

 private:
  using Read = tl::expected<Answer, agent::Reask>;

  // Leads the dialogue about one question: tool calls, repeated questions, the answer.
  Result<Answer> converse(const Context& ctx, const agent::Question& question, const RunView& run,
                          agent::ToolDesk* desk) {
    llm::ChatRequest request = agent::make_request(brief_, question, limits_);
    request.effort = settings_.effort;
    request.temperature = temperature_;
    llm::ChatModel& model = model_.begin_ask();
    Answer given;
    for (int attempt = 1;;) {
      request.label = label_of(question, run, attempt, desk);
      request.may_call = !desk || desk->calls_left() > 0;
      auto reply = model.chat(ctx, request);
      if (!reply && llm::is_budget_end(reply.error())) {
        given.reason = reply.error().message;
        return given;
      }
      if (!reply) return fail(reply.error());
      if (calls_tools(*reply, desk)) {
        CG_TRY(auto results, desk->answer(ctx, reply->message.calls));
        request.messages.push_back(reply->message);
        desk->tell_as_changes(request.messages.back());
        request.messages.push_back({.results = std::move(results)});
        continue;
      }
      auto read = read_reply(*reply, question, run, desk);
      if (read) {
        read->reasks = given.reasks;
        return std::move(*read);
      }
      given.reasks.push_back(read.error().reason);
      if (attempt > settings_.reasks || reply->stop == llm::Stop::refusal)
        return unusable(read.error(), given.reasks);
      ask_again(request, *reply,
                agent::reask_text(read.error(), writes(question) && attempt == settings_.reasks));
      ++attempt;
    }
  }

  // Offers only tools that can succeed: planners and judges write no program, and without a program
  // there is nothing to compare.
  agent::Offer offer_of(const agent::Question& question) const {
    const bool writer = writes(question), evaluates = writer && settings_.tools == ToolsMode::on;
    const bool profiled = question.verdict && question.verdict->profile;
    return {.compile = writer,
            .evaluate = evaluates,
            .profile = question.profile && (profiled || evaluates),
            .diff_best = writer && (question.subject || !question.best.empty())};
  }

  agent::ToolSetting setting_of(const agent::Question& question, const RunView& run) const {
    agent::ToolSetting set;
    set.question = question;
    set.floor_ns = brief_.floor_ns;
    set.origin = origin_;
    set.check = [this](const KernelProgram& p) { return faults_of(p, brief_); };
    bool knows = !question.history.empty();
    set.tried = [&run, knows](const KernelProgram& p) -> std::optional<agent::Reask> {
      return knows ? tried_before(p, run) : std::nullopt;
    };
    set.limits = tools_.limits(run);
    set.offer = offer_of(question);
    return set;
  }

  Read read_reply(const llm::ChatReply& reply, const agent::Question& question, const RunView& run,
                  const agent::ToolDesk* desk) const {
    if (reply.stop == llm::Stop::refusal)
      return tl::unexpected(agent::Reask{
          .reason = "refusal", .text = "the model declined: " + sanitize(reply.detail, 200)});
    if (question.role == Role::tester) {
      auto tests = agent::parse_test_cases(reply.message.text, brief_.task);
      if (!tests) return tl::unexpected(tests.error());
      Answer answer;
      answer.tests = std::move(*tests);
      return answer;
    }
    if (!writes(question)) {
      auto advice = agent::parse_advice(reply.message.text, question);
      if (!advice) return tl::unexpected(advice.error());
      if (question.grounded && question.subject)
        if (auto spans = agent::parse_spans(advice->front(), question.subject->program); !spans)
          return tl::unexpected(spans.error());
      Answer answer;
      answer.advice = std::move(*advice);
      return answer;
    }
    return read_program(reply, question, run, desk);
  }

  Read read_program(const llm::ChatReply& reply, const agent::Question& question,
                    const RunView& run, const agent::ToolDesk* desk) const {
    const KernelProgram* base = question.subject ? &question.subject->program : nullptr;
    if (std::string name = agent::named_draft(reply.message.text); !name.empty()) {
      const agent::Draft* draft = desk ? desk->drafts().find(name) : nullptr;
      if (!draft)
        return tl::unexpected(
            agent::Reask{.reason = "no_draft",
                         .text = fmt::format("There is no draft '{}'; there are: {}.", name,
                                             desk ? desk->drafts().names() : "none")});
      base = &draft->candidate.program;
    }
    auto parsed = agent::parse_reply(reply.message.text, base, reply.stop == llm::Stop::length);
    if (!parsed) return tl::unexpected(parsed.error());
    tl::expected<KernelProgram, agent::Reask> program = tl::unexpected(agent::Reask{});
    if (parsed->changes.empty())
      program = *base;
    else
      program = agent::apply_reply(*parsed, base,
                                   [this](const KernelProgram& p) { return faults_of(p, brief_); });
    if (!program) return tl::unexpected(program.error());
    if (auto kept = keeps_the_rest(question, *program); !kept) return tl::unexpected(kept.error());
    if (!question.history.empty())
      if (auto tried = tried_before(*program, run)) return tl::unexpected(*tried);
    Answer answer;
    Candidate c;
    if (question.subject) c.parent = question.subject->id;
    c.edit.summary =
        parsed->summary.empty()
            ? fmt::format("{} by the {}", to_string(question.purpose), to_string(question.role))
            : parsed->summary;
    c.edit.rationale = parsed->rationale;
    c.edit.origin = origin_;
    c.program = std::move(*program);
    answer.candidate = std::move(c);
    return answer;
  }

  llm::RunModel& model_;
  RunTools& tools_;
  std::string origin_;  // the model as the user named it
  ModelSettings settings_;
  agent::TaskBrief brief_;
  agent::PromptLimits limits_;
  std::optional<double> temperature_;  // of the open question; the user's setting overrides it
  Bases bases_;
};

}  // namespace

bool asks_model(const OptimizeSettings& settings) {
  return proposer_kind(settings.model) == ProposerKind::model;
}

ToolsMode settle_tools(const OptimizeSettings& settings, const llm::ChatModel& model) {
  const ToolsMode wanted = settings.model_settings.tools;
  if (wanted != ToolsMode::automatic) return wanted;
  if (!model.has_tools()) return ToolsMode::off;
  switch (search::tool_scope(settings.strategy, settings.search)) {
    case search::ToolScope::all:
      return ToolsMode::on;
    case search::ToolScope::compile:
      return ToolsMode::compile;
    case search::ToolScope::none:
      break;
  }
  return ToolsMode::off;
}

Result<std::unique_ptr<Proposer>> make_agent_proposer(llm::RunModel& model, RunTools& tools,
                                                      const OptimizeSettings& settings,
                                                      const eval::OpenedTask& task) {
  agent::TaskBrief brief{.task = task.task,
                         .gpu = {},
                         .device = settings.evaluator.device,
                         .floor_ns = task.floor_ns,
                         .bound_by = task.floor_bound_by};
  brief.reachable_ns = task.reachable_ns, brief.roofline_ns = task.roofline_ns;
  CG_TRY(brief.gpu, find_gpu(task.gpu.empty() ? settings.evaluator.device.model : task.gpu));
  if (settings.search.agents) brief.dialect = settings.search.agents->dialect;
  return std::make_unique<AgentProposer>(model, tools, settings, std::move(brief));
}

}  // namespace cutegen::engine
