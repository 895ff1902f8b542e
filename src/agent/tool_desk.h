// SPDX-License-Identifier: Apache-2.0
// ToolDesk: executes the tool calls of one question and stores the question's drafts.
//
// Contract: answer() returns one result for every tool call. If a call is invalid or not allowed,
// its result is an error message. If answer() returns an Error, the run cannot continue. ToolDesk
// sanitises the results and limits their length. If the model passes edits to `compile` or
// `evaluate` and the edits can be applied, the resulting program becomes the next draft (named d1,
// d2, and so on). Results depend only on the calls and on the ToolHost. Because the ToolHost
// returns recorded results, a resumed or replayed question gets the same results again. Results
// reveal no more than a verdict's feedback does, and only about the question's candidates and the
// run's best program.
//
// Example: ToolDesk desk(setting, host); CG_TRY(auto results, desk.answer(ctx, reply.calls));
#pragma once

#include <map>

#include "agent/brief.h"
#include "agent/drafts.h"
#include "agent/edit.h"
#include "agent/tools.h"
#include "base/context.h"

namespace cutegen::agent {

struct ToolLimits {
  int calls = 8;          // per question
  int evaluations = 3;    // per question
  int64_t run_calls = 0;  // tool calls that the run has left when the question starts
  int64_t run_evaluations = 0;
};

struct ToolRecord {
  std::string tool, arguments_hash, text;
  bool is_error = false;
};
struct Evaluated {
  std::string candidate;  // the draft's candidate id in the run
  Verdict verdict;
};

// The engine implements this interface, through which tools use the evaluator and the run's
// journal.
class ToolHost {
 public:
  virtual ~ToolHost() = default;
  // Returns the journal's record of the question's next call, or nullopt if there is no record.
  // Returns an error if the record is for a call other than `call`.
  virtual Result<std::optional<ToolRecord>> recorded(const ToolRecord& call) = 0;
  virtual Result<void> record(const ToolRecord& call) = 0;
  // Compiles and loads the program, but does not run it. The journal records no event `evaluated`
  // for the verdict; it has only the text of the tool's result.
  virtual Result<Verdict> compile(const Context& ctx, const KernelProgram& program) = 0;
  // Evaluates the draft. Within a question, evaluates each program only once, even after a crash.
  virtual Result<Evaluated> evaluate(const Context& ctx, const Candidate& draft) = 0;
  // Returns the diff from the run's best program to the draft. If there is no best program, or if
  // the question may not show it, the diff starts from the question's subject instead. Returns an
  // empty text if the question has no subject either, or if the programs are equal.
  virtual std::string diff_best(const KernelProgram& draft) const = 0;
};

struct ToolSetting {
  Question question;
  double floor_ns = 0;
  std::string origin;  // name of the model that writes the drafts
  ProgramCheck check;
  // Returns a Reask (a message to the model) if the run had tried the program before this question.
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
  // Shortens a message of the model that later requests will repeat: if a tool call of the message
  // has a whole program, replaces the program by changes to an earlier draft or to the question's
  // program. Call it after answer(). Leaves messages with data for the provider unchanged.
  void tell_as_changes(llm::Message& message) const;
  int64_t calls_left() const;
  int calls() const { return calls_; }
  const Drafts& drafts() const { return drafts_; }
  // Returns the final program of the question: `answer` (the model's answer; empty if the reply was
  // unusable) or a faster draft. If a draft is correct, choose() also evaluates the answer, to
  // compare their times. The returned candidate has an id if it was evaluated.
  Result<std::optional<Candidate>> choose(const Context& ctx, std::optional<Candidate> answer);

 private:
  struct Said {
    std::string text;
    bool is_error = false;
  };
  using Told = Result<Said>;
  // Returns the text as a result, or the error's text as an error.
  static Said said(const tl::expected<std::string, std::string>& text) {
    return text ? Said{.text = *text} : Said{.text = text.error(), .is_error = true};
  }
  Result<llm::ToolResult> answer_one(const Context& ctx, const llm::ToolCall& call);
  Told perform(const Context& ctx, const llm::ToolCall& call,
               const std::optional<ToolRecord>& past);
  Told compile(const Context& ctx, Draft& draft, bool known);
  Told evaluate(const Context& ctx, Draft& draft);
  Said diff_best(const ToolUse& use) const;
  tl::expected<Draft*, Reask> draft_of(const ToolUse& use, const std::string& call_id);
  Result<void> judge(const Context& ctx, Draft& draft);

  ToolSetting set_;
  ToolHost& host_;
  Drafts drafts_;
  // by the call's id: the arguments, with changes instead of the whole program
  std::map<std::string, Json> shorter_;
  int calls_ = 0, evaluations_ = 0;
};

}  // namespace cutegen::agent
