// SPDX-License-Identifier: Apache-2.0
// A model's reply as changes to a kernel program, or what to say so that it answers again.
//
// Contract: parse_reply reads fenced blocks by their first line: "file NAME" (the whole file),
// "edit NAME" (SEARCH/REPLACE), "function NAME" (whole definitions, found by their name) and "plan"
// (JSON-pointer edits); whole files in plainly marked or unmarked fences are understood too where
// there is only one meaning. Any text is accepted as input; what has two meanings, is cut, or holds
// nothing to apply is a Reask, never a guess. The form is told to models by docs/agents.md.
//
// Example: auto r = parse_reply(text, &incumbent); if (!r) ask_again(r.error().text);
#pragma once

#include <string>
#include <tl/expected.hpp>
#include <variant>
#include <vector>

#include "core/program.h"

namespace cutegen {

// Why a reply cannot be used, for its author: `reason` is one word for counting, `text` says what
// and where, and what to send instead.
struct Reask {
  std::string reason;
  std::string text;
};

struct WholeFile {
  std::string file, text;
  bool operator==(const WholeFile&) const = default;
};
struct SearchReplace {
  std::string file, search, replace;
  int number = 1;  // of this block within the reply, for messages
  bool operator==(const SearchReplace& o) const {
    return file == o.file && search == o.search && replace == o.replace;
  }
};
struct WholeDefinitions {
  std::string file, text;
  bool operator==(const WholeDefinitions&) const = default;
};
struct PlanEdit {
  std::string op;  // "replace", "add", "remove", "set"
  std::string path;
  Json value;
  bool operator==(const PlanEdit&) const = default;
};
using Change = std::variant<WholeFile, SearchReplace, WholeDefinitions, PlanEdit>;

struct Reply {
  std::string summary;    // one line: what changed
  std::string rationale;  // why, in short
  std::string draft;      // "d2": the draft that is meant, or that the changes start from
  std::vector<Change> changes;
};

// The draft that a reply names in a line "DRAFT: d2"; empty if none.
[[nodiscard]] std::string named_draft(const std::string& text);
// `base`: the program that the reply changes; null when there is none yet. A reply that was `cut`
// (the model ran out of room) is asked for again. A reply that names a draft may change nothing.
[[nodiscard]] tl::expected<Reply, Reask> parse_reply(const std::string& text,
                                                     const KernelProgram* base, bool cut = false);

}  // namespace cutegen
