// SPDX-License-Identifier: Apache-2.0
// A fixture for the exporter's tests: a program that uses every field of a plan, with invented
// results of compilation.
//
// Contract: for tests only.
//
// Example: ExportSource s = test_source().value();
#pragma once

#include "core/testing/test_task.h"
#include "exporter/exporter.h"

namespace cutegen::exporter {

inline const char* full_plan_text() {
  return R"json({
  "cutegen": 1,
  "arch": ["sm_90a"],
  "sources": ["norm.cu"],
  "bind": {"w": "fc.weight"},
  "symbols": {"M": "dim(x,0)", "K": "dim(x,-1)"},
  "requires": ["K % 4 == 0"],
  "scratch": [{"name": "sums", "dtype": "f32", "shape": ["M"], "init": "zero"},
              {"name": "squares", "dtype": "f32", "shape": ["K"], "life": "weights"},
              {"name": "counts", "dtype": "i64", "shape": [3]}],
  "tensor_maps": {"tile": {"tensor": "x", "spec": "cg_tile", "dims": ["K", "M"], "strides": [1, "K"]}},
  "prepare": [{"id": "square", "kernel": "square", "grid": [1], "block": [128], "cooperative": true,
               "args": [{"tensor": "w"}, {"tensor": "squares"}, {"i64": "K"}]}],
  "steps": [
    {"fill": "counts", "value": 5},
    {"id": "norm", "kernel": "norm", "grid": ["2*M"], "block": [256, 1, 1], "cluster": [2],
     "shared_bytes": "k(cg_shared)", "pdl": true,
     "args": [{"map": "tile"}, {"tensor": "squares"}, {"tensor": "sums"}, {"tensor": "out"},
              {"u32": "K"}, {"f32": "attr(eps)"}, {"f64": "arg(alpha)"}]},
    {"fill": "out", "value": 1.5, "when": "M == 0"}
  ]
})json";
}

inline std::vector<ModuleFacts> full_facts() {
  EntryFacts square{
      .name = "square",
      .params = {{.size = 8, .align = 8}, {.size = 8, .align = 8}, {.size = 8, .align = 8}}};
  EntryFacts norm{.name = "norm",
                  .params = {{.size = 128, .align = 64},
                             {.size = 8, .align = 8},
                             {.size = 8, .align = 8},
                             {.size = 8, .align = 8},
                             {.size = 4, .align = 4},
                             {.size = 4, .align = 4},
                             {.size = 8, .align = 8}}};
  return {{.entries = {square, norm},
           .constants = {{"cg_shared", 65536}},
           .tma_specs = {{"cg_tile", {1, 2, 64, 32, 0, 0, 0, 0, 1, 0, 0, 0, 32, 3, 4}}}}};
}

inline Result<ExportSource> test_source() {
  ExportSource s;
  s.task = test_task();
  s.task.source = "\"\"\"A \"quoted\" \\ module.\"\"\"\nclass Model: pass\n";
  s.target = {.facts = test_device(), .gpu = "NVIDIA H200"};
  s.arch = "sm_90a";
  s.compiler = "NVRTC 13.0";
  s.origin = "run r1, candidate c2";
  CG_TRY(s.program.plan, parse_plan(full_plan_text()));
  s.program.sources = {{"norm.cu", "// norm\n"}};
  s.modules = {{.name = "norm.sm_90a",
                .ptx = ".version 8.0\n",
                .cubin = std::string("\x7f") + "ELF",
                .build_id = "b1"}};
  const ShapeCase& official = s.task.official();
  CG_TRY(ResolvedPlan plan,
         resolve_plan(s.program, s.task, official, s.target.facts, full_facts()));
  s.shapes.push_back({.name = official.name, .shape = official, .plan = std::move(plan)});
  return s;
}

}  // namespace cutegen::exporter
