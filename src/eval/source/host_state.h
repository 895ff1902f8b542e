// SPDX-License-Identifier: Apache-2.0
// The state of reading a launcher: what its statements so far have computed.
//
// Contract: value_or_reason() never fails, because a value that cutegen cannot read matters only if
// the launch needs it.
//
// Example: HostState s{.context = context, .t = body}; s.value({from, to})
#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "eval/source/launcher.h"

namespace cutegen::eval {

struct HostState {
  HostContext& context;
  const std::vector<Token> t;  // the launcher's body
  HostScope scope;
  HostLaunch launch;
  std::map<std::string, std::string> returned = {};  // local name -> output of the task
  std::set<std::string> declared = {};               // variables that the innermost block declares
  bool launched = false, returned_early = false;
  int branches = 0;  // enclosing branches of unknown conditions

  Result<HostValue> value(TokenRange range);
  // The value of the expression in a range of tokens, or why cutegen cannot read it.
  HostValue value_or_reason(TokenRange range);
  // Makes the variables in an unreadable expression unknown, because the expression may change
  // them.
  void forget(TokenRange range, const Error& why);
  size_t statement_end(size_t i) const;
  Result<void> alias(TokenRange range);  // using X = TYPE; typedef TYPE X;
  // The tokens of a type or a kernel's name as device code writes them: local aliases replaced,
  // and __half for at::Half.
  std::vector<Token> substituted(TokenRange range) const;
  // Adds a condition of the launch. Inside a branch, it adds nothing; a condition that fails there
  // ends the branch.
  Result<void> demand(const HostValue& condition, const Token& at);
  void note_type(const std::string& type);
};

bool has_token(const std::vector<Token>& t, TokenRange range,
               const std::function<bool(const Token&)>& matches);
// Whether a word of the range contains `part`.
bool mentions(const std::vector<Token>& t, TokenRange range, std::string_view part);

// The index of the name if the statement declares a variable; else 0.
size_t declared_name(const HostState& state, TokenRange range);
Result<void> read_declaration(HostState& state, TokenRange range, size_t name);
// Tensors that the launcher allocates and returns are the task's outputs.
void find_returned(HostState& state, const std::vector<std::string>& outputs);
// Assignments, checks, and calls without effect on the launch.
Result<void> read_effect(HostState& state, TokenRange range);
// Reads the statement KERNEL<ARGUMENTS><<<grid, block, shared, stream>>>(arguments).
Result<void> read_launch(HostState& state, TokenRange range);

}  // namespace cutegen::eval
