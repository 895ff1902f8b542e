// SPDX-License-Identifier: Apache-2.0
// Reads the changes to a kernel program from a model's reply. For an unusable reply, returns a
// Reask: a message that asks the model for another reply.
//
// Contract: the first line of a fenced block names its format: "file NAME" (a whole file), "edit
// NAME" (SEARCH/REPLACE), "function NAME" (whole definitions, found by their name) and "plan"
// (JSON-pointer edits). A fence without a file name may also contain a whole file, if only one file
// of the program can be meant. The function parse_reply() accepts any text. If a reply is
// ambiguous, is cut off, or changes nothing, parse_reply() returns a Reask. The page docs/agents.md
// describes the format.
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
// one word, for statistics. `text` names the fault, the fault's place and the remedy.
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
  std::string summary;    // one line that describes the changes
  std::string rationale;  // a short reason for the change
  // The name ("d2") of the draft that is the answer, or to which the changes apply.
  std::string draft;
  std::vector<Change> changes;
};

// Returns "d2" if the reply has a line "DRAFT: d2", and an empty text if it has no such line.
std::string named_draft(const std::string& text);
// `base`: the program that the reply changes, or null. `cut`: the reply ended at the model's token
// limit, so the result is a Reask. A reply that names a draft may have no changes.
tl::expected<Reply, Reask> parse_reply(const std::string& text, const KernelProgram* base,
                                       bool cut = false);

}  // namespace cutegen::agent
