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
// Messages: a CompileCall on fd 3, then CompileReply or CompileDied on the call's own socket
// (wire/compiler_messages.h).
#pragma once

#include <cstdint>
#include <string>

#include "sandbox/sandbox.h"
#include "wire/channel.h"
#include "wire/compiler_messages.h"

namespace cutegen::compiler {

struct Request {
  wire::CompileCall call;
  wire::Channel reply;
  sandbox::Grade grade;  // what the child's own hardening achieved
};

enum class Fork { ahead, on_request };
Request next_request(wire::Channel& control, Fork when = Fork::ahead);
// This process's address space in use, and the CPU time that it has used.
int64_t mapped_bytes();
int64_t processor_ns();

}  // namespace cutegen::compiler
