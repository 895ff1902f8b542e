// SPDX-License-Identifier: Apache-2.0
// Trace: records when each evaluator and each run works, and writes a timeline in Chrome's trace
// format (chrome://tracing, Perfetto).
//
// Contract: a span is an interval with a name on a track (a line of the timeline). Spans of the
// same track may nest, but not partly overlap. The timeline shows the tracks in the order of their
// first spans. Several threads may add spans at once. Trace sanitises names. Only write() writes a
// file.
//
// Example: Trace trace; { Trace::Span span(&trace, "evaluator 1", "compile"); work(); }
//          CG_CHECK(trace.write("trace.json"));
#pragma once

#include <filesystem>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "base/context.h"
#include "base/json.h"

namespace cutegen::engine {

class Trace {
 public:
  void add(const std::string& track, const std::string& name, Clock::time_point from,
           Clock::time_point to, const Json& arguments = Json::object());
  Json json() const;
  Result<void> write(const std::filesystem::path& file) const;

  // Records a span from construction to destruction of this object, if `trace` is not null.
  class Span {
   public:
    Span(Trace* trace, std::string track, std::string name)
        : trace_(trace), track_(std::move(track)), name_(std::move(name)) {}
    ~Span() { end(); }
    Span(const Span&) = delete;
    Span& operator=(const Span&) = delete;
    // Ends this span and begins another span on the same track.
    void next(const std::string& name);
    void end();

   private:
    Trace* trace_;
    std::string track_, name_;
    Clock::time_point from_ = Clock::now();
  };

 private:
  struct Entry {
    size_t track = 0;
    std::string name;
    Clock::time_point from, to;
    Json arguments;
  };
  Clock::time_point began_ = Clock::now();
  mutable std::mutex lock_;
  std::vector<std::string> tracks_;
  std::map<std::string, size_t> numbers_;
  std::vector<Entry> entries_;
};

}  // namespace cutegen::engine
