// SPDX-License-Identifier: Apache-2.0
// Expands composite reductions into sum, product, max and min.
#include <cmath>

#include "recipes/nest/builder.h"

namespace cutegen::recipes {

int Builder::norm(double order, int x) {
  if (order == 0)
    return reduce("norm", ReduceKind::sum, make("counted", "float({0} != 0.0f)", {x}));
  if (order == 2)
    return make("norm", "sqrtf({0})",
                {reduce("squares", ReduceKind::sum, make("square", "cutegen::square({0})", {x}))});
  int size = make("size", "fabsf({0})", {x});
  if (order == 1) return reduce("norm", ReduceKind::sum, size);
  if (std::isinf(order)) return reduce("norm", order > 0 ? ReduceKind::max : ReduceKind::min, size);
  if (!(order > 0)) return -1;
  int power = make("power", "powf({0}, " + literal(order) + ")", {size});
  return make("norm", "powf({0}, " + literal(1 / order) + ")",
              {reduce("powers", ReduceKind::sum, power)});
}

// Returns the instruction for reduction `r` of `x`; -1 if it does not cover this use. An operator
// that has a result for each element gives it for the element `at`.
int Builder::expanded(const Reduction& r, int x, int at) {
  const std::string& op = r.base;
  auto sum = [&](const char* name, int v) { return reduce(name, ReduceKind::sum, v); };
  auto mean = [&](int v) { return make("mean", "{0} / {1}", {sum("total", v), count()}); };
  if (op == "sum") return sum("sum", x);
  if (op == "pick") return sum("picked", x);
  if (op == "argmax") return reduce("place", ReduceKind::argmax, x);
  if (op == "argmin") return reduce("place", ReduceKind::argmin, x);
  if (op == "mean") return mean(x);
  if (op == "amax" || op == "max") return reduce("highest", ReduceKind::max, x);
  if (op == "amin" || op == "min") return reduce("lowest", ReduceKind::min, x);
  if (op == "prod") return reduce("product", ReduceKind::product, x);
  if (op == "_softmax" || op == "softmax" || op == "_safe_softmax" || op == "_log_softmax" ||
      op == "log_softmax") {
    int highest = reduce("highest", ReduceKind::max, x);
    int shifted = make("shifted", "{0} - {1}", {x, highest});
    int weight = make("weight", "expf({0})", {shifted});
    int total = sum("total", weight);
    if (at != x) {
      shifted = make("shifted", "{0} - {1}", {at, highest});
      weight = make("weight", "expf({0})", {shifted});
    }
    if (op == "_log_softmax" || op == "log_softmax")
      return make("log_softmax", "{0} - {1}", {shifted, make("log_total", "logf({0})", {total})});
    int softmax = make("softmax", "{0} / {1}", {weight, total});
    if (op != "_safe_softmax") return softmax;
    // A row that is masked completely is zero, not NaN.
    return make("safe", "({1} == -cutegen::infinity() ? 0.0f : {0})", {softmax, highest});
  }
  if (op == "logsumexp") {
    int highest = reduce("highest", ReduceKind::max, x);
    // An infinite maximum must not turn into infinity minus infinity.
    int shift = make("shift", kFiniteShift, {highest});
    int total =
        sum("total", make("weight", "expf({0})", {make("shifted", "{0} - {1}", {x, shift})}));
    return make("logsumexp", "{0} + {1}", {make("log_total", "logf({0})", {total}), shift});
  }
  if (op == "norm" || op == "linalg_vector_norm") return norm(r.parameter, x);
  if (op == "_fused_rms_norm" || op == "rms_norm") {
    int squares = mean(make("square", "cutegen::square({0})", {x}));
    int scale = make("scale", "cutegen::rsqrt({0} + " + literal(r.parameter) + ")", {squares});
    return make("normalized", "{0} * {1}", {at, scale});
  }
  // Compute the variance in two passes, which avoids cancellation.
  const int average = mean(x);
  int centered = make("centered", "{0} - {1}", {x, average});
  int squares = sum("squares", make("square", "cutegen::square({0})", {centered}));
  if (op == "native_layer_norm") {
    int scale = make("scale", "cutegen::rsqrt({0} / {1} + " + literal(r.parameter) + ")",
                     {squares, count()});
    if (at != x) centered = make("centered", "{0} - {1}", {at, average});
    return make("normalized", "{0} * {1}", {centered, scale});
  }
  int variance =
      make("variance", "{0} / fmaxf(0.0f, {1} - " + literal(r.parameter) + ")", {squares, count()});
  if (op == "var") return variance;
  return op == "std" ? make("deviation", "sqrtf({0})", {variance}) : -1;
}

}  // namespace cutegen::recipes
