// SPDX-License-Identifier: Apache-2.0
// Reads the changes to a kernel program from a model's reply. If the reply is unusable, returns a
// Reask, a message that asks the model for another reply.
//
// Contract: the first line of a fenced block names its format: "file NAME" (a whole file), "edit
// NAME" (SEARCH/REPLACE), "function NAME" (whole definitions, found by their name) and "plan"
// (JSON-pointer edits). It also accepts a whole file in a fence that names no file, if it is clear
// which file the fence contains. Any text is valid input. If a reply is ambiguous, cut off, or
// changes nothing, parse_reply() returns a Reask. docs/agents.md describes the format.
//
// Example: auto r = parse_reply(text, &incumbent); if (!r) ask_again(r.error().text);
#pragma once

#include <string>
#include <tl/expected.hpp>
#include <variant>
#include <vector>

#include "core/program.h"

namespace cutegen::agent {

// A message that tells the model why its reply is unusable, and asks for another one. `reason` is
// one word, for statistics. `text` names the fault, its place and its remedy.
struct Reask {
  std::string reason;
  std::string text;
};
inline tl::unexpected<Reask> reask(const std::string& reason, const std::string& text) {
  return tl::unexpected(Reask{.reason = reason, .text = text});
}

struct WholeFile {
  std::string file, text;
  bool operator==(const WholeFile&) const = default;
};
struct SearchReplace {
  std::string file, search, replace;
  int number = 1;  // number of this block in the reply, for messages
  bool operator==(const SearchReplace& o) const {
    return file == o.file && search == o.search && replace == o.replace;
  }
};
struct WholeDefinitions {
  std::string file, text;
  bool operator==(const WholeDefinitions&) const = default;
};
enum class PlanOp { set, replace, add, remove };
Names<PlanOp> enum_names(PlanOp);
struct PlanEdit {
  PlanOp op = PlanOp::set;
  std::string path;
  Json value;
  bool operator==(const PlanEdit&) const = default;
};
using Change = std::variant<WholeFile, SearchReplace, WholeDefinitions, PlanEdit>;

struct Reply {
  std::string summary;    // one line about the changes
  std::string rationale;  // a short reason for the change
  // The name of the draft that is the answer, or to which the changes apply ("d2").
  std::string draft;
  std::vector<Change> changes;
};

// The name of the draft ("d2") if the reply has a line "DRAFT: d2"; otherwise empty.
std::string named_draft(const std::string& text);
// `base`: the program that the reply changes, or null. `cut`: whether the reply ended at the
// model's token limit; the result is then a Reask. A reply that names a draft may have no changes.
tl::expected<Reply, Reask> parse_reply(const std::string& text, const KernelProgram* base,
                                       bool cut = false);

}  // namespace cutegen::agent
