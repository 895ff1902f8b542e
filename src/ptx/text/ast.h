// SPDX-License-Identifier: Apache-2.0
// The syntax tree of a PTX module: scopes, names and statements, but no decoded instructions.
//
// Contract: string views point into the module's text, which must outlive the tree. The size of the
// tree is proportional to the length of the text. For example, the tree has one entry for the
// 100,000 registers of %r<100000>.
//
// Example: for (const Statement& s : function.statements) decode(s);
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "ptx/machine/inst.h"

namespace cutegen::ptx {

struct Operand {
  enum class Kind : uint8_t { word, integer, real, address, vector, sink } kind = Kind::sink;
  bool negated = false;        // !p
  bool has_base = false;       // the address has a register or symbol
  bool is_single = false;      // a 0f literal: `value` has the 32 bits of a float
  std::string_view text;       // the word, or the base of an address
  int64_t value = 0;           // integer, offset, or the 64 bits of a double
  std::vector<Operand> items;  // elements of a vector, of p|q, or of the arguments of a call
};

struct Statement {
  std::string_view opcode, guard;
  std::string_view text;  // the statement as written, for messages
  std::vector<Operand> operands;
  int line = 0, source_line = 0, source_column = 0, scope = 0;
  bool guard_negated = false;
};

struct Variable {
  std::string_view name, type;  // type without its dot: "b8", "f32"
  Space space = Space::global;
  int64_t align = 1, element = 1, count = 1;  // element: bytes of one element; count: elements
  bool is_extern = false, is_array = false;
  bool is_register = false;      // a function parameter in a register
  std::string_view initializer;  // the text between "=" and ";"
  int line = 0;
  int64_t bytes() const { return element * count; }
};

struct RegisterRange {
  std::string_view type;  // "b32", "pred"
  int64_t count = 0;      // 0: a single register; else name0 ... name(count-1)
};

struct Scope {
  int parent = -1;
  std::unordered_map<std::string_view, RegisterRange> registers;
  std::unordered_map<std::string_view, size_t> labels;     // index of the statement after the label
  std::unordered_map<std::string_view, size_t> variables;  // index into Function::variables
  std::unordered_map<std::string_view, std::vector<std::string_view>> branch_targets;
};

struct Function {
  std::string_view name;
  bool is_entry = false;
  std::vector<Variable> params, returns, variables;
  std::vector<Scope> scopes;
  std::vector<Statement> statements;
  int64_t max_block[3] = {0, 0, 0};
  bool required_block = false;
  int64_t cluster[3] = {0, 0, 0};              // .reqnctapercluster; 0: none
  int64_t most_registers = 0, least_ctas = 0;  // .maxnreg, .minnctapersm; 0: none
  int line = 0;
};

struct ParsedModule {
  std::string_view version, target;
  std::vector<Function> functions;
  std::vector<Variable> variables;
  std::unordered_map<std::string_view, size_t> by_name;  // of variables
  // Functions (.func) that have a body.
  std::unordered_map<std::string_view, size_t> device_functions;
};

// Returns the size of a fundamental type in bytes ("u32" -> 4), or 0 for `pred` and for an unknown
// type.
int64_t type_bytes(std::string_view type);
// Returns the value of a number literal, or nullopt if the literal is malformed.
std::optional<Operand> parse_number(std::string_view text);

}  // namespace cutegen::ptx
