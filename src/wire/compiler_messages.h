// SPDX-License-Identifier: Apache-2.0
// The messages between the evaluator and the compile server, cutegen-compiler (schema
// cutegen.compiler.v1). They are in `wire` because the compile server links no module above it.
//
// Contract: sender and receiver use the same fields() function of a message. Three messages carry a
// descriptor: `CompileCall` the socket for its reply, `KeepCall` the socket that pauses the
// compiler, and `Parked` the control socket of a new server process. Do not trust replies: the
// process that sends them has read a candidate.
//
// Example: CG_TRY(auto call, read_json<wire::CompileCall>(frame.body));
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/context.h"
#include "base/fields.h"
#include "base/protection.h"

namespace cutegen::wire {

// How the compile server compiles a candidate. `forked`: in a child that has already parsed the
// headers. `plain`: from scratch. `warm`: in a child that has already compiled the beginning of the
// program.
enum class CompileMode { forked, plain, warm };
Names<CompileMode> enum_names(CompileMode);

// The value of CompilerReady::why if the client asked for the mode `plain`.
inline constexpr const char* kAskedFor = "asked for";

// The server's first message.
struct CompilerReady {
  CompileMode how = CompileMode::plain;
  std::string why;  // not forked
  std::string version;
  Nanoseconds warm_up{0};
  std::vector<std::string> headers;  // of the prefix
};

struct CompileCall {
  std::string source;
  int64_t memory_bytes = 0, timeout_ms = 0;
};

struct CompileReply {
  bool ok = false;
  CompileMode how = CompileMode::forked;
  std::string status, ptx, log;
  // Headers that this compilation opened, except those of the prefix, and headers that it did not
  // find.
  std::vector<std::string> headers, refused;
  Protection grade = Protection::none;
  std::string missing;
  Nanoseconds spent{0};  // processor time of the child
};

// The server sends this message instead of a reply if the child died.
struct CompileDied {
  std::string died;
  bool timed_out = false;
};
bool is_death(const Json& reply);

// Tells the compile server to compile a program in parts. After expensive parts, the compiler
// process leaves a copy of itself, a server from which similar programs continue
// (apps/compiler/chain.h).
struct KeepCall {
  std::vector<std::string> parts;
  int64_t memory_bytes = 0, timeout_ms = 0;
};
struct Parked {
  int64_t part = 0;  // the new server has read the parts before this one
  Nanoseconds spent{0};
};
// The compiler process has read all parts of the program.
struct Kept {};
bool is_kept(const Json& message);

using cutegen::to_json;
void fields(Fields& v, CompilerReady& x);
void fields(Fields& v, CompileCall& x);
void fields(Fields& v, CompileReply& x);
void fields(Fields& v, CompileDied& x);
void fields(Fields& v, KeepCall& x);
void fields(Fields& v, Parked& x);
void fields(Fields& v, Kept& x);

}  // namespace cutegen::wire
