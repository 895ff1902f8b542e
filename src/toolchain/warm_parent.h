// SPDX-License-Identifier: Apache-2.0
// WarmParent: a compile server that parses one program and keeps processes that have parsed the
// program up to different positions (cuts, see cuts.h). Another program with the same beginning
// compiles faster, because one of the kept processes continues with the rest.
//
// Contract: start() returns at once. The server parses the program in the background and pauses
// while hold(true) is in effect. The function best() returns the last parsed cut before which
// `text` equals the program byte for byte, and compile() continues from this cut. The process that
// continues has parsed only the text before the cut. Therefore, the result equals a compile of the
// whole text, and the rest of the parsed program cannot influence the result.
//
// Example:
//   CG_TRY(auto parent, WarmParent::start(setup, text, cuts, "kernel.cu", limits));
//   if (auto from = parent->best(child)) parent->compile(ctx, *from, child, limits);
#pragma once

#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "toolchain/compile_server.h"
#include "toolchain/cuts.h"

namespace cutegen::toolchain {

class WarmParent {
 public:
  // A cut from which a compile can continue, the processor time that parsing up to the cut took,
  // and the channel to the process that waits at the cut.
  struct Place {
    Cut cut;
    Nanoseconds spent{0};
    std::shared_ptr<wire::Channel> server;
  };
  static Result<std::shared_ptr<WarmParent>> start(const ServerSetup& setup,
                                                   const std::string& text, const Cuts& cuts,
                                                   const std::string& name,
                                                   const CompileLimits& limits);
  std::optional<Place> best(const std::string& text);
  Result<ServerReply> compile(const Context& ctx, const Place& from, const std::string& text,
                              const CompileLimits& limits);
  void hold(bool stop);
  // Reads the messages that the server sent since the last call of look(). Returns false if the
  // server died before it had parsed the whole program.
  bool look();
  bool complete() const;
  const std::string& text() const { return text_; }
  int64_t memory() const;
  std::string error_text() const { return child_.error_text(); }

 private:
  WarmParent(sandbox::Child child, wire::Channel channel, std::string text, std::string name);
  void note(wire::Frame frame);

  sandbox::Child child_;
  wire::Channel channel_, pause_;
  std::string text_, name_;
  std::vector<Cut> cuts_;
  mutable std::mutex mutex_;  // guards the channels and the members below
  std::mutex sending_;
  std::deque<Place> places_;  // in text order
  bool complete_ = false, broken_ = false, held_ = false;
};

}  // namespace cutegen::toolchain
