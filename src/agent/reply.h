// SPDX-License-Identifier: Apache-2.0
// Reads a model's reply as changes to a kernel program, or returns a text that asks for a better
// one.
//
// Contract: parse_reply reads fenced blocks by their first line: "file NAME" (a whole file), "edit
// NAME" (SEARCH/REPLACE), "function NAME" (whole definitions, found by their name) and "plan"
// (JSON-pointer edits). It also accepts whole files in fences that name no file, if it is clear
// which file each fence holds. Any text is valid input. If a reply is ambiguous, cut off, or
// changes nothing, the result is a Reask; the reader never guesses. docs/agents.md describes the
// format.
//
// Example: auto r = parse_reply(text, &incumbent); if (!r) ask_again(r.error().text);
#pragma once

#include <string>
#include <tl/expected.hpp>
#include <variant>
#include <vector>

#include "core/program.h"

namespace cutegen::agent {

// Tells the model why its reply is unusable. `reason` is one word, for statistics; `text` says what
// is wrong, where, and what to send instead.
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
  int number = 1;  // the number of this block within the reply, for messages
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
  std::string summary;    // one line: what changed
  std::string rationale;  // why, in short
  // "d2": the draft that is the answer, or to which the changes apply.
  std::string draft;
  std::vector<Change> changes;
};

// The draft that a reply names in a line "DRAFT: d2"; empty if none.
std::string named_draft(const std::string& text);
// `base`: the program that the reply changes, or null. `cut`: the reply reached the model's token
// limit, which gives a Reask. A reply that names a draft needs no change.
tl::expected<Reply, Reask> parse_reply(const std::string& text, const KernelProgram* base,
                                       bool cut = false);

}  // namespace cutegen::agent
