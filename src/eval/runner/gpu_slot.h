// SPDX-License-Identifier: Apache-2.0
// GpuSlot: while one process of cutegen measures on a GPU, no other one uses it.
//
// Contract: a lock on a file named after the GPU's UUID, for all users of the machine; freed when
// the object or its process ends. acquire() is for measuring, alone; share() for other work, beside
// other work. Both wait until the Context ends, and in the order in which they came, so that much
// work does not keep a measurement waiting. Programs that are not cutegen's do not ask.
//
// Example: CG_TRY(GpuSlot slot, GpuSlot::acquire(ctx, identity.uuid)); measure();
#pragma once

#include "base/context.h"
#include "base/file.h"

namespace cutegen::eval {

class GpuSlot {
 public:
  // The lock's file, opened anew: for a child that takes the lock itself.
  static Result<UniqueFd> file(const std::string& uuid);
  // Takes it at once where it can be had; `waiting` is called once if not.
  static Result<GpuSlot> acquire(const Context& ctx, const std::string& uuid,
                                 const std::function<void()>& waiting = {});
  static Result<GpuSlot> share(const Context& ctx, const std::string& uuid);

 private:
  static Result<GpuSlot> take(const Context& ctx, const std::string& uuid, int how,
                              const std::function<void()>& waiting);
  explicit GpuSlot(UniqueFd file) : file_(std::move(file)) {}
  UniqueFd file_;
};

}  // namespace cutegen::eval
