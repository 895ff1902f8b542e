// SPDX-License-Identifier: Apache-2.0
#include "engine/run/loop.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/file.h"
#include "base/hash.h"
#include "base/log.h"
#include "core/kernel_side.h"
#include "engine/propose/agent_proposer.h"
#include "engine/propose/command_proposer.h"
#include "engine/propose/run_tools.h"
#include "engine/record/end_data.h"
#include "engine/record/event_data.h"
#include "engine/record/step_data.h"
#include "engine/run/complete_best.h"
#include "engine/run/look_up_baselines.h"
#include "engine/run/out_folder.h"
#include "eval/api/expect_children.h"
#include "llm/run_model.h"

namespace cutegen::engine {
namespace {

using EvaluatorPtr = std::unique_ptr<eval::EvaluatorClient>;

// The program that a GPU times alternately with a candidate: the incumbent, unless it is the
// candidate.
std::optional<KernelProgram> rival_of(const std::string& candidate, const RunView& view) {
  const RunStep* best = view.incumbent();
  const bool timed = best && best->verdict && best->verdict->timing &&
                     best->verdict->timing->origin == Origin::measured;
  if (!timed || best->candidate.id == candidate) return std::nullopt;
  return best->candidate.program;
}

// If the evaluator cannot answer, cutegen failed, not the candidate. The strategy decides whether
// to retry.
Verdict aborted(const Error& error, const RunView& view) {
  Verdict v;
  v.task_id = view.task->task.id;
  v.device = view.settings.evaluator.device.text();
  v.feedback.headline = error.message;
  v.feedback.detail = error.text();
  return v;
}

// Tells the evaluator that the next programs will begin with the same text as the incumbent. This
// is true if a model or a command edits the incumbent, but not for recipes, whose programs differ
// in their first lines. The plateau limits how many programs can follow before the incumbent
// changes or the run ends.
void expect_children(const Context& ctx, eval::EvaluatorClient& evaluator, const RunView& view) {
  const RunStep* best = view.incumbent();
  if (!best || view.finished || proposer_kind(view.settings.model) == ProposerKind::builtin) return;
  const search::StrategySettings& search = view.settings.search;
  const int64_t left = search.budget.evaluations - view.evaluations;
  const auto count = int(std::min<int64_t>(left, search.plateau));
  if (count > 0)
    eval::expect_children(
        evaluator, ctx,
        {.parent = best->candidate.program, .count = count, .task = view.task->task.id});
}

Result<void> save_best(const RunView& view) {
  const RunStep* best = view.incumbent();
  if (!best || !best->verdict || view.settings.out.empty()) return {};
  return save_out_folder(view.settings.out, best->candidate, *best->verdict,
                         view.best_certificate());
}

// The data of the event `compared`; empty if there is nothing to compare.
std::optional<Json> comparison_of(const RunView& view) {
  auto best = view.gain();
  if (!best) return std::nullopt;
  const double own_ns = *view.incumbent()->time_ns();
  Json against = Json::array();
  for (const BaselineGain& g : gains(*view.baselines, view.task->task.math_mode, own_ns))
    against.push_back(to_json(g));
  return Json{{"candidate", view.best},
              {"time_ns", own_ns},
              {"against", std::move(against)},
              {"best", to_json(*best)}};
}

class RunLoop : private llm::CallSink {
 public:
  RunLoop(const Parts& parts, const Context& ctx, std::unique_ptr<store::RunJournal> journal,
          const OptimizeSettings& settings, std::unique_ptr<llm::ChatModel> client,
          RunObserver& observer, int64_t started_ms)
      : parts_(parts),
        ctx_(ctx),
        model_(std::move(client),
               {.usd = settings.model_settings.usd,
                .tokens = settings.model_settings.tokens,
                .evaluations = 0,
                .minutes = settings.search.budget.minutes},
               *this),
        tools_([this](auto&&... given) { return judge(given...); }, *this),
        journal_(std::move(journal)),
        observer_(observer),
        started_ms_(started_ms) {}

  Result<void> recall(const std::vector<Event>& events) {
    for (const Event& event : events) {
      CG_CHECK(fold(event));
    }
    clock_base_ms_ = walk_.view().clock_ms;
    return {};
  }

