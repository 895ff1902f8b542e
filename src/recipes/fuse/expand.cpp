// SPDX-License-Identifier: Apache-2.0
// Expands composite reductions into sum, product, max and min.
#include <cmath>

#include "recipes/fuse/operators.h"

namespace cutegen::recipes {
namespace {

int norm(NestWriter& nest, double order, int x) {
  if (order == 0)
    return nest.reduce("norm", ReduceKind::sum, nest.make("counted", "float({0} != 0.0f)", {x}));
  if (order == 2)
    return nest.make("norm", "sqrtf({0})",
                     {nest.reduce("squares", ReduceKind::sum,
                                  nest.make("square", "cutegen::square({0})", {x}))});
  int size = nest.make("size", "fabsf({0})", {x});
  if (order == 1) return nest.reduce("norm", ReduceKind::sum, size);
  if (std::isinf(order))
    return nest.reduce("norm", order > 0 ? ReduceKind::max : ReduceKind::min, size);
  if (!(order > 0)) return -1;
  int power = nest.make("power", "powf({0}, " + literal(order) + ")", {size});
  return nest.make("norm", "powf({0}, " + literal(1 / order) + ")",
                   {nest.reduce("powers", ReduceKind::sum, power)});
}

}  // namespace

int expand(NestWriter& nest, const Reduction& r, int x, int at) {
  const std::string& op = r.base;
  auto sum = [&](const char* name, int v) { return nest.reduce(name, ReduceKind::sum, v); };
  auto mean = [&](int v) {
    return nest.make("mean", "{0} / {1}", {sum("total", v), nest.count()});
  };
  if (op == "sum") return sum("sum", x);
  if (op == "pick") return sum("picked", x);
  if (op == "argmax") return nest.reduce("place", ReduceKind::argmax, x);
  if (op == "argmin") return nest.reduce("place", ReduceKind::argmin, x);
  if (op == "mean") return mean(x);
  if (op == "amax" || op == "max") return nest.reduce("highest", ReduceKind::max, x);
  if (op == "amin" || op == "min") return nest.reduce("lowest", ReduceKind::min, x);
  if (op == "prod") return nest.reduce("product", ReduceKind::product, x);
  if (op == "_softmax" || op == "softmax" || op == "_safe_softmax" || op == "_log_softmax" ||
      op == "log_softmax") {
    int highest = nest.reduce("highest", ReduceKind::max, x);
    int shifted = nest.make("shifted", "{0} - {1}", {x, highest});
    int weight = nest.make("weight", "expf({0})", {shifted});
    int total = sum("total", weight);
    if (at != x) {
      shifted = nest.make("shifted", "{0} - {1}", {at, highest});
      weight = nest.make("weight", "expf({0})", {shifted});
    }
    if (op == "_log_softmax" || op == "log_softmax")
      return nest.make("log_softmax", "{0} - {1}",
                       {shifted, nest.make("log_total", "logf({0})", {total})});
    int softmax = nest.make("softmax", "{0} / {1}", {weight, total});
    if (op != "_safe_softmax") return softmax;
    // A row that is masked completely is zero, not NaN.
    return nest.make("safe", "({1} == -cutegen::infinity() ? 0.0f : {0})", {softmax, highest});
  }
  if (op == "logsumexp") {
    int highest = nest.reduce("highest", ReduceKind::max, x);
    // An infinite maximum must not turn into infinity minus infinity.
    int shift = nest.make("shift", kFiniteShift, {highest});
    int total = sum(
        "total", nest.make("weight", "expf({0})", {nest.make("shifted", "{0} - {1}", {x, shift})}));
    return nest.make("logsumexp", "{0} + {1}",
                     {nest.make("log_total", "logf({0})", {total}), shift});
  }
  if (op == "norm" || op == "linalg_vector_norm") return norm(nest, r.parameter, x);
  if (op == "_fused_rms_norm" || op == "rms_norm") {
    int squares = mean(nest.make("square", "cutegen::square({0})", {x}));
    int scale = nest.make("scale", "cutegen::rsqrt({0} + " + literal(r.parameter) + ")", {squares});
    return nest.make("normalized", "{0} * {1}", {at, scale});
  }
  // Compute the variance in two passes, which avoids cancellation.
  const int average = mean(x);
  int centered = nest.make("centered", "{0} - {1}", {x, average});
  int squares = sum("squares", nest.make("square", "cutegen::square({0})", {centered}));
  if (op == "native_layer_norm") {
    int scale = nest.make("scale", "cutegen::rsqrt({0} / {1} + " + literal(r.parameter) + ")",
                          {squares, nest.count()});
    if (at != x) centered = nest.make("centered", "{0} - {1}", {at, average});
    return nest.make("normalized", "{0} * {1}", {centered, scale});
  }
  int variance = nest.make("variance", "{0} / fmaxf(0.0f, {1} - " + literal(r.parameter) + ")",
                           {squares, nest.count()});
  if (op == "var") return variance;
  return op == "std" ? nest.make("deviation", "sqrtf({0})", {variance}) : -1;
}

}  // namespace cutegen::recipes
