// SPDX-License-Identifier: Apache-2.0
// The messages between the toolchain and cutegen-compiler (schema cutegen.compiler.v1). They are
// here because the compile server links no module above this one.
//
// Contract: the sender writes and the receiver reads a message by its one list of fields. A compile
// call has one descriptor, the socket for its reply. A keep call has one, the pause socket. Parked
// has one, the control socket of the server that was left behind. A reply comes from a process that
// has read a candidate, so it may be anything.
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

// How a candidate is compiled: by a child that holds the parsed headers, as a whole, or by a child
// that holds the beginning of the program.
enum class CompileMode { forked, plain, warm };
Names<CompileMode> enum_names(CompileMode);

// CompilerReady::why if the client asked for `plain`.
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
  // Headers that this compile opened (besides the prefix's), and those that it did not find.
  std::vector<std::string> headers, refused;
  Protection grade = Protection::none;
  std::string missing;
  Nanoseconds spent{0};  // processor time of the child
};

// Instead of a reply: how the child died.
struct CompileDied {
  std::string died;
  bool timed_out = false;
};
bool is_death(const Json& reply);

// Tells the server to read a program in parts and to leave servers behind (apps/compiler/chain.h).
struct KeepCall {
  std::vector<std::string> parts;
  int64_t memory_bytes = 0, timeout_ms = 0;
};
struct Parked {
  int64_t part = 0;  // the server has read the parts before this one
  Nanoseconds spent{0};
};
// The last process of the chain has read all parts.
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
