// SPDX-License-Identifier: Apache-2.0
// Grounded instructions: the spans of a program that a planner lets a coder change, and the check
// that the coder changed nothing else.
//
// Contract: a span is "SPAN FILE", "BEGIN: text of its first line", "END: text of its last line".
// Each text names exactly one line (blanks at both ends do not count); END may lie on the line of
// BEGIN. "SPAN plan.json" alone stands for the whole plan. Spans of one file must not overlap or
// nest. Outside the spans, sources must not change by a byte, and no file may be added or removed.
// The plan must not change unless it is a span. A Reask says the cause, the line and the remedy.
//
// Example: auto spans = parse_spans(advice, parent); auto ok = check_outside(*spans, parent, now);
#pragma once

#include "agent/reply.h"
#include "core/program.h"

namespace cutegen::agent {

struct Span {
  std::string file;
  size_t begin = 0, end = 0;  // bytes of whole lines, without the last line break
  int first_line = 1, last_line = 1;
  bool operator==(const Span&) const = default;
};
struct Spans {
  std::vector<Span> sources;  // sorted by file and place
  bool plan = false;
};

tl::expected<Spans, Reask> parse_spans(const std::string& advice, const KernelProgram& parent);
tl::expected<void, Reask> check_outside(const Spans& spans, const KernelProgram& parent,
                                        const KernelProgram& changed);

}  // namespace cutegen::agent
