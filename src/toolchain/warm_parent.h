// SPDX-License-Identifier: Apache-2.0
// WarmParent: a program that a cutegen-compiler has read in part, for programs that begin alike.
//
// Contract: start() returns at once; the program is read in the background, and stopped while
// hold() says so. best() gives the furthest place, so far, up to which `text` is the same, byte for
// byte; compile() goes on from there. The process behind it has read nothing but that beginning,
// so the result is that of the whole text, and no other program has a say in it.
//
// Example: CG_TRY(auto parent, WarmParent::start(setup, text, cuts, "kernel.cu", limits));
//          if (auto from = parent->best(child)) parent->compile(ctx, *from, child, limits);
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
  // Where a program goes on: the cut, and the processor time that was spent before it.
  struct Place {
    Cut cut;
    Nanoseconds spent{0};
    std::shared_ptr<wire::Channel> server;
  };
  [[nodiscard]] static Result<std::shared_ptr<WarmParent>> start(const ServerSetup& setup,
                                                                 const std::string& text,
                                                                 const Cuts& cuts,
                                                                 const std::string& name,
                                                                 const CompileLimits& limits);
  [[nodiscard]] std::optional<Place> best(const std::string& text);
  [[nodiscard]] Result<ServerReply> compile(const Context& ctx, const Place& from,
                                            const std::string& text, const CompileLimits& limits);
  void hold(bool stop);
  // Reads what the server has told since. False: it died before it had read everything.
  bool look();
  [[nodiscard]] bool complete() const;
  [[nodiscard]] const std::string& text() const { return text_; }
  [[nodiscard]] int64_t memory() const;
  [[nodiscard]] std::string error_text() const { return child_.error_text(); }

 private:
  WarmParent(sandbox::Child child, wire::Channel channel, std::string text, std::string name);
  void note(wire::Frame frame);

  sandbox::Child child_;
  wire::Channel channel_, pause_;
  std::string text_, name_;
  std::vector<Cut> cuts_;
  mutable std::mutex mutex_;  // of what follows, and of the channels
  std::mutex sending_;
  std::deque<Place> places_;  // in the order of the text
  bool complete_ = false, broken_ = false, held_ = false;
};

}  // namespace cutegen::toolchain