  // Commits an event, then shows it to the strategy and the observer.
  Result<void> record(EventType type, const Json& given) override {
    Json data = given;
    data["clock_ms"] = clock_ms();
    CG_TRY(Event event, journal_->append(type, data));
    CG_CHECK(fold(event));
    observer_.on_event(event);
    return {};
  }

  // On a GPU, records the baselines once before the first step, so that the user sees what can be
  // gained.
  Result<void> say_baselines(eval::EvaluatorClient& evaluator) {
    if (view().baselines || !parts_.find_baselines || !wants_baselines(view().settings)) return {};
    auto found = look_up_baselines(parts_, ctx_, evaluator, *view().task, observer_);
    if (!found) return {};  // the Context ended; the first step will interrupt the run
    return record(EventType::baselines, to_json(*found));
  }

  Result<RunResult> drive(EvaluatorPtr evaluator) {
    evaluator_ = std::move(evaluator);
    CG_CHECK(open_proposer());
    CG_CHECK(save_best(view()));  // a crash may have prevented the save
    expect_children(ctx_, *evaluator_, view());
    while (!view().finished) {
      if (ctx_.done()) return interrupted();
      const search::Action* open = walk_.next();
      CG_ASSERT(open);
      CG_TRY(bool stopped, perform(search::Action(*open)));
      if (stopped) return interrupted();
    }
    return outcome_of(view(), journal_->id());
  }

  // The run stays resumable; the reason is for people.
  Result<RunResult> interrupted() {
    const Interrupted why{.reason = ctx_.stopped() ? "stopped" : "out of time"};
    CG_CHECK(record(EventType::interrupted, to_json(why)));
    return outcome_of(view(), journal_->id());
  }

  const RunView& view() const { return walk_.view(); }

 private:
  int64_t clock_ms() const { return clock_base_ms_ + parts_.now_ms() - started_ms_; }

  Result<void> fold(const Event& event) {
    CG_CHECK(model_.fold(event.type, event.data));
    CG_CHECK(tools_.fold(event.type, event.data));
    return walk_.step(event);
  }

  Result<void> open_proposer() {
    if (asks_model(view().settings)) {
      CG_TRY(proposer_, make_agent_proposer(model_, tools_, view().settings, *view().task));
    } else {
      CG_TRY(proposer_, parts_.make_proposer(view().settings, *view().task));
    }
    return {};
  }

  // Returns true if the context ended during the action; the action then stays open.
  Result<bool> perform(const search::Action& action) {
    if (std::holds_alternative<search::Finish>(action)) {
      CG_TRY(bool stopped, complete_best());
      if (stopped) return true;
      if (auto compared = comparison_of(view())) CG_CHECK(record(EventType::compared, *compared));
    }
    CG_CHECK(record(search::event_type(action), search::event_data(action)));
    if (const search::Ask* ask = std::get_if<search::Ask>(&action)) return perform_ask(*ask);
    if (const search::Evaluate* evaluate = std::get_if<search::Evaluate>(&action))
      return perform_evaluate(*evaluate);
    if (std::holds_alternative<search::Accept>(action)) {
      CG_CHECK(save_best(view()));
      expect_children(ctx_, *evaluator_, view());
    }
    return false;
  }

  // Profiles and certifies the best program. Returns true if the context ended meanwhile.
  Result<bool> complete_best() {
    if (wants_profile(view())) {
      eval::EvaluateRequest request{.program = view().incumbent()->candidate.program,
                                    .up_to = Rung::profile,
                                    .profile = true};
      auto judged = judge(ctx_, request, view().best + " profile: ");
      if (!judged) return true;
      CG_CHECK(record(EventType::profiled,
                      to_json(profile_of(view().best, std::move(judged->verdict)))));
    }
    if (!wants_certificate(view())) return false;
    const Nanoseconds limit = certify_limit(view(), clock_ms());
    const Certifying started{.candidate = view().best, .limit_ms = limit.count() / 1'000'000};
    CG_CHECK(record(EventType::certifying, to_json(started)));
    const BestCertificate made = certificate_of(ctx_, view(), *evaluator_, limit, observer_);
    if (!made.certificate && ctx_.done()) return true;
    CG_CHECK(record(EventType::certified, to_json(made)));
    CG_CHECK(save_best(view()));
    return false;
  }

