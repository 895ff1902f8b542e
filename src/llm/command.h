// SPDX-License-Identifier: Apache-2.0
// Command: a user's own program that answers each JSON line with one JSON line.
//
// Contract: start() runs the command line with sh; the program inherits stderr. call() sends a line
// and waits for the answer. It skips blank lines and refuses lines longer than kMaxLine. If the
// program ends or breaks the protocol, or a call is given up, Command stops the program with its
// process group, and every later call fails. The program does not outlive its parent. One call at a
// time.
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
  int stop();  // returns the status from waitpid

  std::string line_;
  pid_t pid_;
  UniqueFd in_, out_;
  std::string buffer_;
};

}  // namespace cutegen::llm
