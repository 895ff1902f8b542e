// SPDX-License-Identifier: Apache-2.0
// Drafts: the programs that a model passes to tools before it answers a question, named d1, d2, ...
//
// Contract: keep() returns the existing draft if the same program was added before. References to
// drafts remain valid when more drafts are added.
//
// Example: Drafts drafts(subject, Role::coder, "openai:gpt-5"); drafts.keep(program, "tile 128");
#pragma once

#include <deque>
#include <optional>
#include <string>

#include "agent/brief.h"
#include "core/program.h"
#include "core/verdict.h"

namespace cutegen::agent {

struct Draft {
  std::string name;
  Candidate candidate;  // candidate.id is empty before the evaluation
  std::optional<Verdict> verdict;
  std::optional<double> time_ns() const;  // if correct
};

class Drafts {
 public:
  // `subject`: the program that the question is about, or null. `origin`: the model that writes the
  // drafts.
  Drafts(const Candidate* subject, Role role, std::string origin)
      : subject_(subject), role_(role), origin_(std::move(origin)) {}

  Draft& keep(KernelProgram program, const std::string& summary);
  // Returns null if no draft has this name.
  const Draft* find(const std::string& name) const;
  Draft* find(const std::string& name);
  // Returns the newest draft, or null if there are no drafts.
  const Draft* last() const { return drafts_.empty() ? nullptr : &drafts_.back(); }
  // Returns the draft that the model passed just before this one, or null.
  const Draft* before(const Draft& draft) const;
  const Draft* fastest() const;  // the fastest correct draft, or null
  std::string names() const;     // the names of all drafts ("d1, d2"), or "none"
  // Returns the message to a model that named the unknown draft `name`.
  std::string missing_text(const std::string& name) const;

 private:
  const Candidate* subject_;
  Role role_;
  std::string origin_;
  std::deque<Draft> drafts_;
};

}  // namespace cutegen::agent