  Result<bool> perform_ask(const search::Ask& ask) {
    const bool free = ask.role == Role::recipe || ask.role == Role::source;
    if (!free && asks_model(view().settings))
      observer_.on_progress("asking " + view().settings.model + " (" + to_string(ask.role) + ")");
    auto answer = answer_to(*proposer_, ctx_, ask, view());
    if (!answer && ctx_.done()) return true;
    if (!answer) return fail(answer.error());
    if (answer->candidate && answer->candidate->id.empty())
      answer->candidate->id = view().next_id();
    CG_CHECK(record(EventType::answered, answer_data(*answer)));
    return false;
  }

  Result<bool> perform_evaluate(const search::Evaluate& action) {
    const RunStep* step = view().find(action.candidate);
    CG_ASSERT(step);
    eval::EvaluateRequest request{
        .program = step->candidate.program, .up_to = action.up_to, .profile = action.profile};
    request.against = rival_of(action.candidate, view());
    auto judged =
        judge(ctx_, request, action.candidate + " " + step->candidate.edit.summary + ": ");
    if (!judged) return true;
    const Evaluated evaluated{.candidate = action.candidate,
                              .verdict = std::move(judged->verdict),
                              .elapsed_ms = judged->elapsed_ms};
    CG_CHECK(record(EventType::evaluated, to_json(evaluated)));
    return false;
  }

  // Returns an error only if the context ended.
  Result<Judged> judge(const Context& ctx, const eval::EvaluateRequest& request,
                       const std::string& label) {
    int64_t before = parts_.now_ms();
    eval::EvaluateRequest named = request;  // the evaluator may have opened another task meanwhile
    named.task = view().task->task.id;
    named.tests = view().tests;
    auto verdict = evaluator_->evaluate(
        ctx, named, [&](const std::string& line) { observer_.on_progress(label + line); });
    if (!verdict && ctx.done()) return fail(verdict.error());
    if (!verdict) verdict = aborted(verdict.error(), view());
    return Judged{.verdict = std::move(*verdict), .elapsed_ms = parts_.now_ms() - before};
  }

