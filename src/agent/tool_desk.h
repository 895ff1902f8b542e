// SPDX-License-Identifier: Apache-2.0
// ToolDesk: executes the tool calls of one question and stores the question's drafts.
//
// Contract: answer() returns one result for every call. If a call is invalid or not allowed, its
// result is an error message. An Error means that the run cannot continue. Results are sanitised,
// and their length is limited. A program that the model passes to `compile` or `evaluate` becomes
// draft d1, d2, ... if its edits can be applied. Except for the ToolHost's results, all results
// depend only on the calls. The ToolHost returns recorded results, so a resumed or replayed
// question proceeds in the same way. Results reveal no more than the feedback of a verdict, and
// only about the candidates of the question and the best program.
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
  int64_t run_calls = 0;  // tool calls that the run has left at the start of the question
  int64_t run_evaluations = 0;
};

struct ToolRecord {
  std::string tool, arguments_hash, text;
  bool is_error = false;
};
struct Evaluated {
  std::string candidate;  // the id that the draft has in the run
  Verdict verdict;
};

// The interface by which tools use the evaluator and the journal. The engine implements it.
class ToolHost {
 public:
  virtual ~ToolHost() = default;
  // Returns the record of the question's next call, if the journal has one. Returns an error if
  // this record is for a call other than `call`.
  virtual Result<std::optional<ToolRecord>> recorded(const ToolRecord& call) = 0;
  virtual Result<void> record(const ToolRecord& call) = 0;
  // Compiles and loads the program. The journal stores the result only in the record of the call.
  virtual Result<Verdict> compile(const Context& ctx, const KernelProgram& program) = 0;
  // Evaluates the draft. Evaluates each program of a question only once, even after a crash.
  virtual Result<Evaluated> evaluate(const Context& ctx, const Candidate& draft) = 0;
  // The diff from the run's best program to the draft. Empty if the question may not show the best
  // program, or if the two are equal.
  virtual std::string diff_best(const KernelProgram& draft) const = 0;
};

struct ToolSetting {
  Question question;
  double floor_ns = 0;
  std::string origin;  // the model that writes the drafts
  ProgramCheck check;
  // Returns a Reask if the run had tried the program before this question.
  std::function<std::optional<Reask>(const KernelProgram&)> tried;
  ToolLimits limits;
  Offer offer;  // the tools that the model may call
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
  // Returns the final program of the question: the model's answer (empty if it was unusable) or a
  // faster draft. If a draft is correct, choose() also evaluates the answer, to compare them. The
  // result has an id if it was evaluated.
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
