// SPDX-License-Identifier: Apache-2.0
// Session: the evaluator's CUDA context on a GPU. The evaluator never loads a candidate into this
// context.
//
// Contract: a Session owns memory that other processes may import (memory()), and runs cutegen's
// own kernels. A thread must call enter() before it uses the Session. Only one thread at a time may
// use a Session. The function wait() returns when all queued work is done. Every failure is a world
// error, because no candidate can cause a failure of a Session.
//
// Example: CG_TRY(auto s, cuda::Session::open("cuda:0")); CG_CHECK(s->enter());
//   CG_CHECK(s->load(ptx)); CG_CHECK(s->launch("fill", 64, 256, {&at, &words, &pattern}));
#pragma once

#include <memory>
#include <span>

#include "base/context.h"
#include "device/cuda/gpu_info.h"
#include "device/cuda/memory.h"
#include "device/cuda/modules.h"

namespace cutegen::device::cuda {

class Session {
 public:
  static Result<std::unique_ptr<Session>> open(const DeviceName& device);
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  Result<void> enter() const;
  BlockMemory& memory() { return memory_; }
  const Found& gpu() const { return gpu_; }
  Result<int64_t> free_bytes() const;
  Result<void> load(const std::string& ptx);
  Result<void> launch(const std::string& kernel, int64_t blocks, int64_t threads,
                      std::vector<void*> arguments);
  Result<void> set(Address at, unsigned char value, size_t bytes);
  Result<void> copy(Address to, Address from, size_t bytes);
  Result<void> write(Address at, std::span<const std::byte> bytes);
  Result<void> read(std::span<std::byte> out, Address at) const;
  Result<void> wait(const Context& ctx) const;

 private:
  Session(const Driver& driver, Found gpu, Handle context);

  const Driver& driver_;
  Found gpu_;
  Handle context_ = nullptr, stream_ = nullptr;
  BlockMemory memory_;
  Modules modules_;
};

}  // namespace cutegen::device::cuda
