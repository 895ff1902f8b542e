// SPDX-License-Identifier: Apache-2.0
// Grounded instructions: a planner names the spans of a program's text that the coder may change.
// This file reads the spans and checks that the coder changed nothing else.
//
// Contract: the planner writes a span as three lines: "SPAN FILE", "BEGIN: text of its first line"
// and "END: text of its last line". The file must have exactly one line with the text after BEGIN,
// and exactly one line with the text after END (leading and trailing blanks may differ). BEGIN and
// END may name the same line. A single line "SPAN plan.json" without BEGIN and END names the whole
// plan. Spans of one file must not overlap or nest. Outside the spans, no byte of the sources may
// change, and no file may be added or removed. The plan must not change unless the planner named
// plan.json. After a fault, the functions return a Reask (a message to the model) that names the
// fault, the line and the remedy.
//
// Example: auto spans = parse_spans(advice, parent); auto ok = check_outside(*spans, parent, now);
#pragma once

#include "agent/reply.h"
#include "core/program.h"

namespace cutegen::agent {

struct Span {
  std::string file;
  size_t begin = 0, end = 0;  // byte range of whole lines, without the last line break
  int first_line = 1, last_line = 1;
  bool operator==(const Span&) const = default;
};
struct Spans {
  std::vector<Span> sources;  // sorted by file and position
  bool plan = false;
};

tl::expected<Spans, Reask> parse_spans(const std::string& advice, const KernelProgram& parent);
tl::expected<void, Reask> check_outside(const Spans& spans, const KernelProgram& parent,
                                        const KernelProgram& changed);

}  // namespace cutegen::agent
