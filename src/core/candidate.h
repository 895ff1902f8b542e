// SPDX-License-Identifier: Apache-2.0
// Candidate: a kernel program proposed for a task, with its parent and the edit that produced it.
// Edit: what changed, in words and as a recipe's parameters. Event: one line of the journal.
//
// Contract: candidate ids are "c1", "c2", ... in the order of a run. `params` holds a recipe's
// parameters if a recipe produced the program; else it is empty.
//
// Example: Event{7, EventType::evaluated, 1, {{"candidate", "c2"}, {"verdict", to_json(v)}}}
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/event_type.h"
#include "core/program.h"

namespace cutegen {

// An algebraic rewrite (recipes/algebra/rewrites.h) that changed the graph of a recipe's program,
// or would change it if the user chose it.
struct Rewrite {
  std::string rule;    // "sum-of-product"
  std::string effect;  // one sentence
  bool applied = true;
};

struct Edit {
  std::string summary;  // "vector width 1 -> 4"
  std::string rationale;
  std::string origin;  // "recipe:elementwise", "user", a model's name
  Json params = Json::object();
  std::vector<Rewrite> rewrites = {};  // the rewrites of a recipe's program
};

struct Candidate {
  std::string id;
  std::optional<std::string> parent;
  Edit edit;
  KernelProgram program;
};

struct Event {
  int64_t seq = 0;
  EventType type = EventType::opened;
  int version = 1;
  Json data;
};

void fields(Fields& v, Rewrite& rewrite);
void fields(Fields& v, Edit& edit);
void fields(Fields& v, Candidate& candidate);
void fields(Fields& v, Event& event);

}  // namespace cutegen
