// SPDX-License-Identifier: Apache-2.0
#include "agent/tool_desk.h"

#include <fmt/format.h>

#include <algorithm>

#include "agent/describe.h"
#include "agent/hints.h"
#include "agent/library.h"
#include "base/hash.h"
#include "base/text.h"

namespace cutegen::agent {
namespace {

constexpr size_t kMostResult = 6000;  // bytes of one result
constexpr double kBetter = 0.01;      // the least gain of a draft over the answer

std::optional<double> time_of(const std::optional<Verdict>& verdict) {
  if (!verdict || verdict->status != Status::correct || !verdict->timing) return std::nullopt;
  return verdict->timing->time_ns;
}

bool writes(const Question& q) {
  return q.role == Role::coder || q.role == Role::debugger;
}

std::string page_list() {
  std::string out = "Pages:\n";
  for (const Component& c : components())
    out += fmt::format("- {}: {} ({})\n", c.name, c.title, join(c.symbols, ", "));
  return out;
}

std::string page_text(const Component& c) {
  return fmt::format("{}\nCompiled for: {}\n\n{}\n", c.title, join(c.archs, ", "), c.text);
}

}  // namespace

int64_t ToolDesk::calls_left() const {
  return std::max<int64_t>(0, std::min<int64_t>(set_.limits.calls, set_.limits.run_calls) - calls_);
}

Result<std::vector<llm::ToolResult>> ToolDesk::answer(const Context& ctx,
                                                      const std::vector<llm::ToolCall>& calls) {
  std::vector<llm::ToolResult> out;
  for (const llm::ToolCall& call : calls) {
    if (calls_left() == 0) {
      out.push_back({call.id, "not done: no calls are left; answer now", true});
      continue;
    }
    CG_TRY(llm::ToolResult result, answer_one(ctx, call));
    out.push_back(std::move(result));
  }
  return out;
}

Result<llm::ToolResult> ToolDesk::answer_one(const Context& ctx, const llm::ToolCall& call) {
  CG_CHECK(ctx.check("calling a tool"));
  ToolRecord record{sanitize(call.name, 80),
                    sha256(canonical_json(call.arguments) + call.malformed)};
  CG_TRY(auto past, host_.recorded(record));
  ++calls_;
  CG_TRY(Said said, perform(ctx, call, past));
  if (past) {
    said = {past->text, past->is_error};
  } else {
    record.text = sanitize(trim(said.text), kMostResult) +
                  fmt::format("\n({} more call{} for this question)", calls_left(),
                              calls_left() == 1 ? "" : "s");
    record.is_error = said.is_error;
    CG_CHECK(host_.record(record));
    said.text = record.text;
  }
  return llm::ToolResult{call.id, said.text, said.is_error};
}

ToolDesk::Told ToolDesk::perform(const Context& ctx, const llm::ToolCall& call,
                                 const std::optional<ToolRecord>& past) {
  auto use = read_tool_call(call);
  if (!use) {
    const Error& e = use.error();
    return Said{"Not done: " + e.message + (e.remedy.empty() ? "" : "; " + e.remedy), true};
  }
  if (use->tool == Tool::read_docs) {
    if (use->page.empty()) return Said{page_list()};
    if (const Component* c = find_component(use->page)) return Said{page_text(*c)};
    auto near = nearest(use->page, component_names());
    return Said{"No page about '" + sanitize(use->page, 80) + "'" +
                    (near ? "; did you mean '" + *near + "'?" : "") + "\n" + page_list(),
                true};
  }
  if (use->tool == Tool::profile) return profile(*use);
  if (use->tool == Tool::diff_best) return diff_best(*use);
  if (!writes(set_.question))
    return Said{"this question wants no program; it is for the coder to compile and evaluate one",
                true};
  auto draft = draft_of(*use);
  if (!draft) return Said{draft.error().text, true};
  if (use->tool == Tool::compile) return compile(ctx, **draft, past.has_value());
  return evaluate(ctx, **draft);
}

// The draft that a call names or creates. A program that is already a draft keeps its name.
tl::expected<ToolDesk::Draft*, Reask> ToolDesk::draft_of(const ToolUse& use) {
  auto at = find(use.draft);
  if (!use.draft.empty() && !at) return tl::unexpected(Reask{"no_draft", no_draft(use.draft)});
  Draft* from = at ? &drafts_[*at] : nullptr;
  if (!use.changes()) return from;
  const KernelProgram* base = from                    ? &from->candidate.program
                              : set_.question.subject ? &set_.question.subject->program
                                                      : nullptr;
  auto changes = changes_of(use, base);
  if (!changes) return tl::unexpected(changes.error());
  auto program = apply_reply(*changes, base, set_.check);
  if (!program) return tl::unexpected(program.error());
  return &keep(std::move(*program), changes->summary);
}

ToolDesk::Draft& ToolDesk::keep(KernelProgram program, const std::string& summary) {
  const std::string id = program_id(program);
  for (Draft& draft : drafts_)
    if (program_id(draft.candidate.program) == id) return draft;
  Draft draft;
  draft.name = "d" + std::to_string(drafts_.size() + 1);
  if (set_.question.subject) draft.candidate.parent = set_.question.subject->id;
  draft.candidate.edit.summary =
      summary.empty() ? "draft " + draft.name + " of the " + to_string(set_.question.role)
                      : summary;
  draft.candidate.edit.origin = set_.origin;
  draft.candidate.program = std::move(program);
  drafts_.push_back(std::move(draft));
  return drafts_.back();
}

// `known`: done before the process died; the record holds the result.
ToolDesk::Told ToolDesk::compile(const Context& ctx, Draft& draft, bool known) {
  if (known) return Said{};
  const KernelProgram& program = draft.candidate.program;
  CG_TRY(Verdict v, host_.compile(ctx, program));
  if (v.status == Status::aborted)
    return Said{
        "The evaluator could not do it, which says nothing about the draft: " + v.feedback.headline,
        true};
  if (v.status == Status::correct)
    return Said{
        fmt::format("Draft {} compiles and loads.{}{}\n", draft.name,
                    v.feedback.resources.empty() ? "" : "\nResources: ", v.feedback.resources)};
  std::string text = "Draft " + draft.name + " does not compile or load.\n" +
                     describe_verdict(v, set_.floor_ns, false, 2);
  for (const std::string& hint : hints_for(program, v)) text += "- " + hint + "\n";
  return Said{text};
}

// Gets the draft's verdict. Counts as an evaluation unless the evaluator aborted it.
Result<void> ToolDesk::judge(const Context& ctx, Draft& draft) {
  CG_TRY(Evaluated e, host_.evaluate(ctx, draft.candidate));
  draft.candidate.id = e.candidate;
  draft.verdict = std::move(e.verdict);
  if (draft.verdict->status != Status::aborted) ++evaluations_;
  return {};
}

ToolDesk::Told ToolDesk::evaluate(const Context& ctx, Draft& draft) {
  if (!draft.verdict || draft.verdict->status == Status::aborted) {
    if (auto why = set_.tried(draft.candidate.program)) return Said{why->text, true};
    if (evaluations_ >= set_.limits.evaluations)
      return Said{fmt::format("This question has had its {} evaluations; answer now, or compile.",
                              set_.limits.evaluations),
                  true};
    if (evaluations_ >= set_.limits.run_evaluations)
      return Said{"The run's budget of evaluations is used up; answer now.", true};
    CG_CHECK(judge(ctx, draft));
  }
  if (draft.verdict->status == Status::aborted)
    return Said{"The evaluator could not do it, which says nothing about the draft: " +
                    draft.verdict->feedback.headline,
                true};
  std::string text = fmt::format("Draft {} is kept as {}.\n", draft.name, draft.candidate.id) +
                     describe_verdict(*draft.verdict, set_.floor_ns, set_.question.profile, 2);
  for (const std::string& hint : hints_for(draft.candidate.program, *draft.verdict))
    text += "- " + hint + "\n";
  return Said{text};
}

ToolDesk::Said ToolDesk::profile(const ToolUse& use) const {
  if (!set_.question.profile)
    return {"No profile is shown yet: first the program is made correct and its structure settles.",
            true};
  auto at = find(use.draft);
  if (!use.draft.empty() && !at) return {no_draft(use.draft), true};
  const Verdict* verdict = set_.question.verdict;
  if (at) verdict = drafts_[*at].verdict ? &*drafts_[*at].verdict : nullptr;
  if (!verdict || !verdict->profile)
    return {"No profile of it is known: only a program that was evaluated and is correct has one.",
            true};
  return {describe_profile(*verdict), false};
}

ToolDesk::Said ToolDesk::diff_best(const ToolUse& use) const {
  auto at = find(use.draft.empty() && !drafts_.empty() ? drafts_.back().name : use.draft);
  if (!at) return {no_draft(use.draft), true};
  const Draft& draft = drafts_[*at];
  std::string diff = host_.diff_best(draft.candidate.program);
  if (diff.empty()) return {"There is no best program that differs from " + draft.name + ".", true};
  return {"From the best program to " + draft.name + ":\n" + diff, false};
}

// The index of a draft; empty if none has the name.
std::optional<size_t> ToolDesk::find(const std::string& name) const {
  auto it =
      std::find_if(drafts_.begin(), drafts_.end(), [&](const Draft& d) { return d.name == name; });
  if (it == drafts_.end()) return std::nullopt;
  return static_cast<size_t>(it - drafts_.begin());
}

const KernelProgram* ToolDesk::draft(const std::string& name) const {
  auto at = find(name);
  return at ? &drafts_[*at].candidate.program : nullptr;
}

std::string ToolDesk::no_draft(const std::string& name) const {
  return fmt::format("There is no draft '{}'; there are: {}.", sanitize(name, 40), draft_names());
}

std::string ToolDesk::draft_names() const {
  std::vector<std::string> names;
  for (const Draft& d : drafts_) names.push_back(d.name);
  return names.empty() ? "none" : join(names, ", ");
}

// The fastest correct draft.
const ToolDesk::Draft* ToolDesk::best() const {
  const Draft* out = nullptr;
  for (const Draft& d : drafts_)
    if (auto time = time_of(d.verdict); time && (!out || *time < *time_of(out->verdict))) out = &d;
  return out;
}

Result<std::optional<Candidate>> ToolDesk::choose(const Context& ctx,
                                                  std::optional<Candidate> answer) {
  const Draft* rival = best();
  if (!answer) return rival ? std::optional(rival->candidate) : std::nullopt;
  const std::string rival_name = rival ? rival->name : "";
  Draft& own = keep(answer->program, answer->edit.summary);
  if (rival && !own.verdict && evaluations_ < set_.limits.run_evaluations)
    CG_CHECK(judge(ctx, own));
  answer->id = own.candidate.id;
  if (rival_name.empty() || rival_name == own.name) return answer;
  rival = &drafts_[*find(rival_name)];
  auto time = time_of(own.verdict), best = time_of(rival->verdict);
  if (time && *time * (1 - kBetter) <= *best) return answer;
  Candidate kept = rival->candidate;
  kept.edit.rationale = own.verdict ? "a draft; the answer to the question was no better"
                                    : "a draft; no evaluation was left for the answer";
  return kept;
}

}  // namespace cutegen::agent
