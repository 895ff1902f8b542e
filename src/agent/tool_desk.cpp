// SPDX-License-Identifier: Apache-2.0
#include "agent/tool_desk.h"

#include <fmt/format.h>

#include <algorithm>

#include "agent/changes.h"
#include "agent/describe.h"
#include "agent/hints.h"
#include "agent/library.h"
#include "base/hash.h"
#include "base/text.h"

namespace cutegen::agent {
namespace {

constexpr size_t kMostResult = 6000;  // bytes of one result
constexpr double kBetter = 0.01;      // a draft replaces the answer if it is faster by this share

std::string page_list() {
  std::string out = "Pages:\n";
  for (const Component& c : components())
    out += fmt::format("- {}: {} ({})\n", c.name, c.title, join(c.symbols, ", "));
  return out;
}

std::string page_text(const Component& c) {
  return fmt::format("{}\nCompiled for: {}\n\n{}\n", c.title, join(c.archs, ", "), c.text);
}

// The text of a page, or an error text.
tl::expected<std::string, std::string> page(const std::string& name) {
  if (name.empty()) return page_list();
  if (const Component* c = find_component(name)) return page_text(*c);
  auto near = nearest(name, component_names());
  return tl::unexpected("No page about '" + sanitize(name, 80) + "'" +
                        (near ? "; did you mean '" + *near + "'?" : "") + "\n" + page_list());
}

// The profile of a draft or of the question's program, or an error text.
tl::expected<std::string, std::string> profile(const Drafts& drafts, const Verdict* verdict,
                                               const ToolUse& use) {
  const Draft* draft = drafts.find(use.draft);
  if (!use.draft.empty() && !draft) return tl::unexpected(drafts.missing_text(use.draft));
  if (draft) verdict = draft->verdict ? &*draft->verdict : nullptr;
  if (!verdict || !verdict->profile)
    return tl::unexpected(std::string(
        "No profile of it is known: only a program that was evaluated and is correct has one."));
  return describe_profile(*verdict);
}

// Returns the arguments of a call that gave a whole program, as changes to the last draft before it
// or to the question's program. Returns nothing if they would not be shorter.
std::optional<Json> as_changes(const Drafts& drafts, const Draft& draft, const Candidate* subject,
                               const ToolUse& use) {
  if (use.kernel.empty()) return std::nullopt;
  std::optional<Json> best;
  auto consider = [&](const std::string& name, const KernelProgram& base) {
    auto edits = changes_text(base, draft.candidate.program);
    if (!edits || (best && (*best)["edits"].get_ref<const std::string&>().size() <= edits->size()))
      return;
    best = Json{{"edits", std::move(*edits)}};
    if (!name.empty()) (*best)["draft"] = name;
    if (!use.summary.empty()) (*best)["summary"] = use.summary;
  };
  if (const Draft* before = drafts.before(draft)) consider(before->name, before->candidate.program);
  if (subject) consider("", subject->program);
  return best;
}

std::string hint_list(const KernelProgram& program, const Verdict& verdict) {
  std::string out;
  for (const std::string& hint : hints_for(program, verdict)) out += "- " + hint + "\n";
  return out;
}

std::string aborted_text(const Verdict& verdict) {
  return "The evaluator could not do it, which says nothing about the draft: " +
         verdict.feedback.headline;
}

}  // namespace

int64_t ToolDesk::calls_left() const {
  return std::max<int64_t>(0, std::min<int64_t>(set_.limits.calls, set_.limits.run_calls) - calls_);
}

Result<std::vector<llm::ToolResult>> ToolDesk::answer(const Context& ctx,
                                                      const std::vector<llm::ToolCall>& calls) {
  std::vector<llm::ToolResult> out;
  shorter_.clear();  // some providers use the ids of calls again
  for (const llm::ToolCall& call : calls) {
    if (calls_left() == 0) {
      out.push_back({.call_id = call.id,
                     .text = "not done: no calls are left; answer now",
                     .is_error = true});
      continue;
    }
    CG_TRY(llm::ToolResult result, answer_one(ctx, call));
    out.push_back(std::move(result));
  }
  return out;
}

Result<llm::ToolResult> ToolDesk::answer_one(const Context& ctx, const llm::ToolCall& call) {
  CG_CHECK(ctx.check("calling a tool"));
  ToolRecord record{.tool = sanitize(call.name, 80),
                    .arguments_hash = sha256(canonical_json(call.arguments) + call.malformed)};
  CG_TRY(auto past, host_.recorded(record));
  ++calls_;
  CG_TRY(Said said, perform(ctx, call, past));
  if (past) {
    said = {.text = past->text, .is_error = past->is_error};
  } else {
    record.text = sanitize(trim(said.text), kMostResult) +
                  fmt::format("\n({} more call{} for this question)", calls_left(),
                              calls_left() == 1 ? "" : "s");
    record.is_error = said.is_error;
    CG_CHECK(host_.record(record));
    said.text = record.text;
  }
  return llm::ToolResult{.call_id = call.id, .text = said.text, .is_error = said.is_error};
}

ToolDesk::Told ToolDesk::perform(const Context& ctx, const llm::ToolCall& call,
                                 const std::optional<ToolRecord>& past) {
  auto use = read_tool_call(call);
  if (!use) {
    const Error& e = use.error();
    return Said{.text = "Not done: " + e.message + (e.remedy.empty() ? "" : "; " + e.remedy),
                .is_error = true};
  }
  if (!set_.offer.has(use->tool))
    return Said{.text = fmt::format("This question does not offer '{}'.", to_string(use->tool)),
                .is_error = true};
  if (use->tool == Tool::read_docs) return said(page(use->page));
  if (use->tool == Tool::profile) return said(profile(drafts_, set_.question.verdict, *use));
  if (use->tool == Tool::diff_best) return diff_best(*use);
  auto draft = draft_of(*use, call.id);
  if (!draft) return Said{.text = draft.error().text, .is_error = true};
  if (use->tool == Tool::compile) return compile(ctx, **draft, past.has_value());
  return evaluate(ctx, **draft);
}

// Returns the draft that a call names, or keeps the new draft that its changes create.
tl::expected<Draft*, Reask> ToolDesk::draft_of(const ToolUse& use, const std::string& call_id) {
  Draft* from = drafts_.find(use.draft);
  if (!use.draft.empty() && !from)
    return tl::unexpected(Reask{.reason = "no_draft", .text = drafts_.missing_text(use.draft)});
  if (!use.changes()) return from;
  const KernelProgram* base = from                    ? &from->candidate.program
                              : set_.question.subject ? &set_.question.subject->program
                                                      : nullptr;
  auto changes = changes_of(use, base);
  if (!changes) return tl::unexpected(changes.error());
  auto program = apply_reply(*changes, base, set_.check);
  if (!program) return tl::unexpected(program.error());
  Draft& draft = drafts_.keep(std::move(*program), changes->summary);
  if (auto shorter = as_changes(drafts_, draft, set_.question.subject, use))
    shorter_[call_id] = std::move(*shorter);
  return &draft;
}

void ToolDesk::tell_as_changes(llm::Message& message) const {
  if (!message.opaque.is_null()) return;
  for (llm::ToolCall& call : message.calls)
    if (auto it = shorter_.find(call.id); it != shorter_.end()) call.arguments = it->second;
}

// `known`: the tool ran before the process died, and the journal holds its result.
ToolDesk::Told ToolDesk::compile(const Context& ctx, Draft& draft, bool known) {
  if (known) return Said{};
  const KernelProgram& program = draft.candidate.program;
  CG_TRY(Verdict v, host_.compile(ctx, program));
  if (v.status == Status::aborted) return Said{.text = aborted_text(v), .is_error = true};
  if (v.status == Status::correct)
    return Said{.text = fmt::format(
                    "Draft {} compiles and loads.{}{}\n", draft.name,
                    v.feedback.resources.empty() ? "" : "\nResources: ", v.feedback.resources)};
  return Said{.text = "Draft " + draft.name + " does not compile or load.\n" +
                      describe_verdict(v, set_.floor_ns, false, 2) + hint_list(program, v)};
}

// Gets the draft's verdict, which counts as an evaluation unless the evaluator aborted it.
Result<void> ToolDesk::judge(const Context& ctx, Draft& draft) {
  CG_TRY(Evaluated e, host_.evaluate(ctx, draft.candidate));
  draft.candidate.id = e.candidate;
  draft.verdict = std::move(e.verdict);
  if (draft.verdict->status != Status::aborted) ++evaluations_;
  return {};
}

ToolDesk::Told ToolDesk::evaluate(const Context& ctx, Draft& draft) {
  if (!draft.verdict || draft.verdict->status == Status::aborted) {
    if (auto why = set_.tried(draft.candidate.program))
      return Said{.text = why->text, .is_error = true};
    if (evaluations_ >= set_.limits.evaluations)
      return Said{
          .text = fmt::format("This question has had its {} evaluations; answer now, or compile.",
                              set_.limits.evaluations),
          .is_error = true};
    if (evaluations_ >= set_.limits.run_evaluations)
      return Said{.text = "The run's budget of evaluations is used up; answer now.",
                  .is_error = true};
    CG_CHECK(judge(ctx, draft));
  }
  if (draft.verdict->status == Status::aborted)
    return Said{.text = aborted_text(*draft.verdict), .is_error = true};
  return Said{
      .text =
          fmt::format("Draft {} is kept as {}.\n", draft.name, draft.candidate.id) +
          describe_verdict(*draft.verdict, set_.floor_ns, set_.question.profile, 2) +
          (draft.verdict->status == Status::correct ? describe_cute(draft.candidate.program) : "") +
          hint_list(draft.candidate.program, *draft.verdict)};
}

ToolDesk::Said ToolDesk::diff_best(const ToolUse& use) const {
  const Draft* draft = use.draft.empty() ? drafts_.last() : drafts_.find(use.draft);
  if (!use.draft.empty() && !draft)
    return {.text = drafts_.missing_text(use.draft), .is_error = true};
  const Candidate* subject = set_.question.subject;
  if (!draft && !subject)
    return {.text = "There is no draft and no program in question to compare.", .is_error = true};
  const std::string name = draft ? draft->name : subject->id;
  std::string diff = host_.diff_best(draft ? draft->candidate.program : subject->program);
  if (diff.empty())
    return {.text = name + " is the best program, or the run has no best program yet.",
            .is_error = false};
  return {.text = "From the best program to " + name + ":\n" + diff, .is_error = false};
}

Result<std::optional<Candidate>> ToolDesk::choose(const Context& ctx,
                                                  std::optional<Candidate> answer) {
  const Draft* rival = drafts_.fastest();
  if (!answer) return rival ? std::optional(rival->candidate) : std::nullopt;
  Draft& own = drafts_.keep(answer->program, answer->edit.summary);
  if (rival && !own.verdict && evaluations_ < set_.limits.run_evaluations)
    CG_CHECK(judge(ctx, own));
  answer->id = own.candidate.id;
  if (!rival || rival == &own) return answer;
  auto time = own.time_ns(), best = rival->time_ns();
  if (time && *time * (1 - kBetter) <= *best) return answer;
  Candidate kept = rival->candidate;
  kept.edit.rationale = own.verdict ? "a draft; the answer to the question was no better"
                                    : "a draft; no evaluation was left for the answer";
  return kept;
}

}  // namespace cutegen::agent
