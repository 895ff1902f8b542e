// SPDX-License-Identifier: Apache-2.0
// For tests: one torch worker for the whole test program, the tasks in tasks/, and temporary task
// files.
//
// Contract: the constructor of TaskFile writes the file to a new folder; the destructor removes the
// folder.
//
// Example: TaskFile f("x", text);
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string>

#include "tensor/half.h"
#include "torch/worker.h"

namespace cutegen::torch {

constexpr const char* kBody = R"(
import torch
from torch import nn

rows = 64

class Model(nn.Module):
    def forward(self, x):
        return torch.relu(x)

def get_inputs():
    return [torch.randn(rows, 32)]

def get_init_inputs():
    return []
)";

inline TorchWorkerOptions test_options() {
  ::setenv("CUTEGEN_SHARE", CUTEGEN_SOURCE_DIR, 1);
  return {};
}

inline TorchWorker& test_worker() {
  static std::unique_ptr<TorchWorker> worker = [] {
    auto w = TorchWorker::open(test_options());
    if (!w) {
      std::fprintf(stderr, "%s\n", w.error().text().c_str());
      std::abort();
    }
    return std::move(*w);
  }();
  return *worker;
}

inline std::filesystem::path shipped(const std::string& name) {
  return std::filesystem::path(CUTEGEN_SOURCE_DIR) / "tasks" / name;
}

inline const ShapeCase& shape_named(const Task& task, const std::string& name) {
  for (const ShapeCase& s : task.shapes)
    if (s.name == name) return s;
  ADD_FAILURE() << "no shape " << name;
  return task.shapes.front();
}

// Writes NAME.py, and NAME.toml if `side` is not empty, to a new folder.
class TaskFile {
 public:
  TaskFile(const std::string& name, const std::string& source, const std::string& side = {}) {
    std::string pattern = (std::filesystem::temp_directory_path() / "cutegen_task_XXXXXX").string();
    if (!::mkdtemp(pattern.data())) std::abort();
    folder_ = pattern;
    path_ = folder_ / (name + ".py");
    EXPECT_TRUE(write_file(path_, source));
    if (!side.empty()) {
      EXPECT_TRUE(write_file(folder_ / (name + ".toml"), side));
    }
  }
  ~TaskFile() {
    std::error_code error;
    std::filesystem::remove_all(folder_, error);
  }
  TaskFile(const TaskFile&) = delete;
  TaskFile& operator=(const TaskFile&) = delete;
  const std::filesystem::path& path() const { return path_; }
  const std::filesystem::path& folder() const { return folder_; }

 private:
  std::filesystem::path folder_, path_;
};

// An input set whose tensors a test can read as doubles.
struct Values {
  TensorSet set;
  Mapping map;
  std::vector<double> of(const std::string& name, const std::string& part) const {
    for (const TensorSlot& s : set.slots)
      if (s.name == name && s.part == part) {
        std::vector<double> out(s.bytes / size_of(s.dtype));
        to_double(s.dtype, {map.data() + s.offset, s.bytes}, out);
        return out;
      }
    ADD_FAILURE() << "no " << name << " " << part;
    return {};
  }
};

inline Values read_values(TensorSet set) {
  Values out{.set = std::move(set)};
  auto map = Mapping::map(out.set.memory.get(), out.set.bytes, false);
  EXPECT_TRUE(map);
  if (map) out.map = std::move(*map);
  return out;
}

}  // namespace cutegen::torch
