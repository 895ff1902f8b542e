// SPDX-License-Identifier: Apache-2.0
// The messages of the torch worker, and the files of a task. Private to torch.
//
// Contract: the worker's replies are untrusted, because the task file ran in it. The parser checks
// every name, shape and offset of a set against the task before the memory is mapped.
//
// Example:
//   CG_TRY(TaskFiles f, read_task_files("relu.py")); channel.call(ctx, describe_request(f, {}));
#pragma once

#include <filesystem>
#include <string>

#include "torch/worker.h"

namespace cutegen::torch {

inline constexpr const char* kTorchSchema = "cutegen.torch.v1";

struct TaskFiles {
  std::string file, source;     // the Python file: the path as given, its text
  std::string side_file, side;  // NAME.toml; empty text if there is none
};

// Refuses missing, empty and binary files. The Python file of a CUDA kernel is its reference.
Result<TaskFiles> read_task_files(const std::filesystem::path& file);
// True if the source imports a module or package that lies in `folder`.
bool imports_neighbour(const std::string& source, const std::filesystem::path& folder);
Json describe_request(const TaskFiles& files, const DescribeOptions& options);
Json shapes_request(const Task& task, const std::vector<ShapeConstants>& wanted);
// Returns one entry per wanted set. Each shape must have the task's tensors with their ranks.
Result<DescribedShapes> shapes_from_json(const Json& reply, const Task& task,
                                         const std::vector<ShapeConstants>& wanted);
Json set_request(const Task& task, const ShapeCase& shape, const std::string& family,
                 uint64_t seed);
Json plan_excerpt_request(const Task& task);
// Reads the reply that describes an excerpt. Each of its axes must be an axis of every output, with
// the size of the official shape.
Result<Excerpt> excerpt_from_json(const Json& reply, const Task& task);
Json excerpt_request(const Task& task, const Excerpt& excerpt, const std::string& family,
                     uint64_t seed);
Json fill_request(const Task& task, const ShapeCase& shape, const std::string& family,
                  uint64_t seed, const std::vector<GpuTensor>& slots);
Json run_baseline_request(const Task& task, BaselineKind kind, const std::vector<GpuTensor>& slots);
Json baselines_request(const Task& task, const ShapeCase& shape, const std::string& device,
                       const std::vector<BaselineWanted>& wanted);
Result<std::vector<BaselineOpened>> baselines_from_json(const Json& reply, size_t count);
// Reads exactly `count` positive times.
Result<std::vector<double>> samples_from_json(const Json& reply, int count);
// sha256 over everything that changes the task's meaning.
std::string task_id(const Task& task, const TaskFiles& files);
// Reads the tensors of a set from a reply. Each must be a tensor of the task, with its dtype and
// shape, inside the memory.
Result<TensorSet> set_from_json(const Json& reply, const Task& task, const ShapeCase& shape);
// Checks that the memory file is as large as the set says.
Result<void> check_memory(const TensorSet& set);

}  // namespace cutegen::torch
