// SPDX-License-Identifier: Apache-2.0
// Splits CUDA source into tokens, for the lint and for finding kernel signatures.
//
// Contract: scan_source() removes comments and line splices, and replaces digraphs. A preprocessor
// directive is one token ("#include <a.h>"), and so is a string or character literal, without
// prefix and quotes. scan_source() never fails: unknown characters are punctuation. Lines and
// columns start at 1.
//
// Example: for (const Token& t : scan_source(text)) if (t.is("asm")) ...
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace cutegen::eval {

struct Token {
  enum class Kind { word, number, string, character, directive, punctuation } kind;
  std::string text;
  int line = 1, column = 1;
  size_t begin = 0, end = 0;  // byte range of the token in the source
  bool is(std::string_view word) const { return kind == Kind::word && text == word; }
  bool mark(char c) const { return kind == Kind::punctuation && text.size() == 1 && text[0] == c; }
};

std::vector<Token> scan_source(std::string_view source);

// The signature of a kernel: extern "C" __global__ ... name(parameters).
struct Signature {
  std::string name;
  std::vector<std::string> parameters;  // source text of each parameter
  int line = 1, column = 1;
  bool external = false, templated = false;  // external: extern "C"
  // The line and column of __global__ if the declaration begins with __global__; else 0.
  int global_line = 0, global_column = 0;
};
std::vector<Signature> kernel_signatures(const std::vector<Token>& tokens);

}  // namespace cutegen::eval
