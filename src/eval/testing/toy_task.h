// SPDX-License-Identifier: Apache-2.0
// For tests: a task with one input and one output, whose truth (the result in float64) is a C++
// function.
//
// Contract: the inputs of the family "made" are uniform in [0, 1), the inputs of "signed" are
// normal, and the inputs of "heavy" are long-tailed. After mutate(g), the task mutates x, and the
// final values of x are g(x). output_in() sets the output's dtype, which must have at most four
// bytes.
//
// Example: ToyTask t([](double x) { return x > 0 ? x : 0; });
#pragma once

#include <cmath>
#include <cstring>
#include <functional>
#include <random>

#include "eval/sets/truth_pool.h"
#include "tensor/half.h"

namespace cutegen::eval::testing_world {

struct ToyTask {
  Task task;
  std::function<double(double)> truth, final;
  int made = 0;  // number of computed input sets
  DType output = DType::f32;

  explicit ToyTask(std::function<double(double)> f) : truth(std::move(f)) {
    task.id = "toy";
    task.tensors = {
        {.name = "x", .role = TensorRole::input, .dtype = DType::f32, .shape = {64, 32}},
        {.name = "out", .role = TensorRole::output, .dtype = DType::f32, .shape = {64, 32}}};
    task.shapes = {{.name = "small", .kind = ShapeKind::small}};
    task.shapes[0].tensors = {{"x", {64, 32}}, {"out", {64, 32}}};
  }

  void mutate(std::function<double(double)> g) {
    final = std::move(g);
    task.tensors[0].mutated = true;
  }

  void output_in(DType dtype) { output = task.tensors[1].dtype = dtype; }

  // Computes f of each element of the input at the beginning of `m`. Stores the results from byte
  // `at` on, first in `dtype` as PyTorch's own (native) result of tensor `name`, then as its truth.
  static void add_result(torch::TensorSet& set, Mapping& m, const std::string& name, DType dtype,
                         size_t at, const std::function<double(double)>& f) {
    const size_t n = 64 * 32, size = size_of(dtype);
    set.slots.push_back({.name = name,
                         .part = "native",
                         .dtype = dtype,
                         .shape = {64, 32},
                         .offset = at,
                         .bytes = n * size});
    set.slots.push_back({.name = name,
                         .part = "truth",
                         .dtype = DType::f64,
                         .shape = {64, 32},
                         .offset = at + n * 4,
                         .bytes = n * 8});
    for (size_t i = 0; i < n; ++i) {
      double t = f(load_double(DType::f32, m.data() + i * 4));
      store_double(dtype, t, m.data() + at + i * size);
      store_double(DType::f64, t, m.data() + at + n * 4 + i * 8);
    }
  }

  SetSource source() {
    return [this](const Context&, const ShapeCase& shape, const std::string& family,
                  uint64_t seed) -> Result<torch::TensorSet> {
      ++made;
      torch::TensorSet set;
      set.shape = shape.name;
      set.family = family;
      size_t n = 64 * 32;
      set.bytes = n * 4 + 2 * (n * 4 + n * 8);
      CG_TRY(set.memory, make_memfd("toy", set.bytes));
      CG_TRY(Mapping m, Mapping::map(set.memory.get(), set.bytes, true));
      set.slots = {{.name = "x",
                    .part = "value",
                    .dtype = DType::f32,
                    .shape = {64, 32},
                    .offset = 0,
                    .bytes = n * 4}};
      std::mt19937_64 random(seed);
      std::uniform_real_distribution<double> uniform;
      std::normal_distribution<double> normal;
      for (size_t i = 0; i < n; ++i) {
        double x = family == "made" ? uniform(random) : normal(random);
        if (family == "heavy") x = std::exp(3 * x) * (random() % 2 ? 1 : -1);
        store_double(DType::f32, x, m.data() + i * 4);
      }
      add_result(set, m, "out", output, n * 4, truth);
      if (final) add_result(set, m, "x", DType::f32, n * 4 + n * 12, final);
      return set;
    };
  }
};

}  // namespace cutegen::eval::testing_world
