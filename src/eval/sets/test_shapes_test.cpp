// SPDX-License-Identifier: Apache-2.0
#include "eval/sets/test_shapes.h"

#include <gtest/gtest.h>

namespace cutegen::eval {
namespace {

TEST(TestShapes, AnOfficialShapeWithSmallTensorsAndMuchWorkIsNone) {
  ShapeCase shape{.name = "official", .kind = ShapeKind::official};
  shape.least_bytes = Bytes{1 << 20};
  shape.flops = Flops{1e8};
  EXPECT_TRUE(is_test_shape(shape));
  shape.flops = Flops{4.4e9};  // a convolution whose result is pooled twice
  EXPECT_FALSE(is_test_shape(shape));
  shape.flops = Flops{1e8};
  shape.least_bytes = Bytes{3 << 20};
  EXPECT_FALSE(is_test_shape(shape));
  shape.kind = ShapeKind::small;
  EXPECT_TRUE(is_test_shape(shape));
}

}  // namespace
}  // namespace cutegen::eval
