// SPDX-License-Identifier: Apache-2.0
// Command: runs a program of the user that replaces a language model. The user's program reads
// questions and writes answers, one JSON value per line.
//
// Contract: start() runs the user's command line with sh; the program inherits stderr. The function
// call() sends a question as one line and waits for one line with the answer. It skips blank lines,
// and fails if a line is longer than kMaxLine. If the program ends or breaks the protocol, or if a
// call is cancelled or times out, Command stops the program with its process group, and every later
// call fails. The program also ends when its parent process dies. Only one thread at a time may
// call call().
//
// Example:
//   CG_TRY(auto c, Command::start("python3 mine.py"));
//   CG_TRY(Json a, c->call(ctx, question));
#pragma once

#include <sys/types.h>

#include <memory>
#include <string>

#include "base/context.h"
#include "base/file.h"
#include "base/json.h"

namespace cutegen::llm {

inline constexpr size_t kMaxLine = size_t{16} << 20;

class Command {
 public:
  static Result<std::unique_ptr<Command>> start(const std::string& line);
  ~Command();
  Command(const Command&) = delete;
  Command& operator=(const Command&) = delete;
  Result<Json> call(const Context& ctx, const Json& question);

 private:
  Command(std::string line, pid_t pid, UniqueFd in, UniqueFd out)
      : line_(std::move(line)), pid_(pid), in_(std::move(in)), out_(std::move(out)) {}
  Result<void> send(const Context& ctx, std::string_view bytes);
  Result<std::string> receive(const Context& ctx);
  Result<void> wait_ready(const Context& ctx, int fd, short events);
  tl::unexpected<Error> ended();
  int stop();  // stops the program and returns the status from waitpid

  std::string line_;
  pid_t pid_;
  UniqueFd in_, out_;
  std::string buffer_;
};

}  // namespace cutegen::llm
