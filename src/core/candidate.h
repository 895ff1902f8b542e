// SPDX-License-Identifier: Apache-2.0
// Candidate: a kernel program proposed for a task, with the id of its parent program and an Edit.
// Edit: the change from the parent program, in words and as parameters of a recipe (a kernel
// template). Event: one entry of a run's journal.
//
// Contract: a run numbers its candidates "c1", "c2", and so on. Edit::params is empty if no recipe
// produced the program.
//
// Example: Event{7, EventType::evaluated, 1, {{"candidate", "c2"}, {"verdict", to_json(v)}}}
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/event_type.h"
#include "core/program.h"

namespace cutegen {

// An algebraic rewrite of the task's graph (recipes/algebra/rewrites.h). If `applied` is true, a
// recipe applied the rewrite; otherwise, the user may enable it.
struct Rewrite {
  std::string rule;    // "sum-of-product"
  std::string effect;  // the rewrite's effect, in one sentence
  bool applied = true;
};

struct Edit {
  std::string summary;  // for example "vector width 1 -> 4"
  std::string rationale;
  std::string origin;  // who proposed the edit: "recipe:elementwise", "user", or a model
  Json params = Json::object();
  // rewrites that are applied, and rewrites that the user may enable
  std::vector<Rewrite> rewrites = {};
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
