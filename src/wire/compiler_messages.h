// SPDX-License-Identifier: Apache-2.0
// Defines the messages between the evaluator and the compile server, cutegen-compiler (schema
// cutegen.compiler.v1). The messages are in the module `wire`, because the compile server links no
// module above `wire`.
//
// Contract: sender and receiver use the same fields() function of a message. Three messages carry a
// descriptor: `CompileCall` the socket for its reply, `KeepCall` the socket that pauses the
// compiler, and `Parked` the control socket of a new server process. Do not trust replies of the
// compiler: the process that sends a reply has read a candidate's source.
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

// Says how the compile server compiles a candidate: in a child that has already parsed the headers
// (`forked`), from scratch (`plain`), or in a child that has already compiled the beginning of the
// program (`warm`).
enum class CompileMode { forked, plain, warm };
Names<CompileMode> enum_names(CompileMode);

// CompilerReady::why has this value if the client asked for the mode `plain`.
inline constexpr const char* kAskedFor = "asked for";

// The compile server sends CompilerReady as its first message.
struct CompilerReady {
  CompileMode how = CompileMode::plain;
  std::string why;  // why `how` is not `forked`
  std::string version;
  Nanoseconds warm_up{0};
  std::vector<std::string> headers;  // the headers of the precompiled prefix
};

// `timeout_ms` limits the processor time of the compile. On a busy machine, the same work takes
// longer, so the compile server waits up to kMostWait times as long.
struct CompileCall {
  std::string source;
  int64_t memory_bytes = 0, timeout_ms = 0;
};
inline constexpr int kMostWait = 5;

struct CompileReply {
  bool ok = false;
  CompileMode how = CompileMode::forked;
  std::string status, ptx, log;
  // Headers that NVRTC opened, except the headers of the precompiled prefix, and files that the
  // compile server refused to open.
  std::vector<std::string> headers, refused;
  Protection grade = Protection::none;
  std::string missing;
  Nanoseconds spent{0};  // processor time of the child
};

// The compile server sends CompileDied instead of a reply if its child process died.
struct CompileDied {
  std::string died;
  bool timed_out = false;
};
bool is_death(const Json& reply);

// KeepCall tells the compile server to compile a program in parts. After expensive parts, the
// compiler process leaves a copy of itself, a server from which similar programs continue
// (apps/compiler/chain.h).
struct KeepCall {
  std::vector<std::string> parts;
  int64_t memory_bytes = 0, timeout_ms = 0;
};
struct Parked {
  int64_t part = 0;  // the first part that the new server has not read
  Nanoseconds spent{0};
};
// Kept says that the compiler process has read all parts of the program.
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
