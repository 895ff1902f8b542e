// SPDX-License-Identifier: Apache-2.0
// For tests: lent() returns a shared_ptr to an object that the test owns, because Services has
// shared_ptr members.
//
// Contract: the object must outlive all copies of the pointer.
//
// Example: services.runner = lent(runner);
#pragma once

#include <memory>

namespace cutegen::eval {

template <class T>
std::shared_ptr<T> lent(T& object) {
  return {std::shared_ptr<void>(), &object};
}

}  // namespace cutegen::eval
