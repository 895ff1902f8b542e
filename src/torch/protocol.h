// SPDX-License-Identifier: Apache-2.0
// Writes requests to the torch worker, reads its replies, and reads the files of a task. Only the
// module src/torch includes this header.
//
// Contract: the worker's replies are untrusted, because the worker ran the user's task file. Before
// cutegen maps the memory of a reply's tensors, the parser checks their names, shapes and offsets
// against the task.
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
  std::string file, source;     // path (from the user) and text of the Python file
  std::string side_file, side;  // path and text of NAME.toml; empty text: no such file
};

// Refuses missing, empty and binary files. If `file` is a CUDA kernel, the Python file is the file
// that the kernel's NAME.toml names as `reference`.
Result<TaskFiles> read_task_files(const std::filesystem::path& file);
// Returns whether the Python source imports a module or package in `folder`.
bool imports_neighbour(const std::string& source, const std::filesystem::path& folder);
Json describe_request(const TaskFiles& files, const DescribeOptions& options);
Json shapes_request(const Task& task, const std::vector<ShapeConstants>& wanted);
// Returns one shape per entry of `wanted`. In the reply, each shape must have all tensors of the
// task, with the ranks that they have in the task.
Result<DescribedShapes> shapes_from_json(const Json& reply, const Task& task,
                                         const std::vector<ShapeConstants>& wanted);
Json set_request(const Task& task, const ShapeCase& shape, const std::string& family,
                 uint64_t seed);
Json plan_excerpt_request(const Task& task, const ShapeCase& shape);
// Reads the description of an excerpt (struct Excerpt). In the reply, each axis of the excerpt must
// occur in every output, with its size in the task file.
Result<Excerpt> excerpt_from_json(const Json& reply, const Task& task, const ShapeCase& shape);
Json excerpt_request(const Task& task, const Excerpt& excerpt, const std::string& family,
                     uint64_t seed);
Json fill_request(const Task& task, const ShapeCase& shape, const std::string& family,
                  uint64_t seed, const std::vector<GpuTensor>& slots);
Json run_baseline_request(const Task& task, BaselineKind kind, const std::vector<GpuTensor>& slots);
Json baselines_request(const Task& task, const ShapeCase& shape, const std::string& device,
                       const std::vector<BaselineWanted>& wanted);
Result<std::vector<BaselineOpened>> baselines_from_json(const Json& reply, size_t count);
// Returns an error unless the reply has exactly `count` positive times.
Result<std::vector<double>> samples_from_json(const Json& reply, int count);
// Returns a sha256 hash of all data that affects the task's results.
std::string task_id(const Task& task, const TaskFiles& files);
// Reads the tensors of an input set. Each tensor in the reply must be a tensor of the task with the
// right dtype and shape, and must lie inside the reply's memory.
Result<TensorSet> set_from_json(const Json& reply, const Task& task, const ShapeCase& shape);
// Checks that the memory file has the size that the reply states.
Result<void> check_memory(const TensorSet& set);

}  // namespace cutegen::torch
