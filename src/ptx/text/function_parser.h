// SPDX-License-Identifier: Apache-2.0
// FunctionParser: parses one entry or device function.
//
// Contract: call run() once, after the reader has consumed ".entry" or ".func". If the text has
// only a function prototype, Function::scopes is empty.
//
// Example: CG_TRY(Function f, FunctionParser(in).run(true));
#pragma once

#include "ptx/text/reader.h"

namespace cutegen::ptx {

// Tracks .loc directives, which give the source line of the statements that follow.
class SourceLines {
 public:
  Result<void> location(Reader& in);
  int line = 0, column = 0;  // 0: unknown

 private:
  int file_ = 0;  // file of the first .loc; the class ignores .loc of other files
};

class FunctionParser {
 public:
  explicit FunctionParser(Reader& in) : in_(in) {}
  Result<Function> run(bool is_entry);

 private:
  Result<void> body();
  Result<void> body_item();
  Result<void> directive(std::string_view name);
  Result<void> registers(std::string_view type);
  Result<void> local_variables(Space space);
  Result<void> label(std::string_view name);
  Result<void> statement();
  Result<void> call(Statement& s);

  Reader& in_;
  Function f_;
  SourceLines lines_;
  int scope_ = 0, depth_ = 0;
};

// Parses the part of a variable's or parameter's declaration after the state space: ".align 4 .b8
// name[16]".
Result<Variable> parse_variable(Reader& in, Space space, bool is_extern);

}  // namespace cutegen::ptx