  const Parts& parts_;
  Context ctx_;
  llm::RunModel model_;  // without a client if the run asks no model
  RunTools tools_;
  std::unique_ptr<store::RunJournal> journal_;
  RunObserver& observer_;
  int64_t started_ms_ = 0, clock_base_ms_ = 0;
  Walk walk_;
  EvaluatorPtr evaluator_;
  std::unique_ptr<Proposer> proposer_;
};

// Opens the client of a run's model; null for runs that ask no model.
Result<std::unique_ptr<llm::ChatModel>> open_client(const Parts& parts,
                                                    const OptimizeSettings& settings,
                                                    store::Store& store) {
  if (!asks_model(settings)) return nullptr;
  return parts.open_model(settings, store);
}

Result<Opened> open_once(const Parts& parts, const Context& ctx, const OptimizeSettings& settings,
                         RunObserver& observer) {
  Opened opened;
  observer.on_progress("starting the evaluator");
  eval::EvaluatorOptions options = settings.evaluator;
  if (wants_baselines(settings)) options.tasks = 2;  // the second for a control kernel's task
  const bool plain = settings.search.agents && settings.search.agents->dialect == Dialect::cuda;
  options.read_cute_ahead = !(plain && asks_model(settings));
  if (!asks_model(settings))  // recipes give the same programs for the same file
    if (auto text = read_file(settings.file)) options.programs = Hasher{}.field(*text).hex();
  CG_TRY(opened.evaluator, parts.start_evaluator(ctx, options));
  observer.on_progress("describing " + settings.file.filename().string());
  CG_TRY(opened.task, opened.evaluator->open_task_as(ctx, settings.file, settings.asked));
  return opened;
}

// Refuses to continue a run if new verdicts would compete with verdicts of another policy version.
Result<void> check_policy(const RunView& view, const std::string& id) {
  const auto version = other_policy(view);
  if (!version || view.finished) return {};
  return user_error(
      fmt::format("its programs were judged by rules of version {}, but this cutegen has version "
                  "{}, and verdicts of different versions cannot be compared",
                  *version, Verdict().policy_version),
      "run " + id,
      "start a new run: cutegen optimize " + view.settings.file.string() +
          " (cutegen show still shows this one)");
}

store::RunInfo info_of(const OptimizeSettings& settings, const Task& task) {
  store::RunInfo info;
  info.task_name = task.name;
  info.task_file = settings.file.string();
  info.device = settings.evaluator.device.text();
  info.strategy = to_string(settings.strategy);
  info.model = settings.model;
  return info;
}

}  // namespace

// Retries once with a fresh process, because one may die while it opens the task (out of memory).
Result<Opened> open_task(const Parts& parts, const Context& ctx, const OptimizeSettings& settings,
                         RunObserver& observer) {
  auto opened = open_once(parts, ctx, settings, observer);
  if (opened || opened.error().kind != ErrorKind::world || ctx.done()) return opened;
  log_info("starting again, because the task could not be opened: {}", opened.error().message);
  return open_once(parts, ctx, settings, observer);
}

Result<RunResult> optimize_with(const Parts& parts, const Context& ctx, store::Store& store,
                                const OptimizeSettings& given, RunObserver& observer) {
  int64_t started_ms = parts.now_ms();
  OptimizeSettings settings = given;
  settings.file = std::filesystem::absolute(given.file);
  if (settings.search.agents && !settings.dialect_asked && is_kernel_file(settings.file))
    settings.search.agents->dialect = Dialect::cuda;
  constexpr std::string_view kRelay = "relay:";  // absolute, to resume from any folder
  if (given.model.starts_with(kRelay))
    settings.model =
        std::string(kRelay) + std::filesystem::absolute(given.model.substr(kRelay.size())).string();
  if (!given.out.empty()) {
    settings.out = std::filesystem::absolute(given.out);
    CG_CHECK(check_out_folder(settings.out));
  }
  CG_CHECK(search::make_strategy(settings.strategy, settings.search));
  CG_TRY(auto client, open_client(parts, settings, store));
  if (client) settings.model_settings.tools = settle_tools(settings, *client);
  CG_TRY(Opened opened, open_task(parts, ctx, settings, observer));
  CG_TRY(auto journal, store.create(info_of(settings, opened.task.task)));
  RunLoop loop(parts, ctx, std::move(journal), settings, std::move(client), observer, started_ms);
  CG_CHECK(loop.record(EventType::opened, to_json(settings)));
  CG_CHECK(loop.record(EventType::task, task_data(opened.task)));
  CG_CHECK(loop.say_baselines(*opened.evaluator));
  return loop.drive(std::move(opened.evaluator));
}

Result<RunResult> resume_with(const Parts& parts, const Context& ctx, store::Store& store,
                              const std::string& run, RunObserver& observer) {
  int64_t started_ms = parts.now_ms();
  CG_TRY(auto journal, store.resume(run));
  std::string id = journal->id();
  CG_TRY(auto events, journal->events());
  if (events.empty() || events.front().type != EventType::opened)
    return user_error("the journal does not begin with the event 'opened'", "run " + id);
  CG_TRY(RunView recorded, view_run(events));
  CG_CHECK(check_policy(recorded, id));
  const OptimizeSettings& begun = recorded.settings;
  CG_TRY(auto client, open_client(parts, begun, store));
  RunLoop loop(parts, ctx, std::move(journal), begun, std::move(client), observer, started_ms);
  CG_CHECK(loop.recall(events));
  if (loop.view().finished) return outcome_of(loop.view(), id);
  const OptimizeSettings settings = loop.view().settings;
  if (!settings.out.empty()) CG_CHECK(check_out_folder(settings.out));
  CG_TRY(Opened opened, open_task(parts, ctx, settings, observer));
  if (loop.view().task && loop.view().task->task.id != opened.task.task.id)
    return user_error("the task has changed since run " + id + " began", settings.file.string(),
                      "restore the file, or start a new run");
  CG_CHECK(loop.record(EventType::resumed, Json::object()));
  if (!loop.view().task) CG_CHECK(loop.record(EventType::task, task_data(opened.task)));
  CG_CHECK(loop.say_baselines(*opened.evaluator));
  return loop.drive(std::move(opened.evaluator));
}

}  // namespace cutegen::engine
