// SPDX-License-Identifier: Apache-2.0
// GpuSlot: a lock that keeps other processes of cutegen off a GPU while one measures.
//
// Contract: locks a file named after the GPU's UUID, for all users of the machine. The end of the
// object or of its process frees the lock. acquire() takes the GPU alone, for measuring; share()
// takes it together with other shared holders. Both wait in order of arrival until the Context
// ends, so shared work cannot starve a measurement. A thread that holds the GPU may share it again.
// Programs other than cutegen ignore the lock.
//
// Example: CG_TRY(GpuSlot slot, GpuSlot::acquire(ctx, identity.uuid)); measure();
#pragma once

#include <memory>

#include "base/context.h"
#include "base/file.h"

namespace cutegen::eval {

class GpuSlot {
 public:
  // Opens the lock's file for a child process that takes the lock itself.
  static Result<UniqueFd> file(const std::string& uuid);
  // Calls `waiting` once if it has to wait for the GPU.
  static Result<GpuSlot> acquire(const Context& ctx, const std::string& uuid,
                                 const std::function<void()>& waiting = {});
  static Result<GpuSlot> share(const Context& ctx, const std::string& uuid);

 private:
  static Result<GpuSlot> take(const Context& ctx, const std::string& uuid, int how,
                              const std::function<void()>& waiting);
  // Counts a thread's slots.
  class Holder;
  GpuSlot(UniqueFd file, std::shared_ptr<Holder> holder)
      : file_(std::move(file)), holder_(std::move(holder)) {}
  UniqueFd file_;
  std::shared_ptr<Holder> holder_;
};

}  // namespace cutegen::eval
