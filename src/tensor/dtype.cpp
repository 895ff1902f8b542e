// SPDX-License-Identifier: Apache-2.0
#include "tensor/dtype.h"

#include <array>

namespace cutegen {
namespace {

struct Row {
  DType dtype;
  const char* name;
  const char* torch;
  size_t size;
  bool floating;
};

constexpr std::array<Row, 15> kRows{{{DType::f64, "f64", "float64", 8, true},
                                     {DType::f32, "f32", "float32", 4, true},
                                     {DType::f16, "f16", "float16", 2, true},
                                     {DType::bf16, "bf16", "bfloat16", 2, true},
                                     {DType::f8e4m3, "f8e4m3", "float8_e4m3fn", 1, true},
                                     {DType::f8e5m2, "f8e5m2", "float8_e5m2", 1, true},
                                     {DType::i64, "i64", "int64", 8, false},
                                     {DType::i32, "i32", "int32", 4, false},
                                     {DType::i16, "i16", "int16", 2, false},
                                     {DType::i8, "i8", "int8", 1, false},
                                     {DType::u64, "u64", "uint64", 8, false},
                                     {DType::u32, "u32", "uint32", 4, false},
                                     {DType::u16, "u16", "uint16", 2, false},
                                     {DType::u8, "u8", "uint8", 1, false},
                                     {DType::boolean, "bool", "bool", 1, false}}};

const Row& row(DType dtype) {
  for (const Row& r : kRows)
    if (r.dtype == dtype) return r;
  CG_ASSERT(false);
}

}  // namespace

size_t size_of(DType dtype) {
  return row(dtype).size;
}
const char* to_string(DType dtype) {
  return row(dtype).name;
}
const char* torch_name(DType dtype) {
  return row(dtype).torch;
}
bool is_floating(DType dtype) {
  return row(dtype).floating;
}

Result<DType> dtype_from_name(std::string_view name) {
  for (const Row& r : kRows)
    if (name == r.name || name == r.torch) return r.dtype;
  return user_error("unknown dtype '" + std::string(name) + "'", {},
                    "one of f64 f32 f16 bf16 i64 i32 i16 i8 u8 bool");
}

Result<int64_t> element_count(const Shape& shape) {
  int64_t n = 1;
  for (int64_t d : shape) {
    if (d < 0) return user_error("negative size in shape " + to_string(shape));
    if (__builtin_mul_overflow(n, d, &n))
      return user_error("shape " + to_string(shape) + " overflows");
  }
  return n;
}

std::string to_string(const Shape& shape) {
  std::string out = "[";
  for (size_t i = 0; i < shape.size(); ++i) out += (i ? ", " : "") + std::to_string(shape[i]);
  return out + "]";
}

}  // namespace cutegen
