// SPDX-License-Identifier: Apache-2.0
// GpuSlot: a lock with which one process of cutegen uses a GPU alone during a measurement.
//
// Contract: a GpuSlot locks a file named after the GPU's UUID, which all users of the machine
// share. The destructor or the end of the process frees the lock. acquire() takes an exclusive
// lock, for measurements, and share() a shared lock, for other work. Both functions grant locks in
// order of arrival, so that shared locks cannot starve a measurement. Both functions stop waiting
// if the Context is cancelled or times out. A thread that has a lock may call share() again.
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
  // Opens the lock file for a child process that takes the lock on its own.
  static Result<UniqueFd> file(const std::string& uuid);
  // Takes an exclusive lock. If another process has the lock, calls `waiting` once.
  static Result<GpuSlot> acquire(const Context& ctx, const std::string& uuid,
                                 const std::function<void()>& waiting = {});
  static Result<GpuSlot> share(const Context& ctx, const std::string& uuid);

 private:
  static Result<GpuSlot> take(const Context& ctx, const std::string& uuid, int how,
                              const std::function<void()>& waiting);
  // Counts the locks of one thread.
  class Holder;
  GpuSlot(UniqueFd file, std::shared_ptr<Holder> holder)
      : file_(std::move(file)), holder_(std::move(holder)) {}
  UniqueFd file_;
  std::shared_ptr<Holder> holder_;
};

}  // namespace cutegen::eval
