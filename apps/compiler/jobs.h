// SPDX-License-Identifier: Apache-2.0
// Jobs: the children that compile one candidate each, and the loop that feeds them.
//
// Contract: next_request() runs the server's loop. It returns in a forked and hardened child, with
// that child's request; in the server itself it never returns: it ends the program when the client
// goes away. With `ahead` one spare child is kept forked ahead of its request, with its own copy of
// the parsed headers; without, the child is forked when the request is there, since the process
// that holds a parsed candidate is large. A child that dies or runs too long is reported on its
// reply socket by the loop; a client that drops its reply socket has its child killed.
//
// Messages (schema cutegen.compiler.v1), each on fd 3 with the reply socket as its one descriptor:
//   {"type":"compile","source":text,"memory_bytes":n,"timeout_ms":n}
//   reply {"ok":bool,"ptx","log","headers":[],"refused":[],"status","spent_ns":n} or
//   {"died":text,"timed_out":bool}
#pragma once

#include <cstdint>
#include <string>

#include "sandbox/sandbox.h"
#include "wire/channel.h"

namespace cutegen::compiler {

inline constexpr const char* kSchema = "cutegen.compiler.v1";

struct Request {
  std::string source;
  int64_t memory_bytes = 0;
  int64_t timeout_ms = 0;
  wire::Channel reply;
  sandbox::Grade grade;  // what the child could do to itself
};

enum class Fork { ahead, on_request };
[[nodiscard]] Request next_request(wire::Channel& control, Fork when = Fork::ahead);
// Address space in use, and time of the processor spent, by this process.
[[nodiscard]] int64_t mapped_bytes();
[[nodiscard]] int64_t processor_ns();

}  // namespace cutegen::compiler
