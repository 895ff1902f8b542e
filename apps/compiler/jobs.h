// SPDX-License-Identifier: Apache-2.0
// Jobs: the children that compile one candidate each, and the loop that feeds them.
//
// Contract: next_request() runs the server's loop. It returns only in a forked and hardened child,
// with that child's request. The server ends the program when the client closes the connection.
// Fork::ahead keeps spare children with their own copy of the parsed headers, forked before their
// requests. Fork::on_request forks when a request arrives, because a process that holds a parsed
// candidate is large. If a child dies or runs too long, the loop reports that on the child's reply
// socket. If a client closes its reply socket, the loop kills the child.
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
  sandbox::Grade grade;  // what the child's own hardening achieved
};

enum class Fork { ahead, on_request };
Request next_request(wire::Channel& control, Fork when = Fork::ahead);
// This process's address space in use, and the CPU time that it has used.
int64_t mapped_bytes();
int64_t processor_ns();

}  // namespace cutegen::compiler
