// SPDX-License-Identifier: Apache-2.0
// libFuzzer target: any bytes as an expression parse or are refused, and evaluate without faults.
#include <cstddef>
#include <cstdint>
#include <string>

#include "core/expr.h"

namespace {

using namespace cutegen;

// Gives every name a value that depends on its length, large and negative ones included.
class AnyScope final : public Scope {
 public:
  Result<Number> symbol(const std::string& n) const override { return Number(number(n)); }
  Result<int64_t> dim(const std::string& n, int64_t axis) const override {
    return axis > 7 ? Result<int64_t>(user_error("no such axis")) : number(n);
  }
  Result<int64_t> size(const std::string& n) const override { return number(n); }
  Result<int64_t> stride(const std::string& n, int64_t) const override { return number(n); }
  Result<Number> attribute(const std::string& n) const override {
    return Number(double(number(n)) * 0.75);
  }
  Result<Number> argument(const std::string& n) const override { return Number(number(n)); }
  Result<int64_t> module_constant(const std::string& n) const override { return number(n); }
  Result<int64_t> occupancy(const std::string& n) const override { return number(n); }

 private:
  static int64_t number(const std::string& name) {
    static constexpr int64_t values[] = {0, 1, -1, 7, INT64_MAX, INT64_MIN, 4096, 1 << 30};
    return values[name.size() % 8];
  }
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  auto e = Expr::parse(std::string(reinterpret_cast<const char*>(data), size));
  if (!e) {
    CG_ASSERT(e.error().kind == ErrorKind::user);
    return 0;
  }
  (void)e->evaluate(AnyScope());
  (void)e->integer(AnyScope());
  (void)e->mentions();
  auto again = Expr::from_json(e->json(), "");
  CG_ASSERT(again.has_value() && again->json() == e->json());
  return 0;
}
