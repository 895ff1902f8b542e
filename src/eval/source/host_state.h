// SPDX-License-Identifier: Apache-2.0
// The state of the reader of a launcher (a host function that launches the kernel): the values of
// variables after the statements that were read so far.
//
// Contract: value_or_reason() never fails. A value that cutegen cannot read causes an error only if
// the launch needs the value.
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
  // for each returned local variable: the task's output in this variable
  std::map<std::string, std::string> returned = {};
  std::set<std::string> declared = {};  // variables declared in the innermost block
  bool launched = false, returned_early = false;
  int branches = 0;  // nesting depth of branches with unknown conditions

  Result<HostValue> value(TokenRange range);
  // Returns the value of the expression in a range of tokens, or a value of kind `unreadable` with
  // the reason.
  HostValue value_or_reason(TokenRange range);
  // Marks all variables in an unreadable expression as unreadable, because the expression may
  // change them.
  void forget(TokenRange range, const Error& why);
  size_t statement_end(size_t i) const;
  Result<void> alias(TokenRange range);  // reads "using X = TYPE;" or "typedef TYPE X;"
  // Returns the tokens of a type or a kernel's name in the spelling of device code: without local
  // aliases, and with __half instead of at::Half.
  std::vector<Token> substituted(TokenRange range) const;
  // Adds a condition under which the launch is valid. Inside a branch, adds no condition, but notes
  // that the launcher may return early if the condition is always false.
  Result<void> demand(const HostValue& condition, const Token& at);
  void note_type(const std::string& type);
};

bool has_token(const std::vector<Token>& t, TokenRange range,
               const std::function<bool(const Token&)>& matches);
// True if a word in the range contains `part`.
bool mentions(const std::vector<Token>& t, TokenRange range, std::string_view part);

// Returns the index of the variable's name if the statement is a declaration, otherwise 0.
size_t declared_name(const HostState& state, TokenRange range);
Result<void> read_declaration(HostState& state, TokenRange range, size_t name);
// Finds the tensors that the launcher allocates and returns, and assigns the task's outputs to
// these tensors.
void find_returned(HostState& state, const std::vector<std::string>& outputs);
// Reads an assignment, a check, or a call that does not affect the launch.
Result<void> read_effect(HostState& state, TokenRange range);
// Reads the statement KERNEL<ARGUMENTS><<<grid, block, shared, stream>>>(arguments).
Result<void> read_launch(HostState& state, TokenRange range);

}  // namespace cutegen::eval
