// SPDX-License-Identifier: Apache-2.0
// WarmParent: a program that a cutegen-compiler has parsed in part. Programs that begin like it can
// continue from there.
//
// Contract: start() returns at once. The server parses the program in the background and pauses
// while hold(true) is in effect. best() returns the furthest parsed place up to which `text` is
// identical, byte for byte, and compile() continues from there. The process behind a place has
// parsed only that beginning. So the result equals a compile of the whole text, and no other
// program can influence it.
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
  // A place to continue from: the cut, and the processor time spent before it.
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
  // Reads the server's messages since the last call. Returns false if it died before it had parsed
  // everything.
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
  mutable std::mutex mutex_;  // guards the members below and the channels
  std::mutex sending_;
  std::deque<Place> places_;  // in text order
  bool complete_ = false, broken_ = false, held_ = false;
};

}  // namespace cutegen::toolchain
