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

constexpr std::array<Row, 15> kRows{
    {{.dtype = DType::f64, .name = "f64", .torch = "float64", .size = 8, .floating = true},
     {.dtype = DType::f32, .name = "f32", .torch = "float32", .size = 4, .floating = true},
     {.dtype = DType::f16, .name = "f16", .torch = "float16", .size = 2, .floating = true},
     {.dtype = DType::bf16, .name = "bf16", .torch = "bfloat16", .size = 2, .floating = true},
     {.dtype = DType::f8e4m3,
      .name = "f8e4m3",
      .torch = "float8_e4m3fn",
      .size = 1,
      .floating = true},
     {.dtype = DType::f8e5m2,
      .name = "f8e5m2",
      .torch = "float8_e5m2",
      .size = 1,
      .floating = true},
     {.dtype = DType::i64, .name = "i64", .torch = "int64", .size = 8, .floating = false},
     {.dtype = DType::i32, .name = "i32", .torch = "int32", .size = 4, .floating = false},
     {.dtype = DType::i16, .name = "i16", .torch = "int16", .size = 2, .floating = false},
     {.dtype = DType::i8, .name = "i8", .torch = "int8", .size = 1, .floating = false},
     {.dtype = DType::u64, .name = "u64", .torch = "uint64", .size = 8, .floating = false},
     {.dtype = DType::u32, .name = "u32", .torch = "uint32", .size = 4, .floating = false},
     {.dtype = DType::u16, .name = "u16", .torch = "uint16", .size = 2, .floating = false},
     {.dtype = DType::u8, .name = "u8", .torch = "uint8", .size = 1, .floating = false},
     {.dtype = DType::boolean, .name = "bool", .torch = "bool", .size = 1, .floating = false}}};

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
