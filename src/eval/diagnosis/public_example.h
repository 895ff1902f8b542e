// SPDX-License-Identifier: Apache-2.0
// Shows the values of the first wrong elements of an output, and the inputs behind these elements.
//
// Contract: call wrong_values() only for an input set that the evaluator drew from the published
// seed kPublicSeed, never for a secret set. The text has at most kMostExamples elements and at most
// kMostExampleText bytes. For each element, the text shows a few values of at most three inputs. If
// no element is wrong, but the output as a whole is not accurate enough, the text shows the
// elements with the largest errors. elements_behind() (eval/diagnosis/dependence.h) finds the
// inputs.
//
// Example: "out[0, 96]: expected 2.5, got 0; x[0, 96] = 1.25, w[0:512, 96] = 0.5, -0.25, 1, 2, ..."
#pragma once

#include <span>

#include "core/task.h"
#include "core/verdict.h"
#include "tensor/compare.h"

namespace cutegen::eval {

inline constexpr uint64_t kPublicSeed = 20;
inline constexpr size_t kMostExamples = 3;
inline constexpr size_t kMostExampleText = 700;

struct InputValues {
  std::string name;
  DType dtype = DType::f32;
  Shape shape;
  std::span<const std::byte> bytes;
};

std::string wrong_values(const Task& task, const ShapeCase& shape, const Expected& expected,
                         const Judgement& judgement, std::span<const std::byte> output,
                         const std::vector<InputValues>& inputs);

// Describes a run on public inputs in a few lines. If an output is wrong, the text has the first
// mismatch and `values`. If the run had no outputs, the text has the error in `headline`.
std::string public_run_text(const std::vector<Mismatch>& mismatches, const std::string& values,
                            const std::string& headline);
// Inserts `text` after the description of the first mismatch.
std::string after_first_mismatch(std::string detail, const std::vector<Mismatch>& mismatches,
                                 const std::string& text);

}  // namespace cutegen::eval
