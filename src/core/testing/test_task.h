// SPDX-License-Identifier: Apache-2.0
// For tests: a task that computes y = norm(x) * w at two shapes, a plan for this task, a device,
// and the facts about the compiled module.
//
// Example: Task t = test_task(); Plan p = test_plan();
#pragma once

#include <string>

#include "core/program.h"

namespace cutegen {

inline Task test_task() {
  Task t;
  t.id = "t";
  t.name = "norm";
  auto add = [&](const char* name, TensorRole role, Shape shape) {
    t.tensors.push_back({.name = name,
                         .role = role,
                         .dtype = DType::f32,
                         .shape = std::move(shape),
                         .mutated = false});
  };
  add("x", TensorRole::input, {4096, 1024});
  add("fc.weight", TensorRole::parameter, {1024});
  add("out", TensorRole::output, {4096, 1024});
  t.attributes = {{.name = "eps", .value = 1e-5},
                  {.name = "axis", .value = int64_t{-1}},
                  {.name = "mode", .value = std::string("mean")},
                  {.name = "affine", .value = true}};
  t.arguments = {{.name = "alpha", .value = 0.5}};
  ShapeCase official{.name = "official", .kind = ShapeKind::official};
  official.tensors = {{"x", {4096, 1024}}, {"fc.weight", {1024}}, {"out", {4096, 1024}}};
  ShapeCase odd{.name = "odd1", .kind = ShapeKind::odd};
  odd.tensors = {{"x", {7, 33}}, {"fc.weight", {33}}, {"out", {7, 33}}};
  t.shapes = {official, odd};
  return t;
}

inline const char* test_plan_text() {
  return R"json({
  "cutegen": 1,
  "sources": ["norm.cu"],
  "bind": {"w": "fc.weight"},
  "symbols": {"M": "dim(x,0)", "K": "dim(x,-1)"},
  "defines": {"THREADS": 256, "EPS": "attr(eps)"},
  "scratch": [{"name": "sums", "dtype": "f32", "shape": ["M"], "init": "zero"}],
  "steps": [
    {"id": "norm", "kernel": "norm", "when": "M > 0",
     "grid": ["M"], "block": [256, 1, 1], "shared_bytes": "k(smem)",
     "args": [{"tensor": "x"}, {"tensor": "w"}, {"tensor": "sums"}, {"tensor": "out"},
              {"i32": "K"}, {"f32": "attr(eps)"}]},
    {"fill": "out", "value": 0, "when": "M == 0"}
  ]
})json";
}

inline DeviceFacts test_device() {
  return {.name = "sim:h200",
          .arch = "sm_90a",
          .sms = 132,
          .max_shared_bytes = 232448,
          .shared_bytes_per_sm = 233472};
}

inline std::vector<ModuleFacts> test_facts() {
  EntryFacts norm{.name = "norm",
                  .params = {{.size = 8, .align = 8},
                             {.size = 8, .align = 8},
                             {.size = 8, .align = 8},
                             {.size = 8, .align = 8},
                             {.size = 4, .align = 4},
                             {.size = 4, .align = 4}},
                  .max_block = {512, 1, 1}};
  return {{.entries = {norm}, .constants = {{"smem", 4096}}}};
}

}  // namespace cutegen
