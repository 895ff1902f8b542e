// SPDX-License-Identifier: Apache-2.0
// For tests: a share of an object that the test owns, for Services.
//
// Contract: the object outlives every copy of the Services.
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
