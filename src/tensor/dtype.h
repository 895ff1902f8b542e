// SPDX-License-Identifier: Apache-2.0
// Element types of tensors, with PyTorch's semantics.
//
// Contract: to_string() gives the names of plan.json ("f32", "bf16", "i64", "bool"), and
// torch_name() gives PyTorch's names ("float32").
//
// Example: dtype_from_name("bf16").value() == DType::bf16
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace cutegen {

enum class DType {
  f64,
  f32,
  f16,
  bf16,
  f8e4m3,
  f8e5m2,
  i64,
  i32,
  i16,
  i8,
  u64,
  u32,
  u16,
  u8,
  boolean
};

size_t size_of(DType dtype);          // bytes of one element
const char* to_string(DType dtype);   // "f32"
const char* torch_name(DType dtype);  // "float32"
bool is_floating(DType dtype);
Result<DType> dtype_from_name(std::string_view name);  // names of plan.json and of PyTorch

using Shape = std::vector<int64_t>;
// Returns the number of elements of a shape, or an error for a negative size or an overflow of
// int64.
Result<int64_t> element_count(const Shape& shape);
std::string to_string(const Shape& shape);  // "[4096, 128]"

}  // namespace cutegen
