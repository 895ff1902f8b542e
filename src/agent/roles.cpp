// SPDX-License-Identifier: Apache-2.0
#include "agent/roles.h"

#include <fmt/format.h>

#include <algorithm>

#include "agent/algebra.h"
#include "agent/changes.h"
#include "agent/describe.h"
#include "agent/hints.h"
#include "agent/library.h"
#include "agent/metrics.h"
#include "agent/plan_edit.h"
#include "agent/render.h"
#include "agent/tools.h"
#include "base/text.h"
#include "llm/tokens.h"

namespace cutegen::agent {
namespace {

using Data = PageData;

constexpr size_t kMostAdvice = 2500;  // bytes
constexpr size_t kMostApproaches = 8;
constexpr size_t kJudgedKernels = 2;  // kernels whose metrics a judge sees

// The level of detail of each part of a prompt. shorten() lowers it step by step until the prompt
// fits.
struct Detail {
  size_t components = 8, source_lines = 400, guidance = 3, history = 32;
  int graph = 2, verdict = 2;
};

Data system_data(const TaskBrief& brief, const Detail& detail) {
  Data data;
  data.set("dialect", to_string(brief.dialect));
  data.set("cute", uses_cute(brief.dialect));
  data.set("strict", brief.dialect == Dialect::cute_strict);
  Data mistakes;
  mistakes.set("cute", uses_cute(brief.dialect));
  data.set("mistakes", std::string(trim(render("mistakes.md", mistakes))));
  Data pages(Data::type::list);
  auto all = components_for(brief);
  for (size_t i = 0; i < std::min(detail.components, all.size()); ++i) {
    Data page;
    page.set("title", all[i]->title);
    page.set("text", all[i]->text);
    pages << page;
  }
  data.set("components", pages);
  return data;
}

Data task_data(const TaskBrief& brief, const Detail& detail) {
  Data data;
  data.set("device", describe_device(brief.gpu, brief.device, brief.task));
  data.set("mode", describe_mode(brief.task));
  data.set("source", describe_source(brief.task.source, detail.source_lines));
  data.set("tensors", describe_tensors(brief.task));
  data.set("graph", describe_graph(brief.task.graph, detail.graph));
  data.set("floor", describe_floor(brief));
  data.set("class", brief.task.workload);
  const std::vector<std::string> algebra = removable_work(brief.task);
  if (!algebra.empty()) data.set("algebra", "- " + join(algebra, "\n- "));
  data.set("guidance", std::string(trim(guidance_for(brief.task, detail.guidance))));
  return data;
}

// Whether the question asks a planner for the next change of a program.
bool suggests(const Question& q) {
  return q.role == Role::planner && !q.grounded && q.subject;
}

std::string template_of(const Question& q) {
  if (q.role == Role::tester) return "tester.md";
  if (q.role == Role::profiler) return "profiler.md";
  if (suggests(q)) return "planner_suggest.md";
  if (q.role == Role::planner) return q.grounded ? "planner_change.md" : "planner.md";
  if (q.role == Role::debugger) return "debugger.md";
  if (q.role == Role::judge)
    return q.purpose == Purpose::repair ? "judge_repair.md" : "judge_improve.md";
  if (q.purpose == Purpose::first || !q.subject) return "coder_first.md";
  return q.purpose == Purpose::repair ? "debugger.md" : "coder_improve.md";
}

// The shapes that the evaluator tests and times anyway.
std::string tested_shapes(const Task& task) {
  std::string out;
  for (const ShapeCase& shape : task.shapes) {
    out += "- " + shape.name + ":";
    for (const auto& [name, value] : shape.constants) out += fmt::format(" {} = {}", name, value);
    for (const auto& [name, dims] : shape.tensors)
      if (const TensorInfo* t = task.find(name); t && t->role == TensorRole::input)
        out += fmt::format(" {} {}", name, cutegen::to_string(dims));
    out += "\n";
  }
  return out;
}

void set_tester(Data& data, const Task& task) {
  data.set("count", std::to_string(kMostTestCases));
  data.set("tested", std::string(trim(tested_shapes(task))));
  if (const auto sizes = sizes_to_test(task); !sizes.empty()) data.set("sizes", join(sizes, ", "));
  std::vector<std::string> inputs;
  for (const std::string& name : inputs_to_test(task))
    inputs.push_back(fmt::format("{} ({})", name, cutegen::to_string(task.find(name)->dtype)));
  if (!inputs.empty()) data.set("inputs", join(inputs, ", "));
}

std::string hints_text(const Question& q) {
  if (!q.subject || !q.verdict) return {};
  std::string out;
  for (const std::string& hint : hints_for(q.subject->program, *q.verdict))
    out += "- " + hint + "\n";
  return out.empty() ? out : "Mistakes that look like this:\n" + out;
}

void set_if(Data& data, const char* name, const std::string& text) {
  if (!text.empty()) data.set(name, text);
}

// Returns the program that the prompt shows in full: the base if it also shows changes, else the
// subject.
const Candidate& whole_of(const Question& q, const std::optional<std::string>& changes) {
  return changes ? *q.base : *q.subject;
}

std::string program_message(const Candidate& whole) {
  Data data;
  data.set("id", whole.id);
  data.set("program", std::string(trim(describe_program(whole.program))));
  return std::string(trim(render("program.md", data))) + "\n";
}

// Describes the program in question and its verdict. Consecutive questions about a program share
// this text.
std::string subject_text(const TaskBrief& brief, const Question& q,
                         const std::optional<std::string>& changes, const Detail& detail) {
  Data data;
  data.set("id", q.subject->id);
  data.set("base", whole_of(q, changes).id);
  if (changes) data.set("changes", std::string(trim(*changes)));
  if (q.verdict) {
    std::string measured = describe_verdict(*q.verdict, brief.floor_ns, q.profile, detail.verdict);
    if (q.verdict->status == Status::correct) measured += describe_cute(q.subject->program);
    data.set("measured", measured);
    if (q.verdict->timing) set_if(data, "time", human_ns(q.verdict->timing->time_ns));
  }
  return std::string(trim(render("subject.md", data))) + "\n";
}

std::string question_text(const TaskBrief& brief, const Question& q, const Detail& detail) {
  Data data;
  if (q.subject) data.set("id", q.subject->id);
  const bool reads = q.role == Role::judge || q.role == Role::profiler;
  if (reads && q.profile && q.verdict && q.verdict->profile)
    set_if(
        data, "metrics",
        describe_metrics(*q.verdict->profile, brief.gpu, detail.verdict > 1 ? kJudgedKernels : 1));
  data.set("hints", hints_text(q));
  set_if(data, "approach", sanitize(q.approach, kMostAdvice));
  set_if(data, "advice", sanitize(q.advice, kMostAdvice));
  set_if(data, "reading", sanitize(q.reading, kMostAdvice));
  if (q.subject && !q.best.empty()) data.set(q.best == q.subject->id ? "leads" : "follows", true);
  set_if(data, "best", q.best);
  if (q.best_ns) data.set("best_time", human_ns(*q.best_ns));
  if (q.other) data.set("other", q.other->id);
  data.set("structure", q.stage == Stage::structure);
  data.set("detail", q.stage == Stage::detail);
  if (q.repair > 1) data.set("again", std::to_string(q.repair));
  data.set("count", std::to_string(q.approaches));
  data.set("fails", q.purpose == Purpose::repair);
  if (!q.tests.empty()) data.set("tests", "- " + join(q.tests, "\n- "));
  if (q.role == Role::tester) set_tester(data, brief.task);
  data.set("several", q.approaches > 1);
  data.set("grounded", q.grounded);
  set_if(data, "family", q.family);
  return std::string(trim(render(template_of(q), data))) + "\n";
}

using Step = bool (*)(Detail&);  // false: nothing left to remove

template <class Count>
bool lower(Count& count, int least) {
  if (count <= Count(least)) return false;
  --count;
  return true;
}

// Removes the pages that fit least and the advice for minor classes; the model can look them up.
const std::vector<Step>& wish_steps() {
  static const std::vector<Step> kSteps{[](Detail& d) { return lower(d.components, 2); },
                                        [](Detail& d) { return lower(d.guidance, 2); },
                                        [](Detail& d) { return lower(d.components, 1); }};
  return kSteps;
}

const std::vector<Step>& prefix_steps() {
  static const std::vector<Step> kSteps{[](Detail& d) { return lower(d.graph, 1); },
                                        [](Detail& d) { return lower(d.components, 4); },
                                        [](Detail& d) { return lower(d.guidance, 1); },
                                        [](Detail& d) { return lower(d.graph, 0); },
                                        [](Detail& d) { return lower(d.components, 1); },
                                        [](Detail& d) {
                                          if (d.source_lines <= 60) return false;
                                          d.source_lines = d.source_lines * 2 / 3;
                                          return true;
                                        },
                                        [](Detail& d) { return lower(d.components, 0); }};
  return kSteps;
}

const std::vector<Step>& question_steps() {
  static const std::vector<Step> kSteps{
      [](Detail& d) { return lower(d.history, 6); }, [](Detail& d) { return lower(d.verdict, 1); },
      [](Detail& d) { return lower(d.history, 1); }, [](Detail& d) { return lower(d.verdict, 0); }};
  return kSteps;
}

// Lowers the detail until `tokens` is within the limit or nothing is left to lower.
template <class Tokens>
void shorten(Detail& detail, const std::vector<Step>& steps, int64_t limit, Tokens tokens) {
  for (Step step : steps)
    while (tokens(detail) > limit)
      if (!step(detail)) break;
}

// Returns the text about tools; empty if there are none.
std::string tools_text(const TaskBrief& brief, const Detail& detail, const PromptLimits& limits) {
  if (limits.tools.empty()) return {};
  Data data;
  std::vector<std::string> more;
  const auto pages = components_for(brief);
  for (size_t i = detail.components; i < pages.size(); ++i) more.push_back(pages[i]->name);
  if (!more.empty()) data.set("pages", join(more, ", "));
  for (const llm::ToolSpec& tool : limits.tools) data.set(tool.name, true);
  data.set("calls", std::to_string(limits.tool_calls));
  return "\n" + std::string(trim(render("tools.md", data))) + "\n";
}

int64_t tools_tokens(const PromptLimits& limits) {
  if (limits.tools.empty()) return 0;
  llm::ChatRequest only;
  // Counts all tools, so that every question of a run shows the same pages.
  only.tools = tool_specs({.compile = true, .evaluate = true, .profile = true, .diff_best = true});
  return llm::estimate_tokens(only);
}

struct Prefix {
  std::string system, task;
};

Prefix make_prefix(const TaskBrief& brief, const Detail& detail, const PromptLimits& limits) {
  return {.system = std::string(trim(render("system.md", system_data(brief, detail)))) + "\n" +
                    tools_text(brief, detail, limits),
          .task = std::string(trim(render("task.md", task_data(brief, detail)))) + "\n"};
}

// Returns the messages after the task. The ones that change least often come first, for the cache.
std::vector<llm::Message> own_messages(const TaskBrief& brief, const Question& q,
                                       const std::optional<std::string>& changes,
                                       const Detail& detail) {
  std::vector<llm::Message> out;
  HistoryText history = describe_history(q.history, detail.history);
  // A long program is the base of later changes, so it comes before the history, which grows. A
  // short program changes with every improvement, so it comes after the history.
  const Candidate* whole = q.subject ? &whole_of(q, changes) : q.other;
  const bool stays = whole && is_long(whole->program);
  if (stays) out.push_back({.text = program_message(*whole), .cache_end = true});
  for (std::string& part : history.settled)
    out.push_back({.text = std::move(part), .cache_end = true});
  if (whole && !stays) out.push_back({.text = program_message(*whole)});
  if (q.subject)
    out.push_back({.text = subject_text(brief, q, changes, detail), .cache_end = true});
  if (!history.recent.empty()) out.push_back({.text = std::move(history.recent)});
  out.push_back({.text = question_text(brief, q, detail)});
  return out;
}

int64_t estimate_tokens(const std::vector<llm::Message>& messages) {
  int64_t total = 0;
  for (const llm::Message& message : messages) total += llm::estimate_tokens(message);
  return total;
}

std::map<std::string, std::string> files_of(const KernelProgram& program) {
  std::map<std::string, std::string> out = program.sources;
  out["plan.json"] = plan_text(program.plan);
  return out;
}

Reask empty_advice() {
  return {.reason = "no_advice",
          .text = "The answer contains no usable text. Answer in the given form."};
}

}  // namespace

llm::ChatRequest make_request(const TaskBrief& brief, const Question& question,
                              const PromptLimits& limits) {
  Detail detail;
  const int64_t around = tools_tokens(limits);
  auto prefix_tokens = [&](const Detail& d) {
    Prefix p = make_prefix(brief, d, limits);
    return llm::estimate_tokens(p.system) + llm::estimate_tokens(p.task) + around;
  };
  shorten(detail, wish_steps(), limits.wanted_prefix_tokens, prefix_tokens);
  shorten(detail, prefix_steps(), limits.prefix_tokens, prefix_tokens);
  Prefix prefix = make_prefix(brief, detail, limits);
  const int64_t left = limits.tokens - prefix_tokens(detail);
  std::optional<std::string> changes;
  if (question.subject && question.base && question.base != question.subject)
    changes = changes_text(question.base->program, question.subject->program);
  shorten(detail, question_steps(), left, [&](const Detail& d) {
    return estimate_tokens(own_messages(brief, question, changes, d));
  });
  llm::ChatRequest request;
  request.system = std::move(prefix.system);
  request.messages.push_back({.text = std::move(prefix.task), .cache_end = true});
  for (llm::Message& message : own_messages(brief, question, changes, detail))
    request.messages.push_back(std::move(message));
  request.tools = limits.tools;
  request.max_output_tokens = limits.answer_tokens;
  if (question.subject) request.files = files_of(question.subject->program);
  return request;
}

std::string reask_text(const Reask& reask, bool whole) {
  Data data;
  data.set("problem", reask.text);
  data.set("whole", whole);
  return std::string(trim(render("reask.md", data))) + "\n";
}

tl::expected<std::vector<std::string>, Reask> parse_advice(const std::string& given,
                                                           const Question& question) {
  std::string text = sanitize(given, 64 << 10);
  if (size_t end = text.find("</think>"); end != std::string::npos) text.erase(0, end + 8);
  std::vector<std::string> out;
  if (question.role == Role::planner && !question.grounded && !suggests(question)) {
    for (const std::string& line : split(text, '\n')) {
      std::string plain;
      for (char c : line)
        if (c != '*' && c != '#') plain += c;
      bool head = std::string(trim(plain)).starts_with("APPROACH ");
      if (head && out.size() == kMostApproaches) break;
      if (head) {
        size_t colon = plain.find(':');
        out.emplace_back(colon == std::string::npos ? "" : trim(plain.substr(colon + 1)));
      } else if (!out.empty()) {
        out.back() += "\n" + line;
      }
    }
    for (std::string& approach : out) approach = sanitize(trim(approach), kMostAdvice);
    std::erase(out, "");
  }
  if (out.empty() && !trim(text).empty()) out.push_back(sanitize(trim(text), kMostAdvice));
  if (out.empty()) return tl::unexpected(empty_advice());
  return out;
}

}  // namespace cutegen::agent
