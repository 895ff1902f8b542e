// SPDX-License-Identifier: Apache-2.0
// ToolDesk: the tools of one open question: calls in, results out, drafts kept.
//
// Contract: every call gets one result; what is wrong with it, or not allowed, is a result that
// says so, never an Error (that is for a run that cannot go on). Results are sanitised and capped.
// A program given to `compile` or `evaluate` becomes draft d1, d2, ... when it applies. All but the
// work of the host is a function of the calls, so that a resumed or replayed question goes the same
// way: what the host has on record is not done again. Nothing is told that the feedback of a
// verdict may not say, nor of other candidates than the question's own and the best.
//
// Example: ToolDesk desk(setting, host); CG_TRY(auto results, desk.answer(ctx, reply.calls));
#pragma once

#include "agent/brief.h"
#include "agent/edit.h"
#include "agent/tools.h"
#include "base/context.h"

namespace cutegen {

struct ToolLimits {
  int calls = 8;          // of one question
  int evaluations = 3;    // of one question
  int64_t run_calls = 0;  // what the run has left when the question is put
  int64_t run_evaluations = 0;
};

struct ToolRecord {
  std::string tool, arguments_hash, text;
  bool is_error = false;
};
struct Evaluated {
  std::string candidate;  // the id under which the run keeps it
  Verdict verdict;
};

// What the engine does for tools.
class ToolHost {
 public:
  virtual ~ToolHost() = default;
  // The record of the question's next call, if there is one; error if it is of another call.
  [[nodiscard]] virtual Result<std::optional<ToolRecord>> recorded(const ToolRecord& call) = 0;
  [[nodiscard]] virtual Result<void> record(const ToolRecord& call) = 0;
  // Up to loading; the result goes into no record but that of the call.
  [[nodiscard]] virtual Result<Verdict> compile(const Context& ctx,
                                                const KernelProgram& program) = 0;
  // Once for each program of a question, whatever happens in between.
  [[nodiscard]] virtual Result<Evaluated> evaluate(const Context& ctx, const Candidate& draft) = 0;
  // From the best program that the question may know; empty: there is none, or no difference.
  [[nodiscard]] virtual std::string diff_best(const KernelProgram& draft) const = 0;
};

struct ToolSetting {
  Question question;
  double floor_ns = 0;
  std::string origin;  // of drafts: the model
  ProgramCheck check;
  std::function<std::optional<Reask>(const KernelProgram&)> tried;  // before this question
  ToolLimits limits;
};

class ToolDesk {
 public:
  ToolDesk(ToolSetting setting, ToolHost& host) : set_(std::move(setting)), host_(host) {}

  [[nodiscard]] Result<std::vector<llm::ToolResult>> answer(
      const Context& ctx, const std::vector<llm::ToolCall>& calls);
  [[nodiscard]] int64_t calls_left() const;
  [[nodiscard]] int calls() const { return calls_; }
  // A draft of this question; null: there is none of that name. Valid until the next call.
  [[nodiscard]] const KernelProgram* draft(const std::string& name) const;
  [[nodiscard]] std::string draft_names() const;  // "d1, d2", or "none"
  // What the question comes to: its answer (nothing: none could be used), or the draft that proved
  // better. An answer meets a correct draft on equal terms: it is evaluated, too. What has been
  // evaluated has its id.
  [[nodiscard]] Result<std::optional<Candidate>> choose(const Context& ctx,
                                                        std::optional<Candidate> answer);

 private:
  struct Draft {
    std::string name;
    Candidate candidate;  // with its id once it was evaluated
    std::optional<Verdict> verdict;
  };
  struct Said {
    std::string text;
    bool is_error = false;
  };
  using Told = Result<Said>;
  [[nodiscard]] Result<llm::ToolResult> answer_one(const Context& ctx, const llm::ToolCall& call);
  [[nodiscard]] Told perform(const Context& ctx, const llm::ToolCall& call,
                             const std::optional<ToolRecord>& past);
  [[nodiscard]] Told compile(const Context& ctx, Draft& draft, bool known);
  [[nodiscard]] Told evaluate(const Context& ctx, Draft& draft);
  [[nodiscard]] Said profile(const ToolUse& use) const;
  [[nodiscard]] Said diff_best(const ToolUse& use) const;
  [[nodiscard]] tl::expected<Draft*, Reask> draft_of(const ToolUse& use);
  [[nodiscard]] Result<void> judge(const Context& ctx, Draft& draft);
  [[nodiscard]] Draft& keep(KernelProgram program, const std::string& summary);
  [[nodiscard]] std::optional<size_t> find(const std::string& name) const;
  [[nodiscard]] std::string no_draft(const std::string& name) const;
  [[nodiscard]] const Draft* best() const;

  ToolSetting set_;
  ToolHost& host_;
  std::vector<Draft> drafts_;
  int calls_ = 0, evaluations_ = 0;
};

}  // namespace cutegen
