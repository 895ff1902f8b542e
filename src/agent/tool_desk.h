// SPDX-License-Identifier: Apache-2.0
// ToolDesk: serves the tool calls of one open question and keeps its drafts.
//
// Contract: every call gets one result. If a call is invalid or not allowed, its result says so. An
// Error means that the run cannot continue. The desk sanitises results and limits their length. A
// program given to `compile` or `evaluate` becomes draft d1, d2, ... if its edits apply. Apart from
// the host's work, results depend only on the calls, so a resumed or replayed question proceeds in
// the same way; the host does not repeat recorded work. Results reveal no more than a verdict's
// feedback, and only about the question's own candidates and the best one.
//
// Example: ToolDesk desk(setting, host); CG_TRY(auto results, desk.answer(ctx, reply.calls));
#pragma once

#include "agent/brief.h"
#include "agent/drafts.h"
#include "agent/edit.h"
#include "agent/tools.h"
#include "base/context.h"

namespace cutegen::agent {

struct ToolLimits {
  int calls = 8;          // per question
  int evaluations = 3;    // per question
  int64_t run_calls = 0;  // tool calls that remain for the run when the question is asked
  int64_t run_evaluations = 0;
};

struct ToolRecord {
  std::string tool, arguments_hash, text;
  bool is_error = false;
};
struct Evaluated {
  std::string candidate;  // the draft's id in the run
  Verdict verdict;
};

// The part of the tools' work that the engine does.
class ToolHost {
 public:
  virtual ~ToolHost() = default;
  // The record of the question's next call, if there is one. An error if the record is of a
  // different call.
  virtual Result<std::optional<ToolRecord>> recorded(const ToolRecord& call) = 0;
  virtual Result<void> record(const ToolRecord& call) = 0;
  // Compiles and loads. The result is stored only in the record of the call.
  virtual Result<Verdict> compile(const Context& ctx, const KernelProgram& program) = 0;
  // Evaluates each program of a question only once, even across a crash.
  virtual Result<Evaluated> evaluate(const Context& ctx, const Candidate& draft) = 0;
  // The diff from the run's best program to the draft. Empty if the question may not show that
  // program, or if they are equal.
  virtual std::string diff_best(const KernelProgram& draft) const = 0;
};

struct ToolSetting {
  Question question;
  double floor_ns = 0;
  std::string origin;  // the model that writes the drafts
  ProgramCheck check;
  // Refuses a program that was tried before this question.
  std::function<std::optional<Reask>(const KernelProgram&)> tried;
  ToolLimits limits;
  Offer offer;  // calls of other tools are refused
};

class ToolDesk {
 public:
  ToolDesk(ToolSetting setting, ToolHost& host)
      : set_(std::move(setting)),
        host_(host),
        drafts_(set_.question.subject, set_.question.role, set_.origin) {}

  Result<std::vector<llm::ToolResult>> answer(const Context& ctx,
                                              const std::vector<llm::ToolCall>& calls);
  int64_t calls_left() const;
  int calls() const { return calls_; }
  const Drafts& drafts() const { return drafts_; }
  // The result of the question: its answer (empty if none was usable) or a better draft. If there
  // is a correct draft, choose() also evaluates the answer, for a fair comparison. The result has
  // an id if it was evaluated.
  Result<std::optional<Candidate>> choose(const Context& ctx, std::optional<Candidate> answer);

 private:
  struct Said {
    std::string text;
    bool is_error = false;
  };
  using Told = Result<Said>;
  Result<llm::ToolResult> answer_one(const Context& ctx, const llm::ToolCall& call);
  Told perform(const Context& ctx, const llm::ToolCall& call,
               const std::optional<ToolRecord>& past);
  Told compile(const Context& ctx, Draft& draft, bool known);
  Told evaluate(const Context& ctx, Draft& draft);
  Said profile(const ToolUse& use) const;
  Said diff_best(const ToolUse& use) const;
  tl::expected<Draft*, Reask> draft_of(const ToolUse& use);
  Result<void> judge(const Context& ctx, Draft& draft);

  ToolSetting set_;
  ToolHost& host_;
  Drafts drafts_;
  int calls_ = 0, evaluations_ = 0;
};

}  // namespace cutegen::agent
