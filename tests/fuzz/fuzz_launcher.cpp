// SPDX-License-Identifier: Apache-2.0
// libFuzzer target: any bytes as a CUDA source with a launcher give a launch or an error with its
// place, and the expressions of the launch parse as expressions of a plan.
#include <cstddef>
#include <cstdint>
#include <string>

#include "core/expr.h"
#include "eval/source/device_source.h"
#include "eval/source/launcher.h"

namespace {

using namespace cutegen;
using namespace cutegen::eval;

void check_number(const HostValue& value) {
  if (value.kind == HostValue::Kind::sizes)
    for (const HostValue& one : value.sizes) check_number(one);
  if (value.kind != HostValue::Kind::integer) return;
  const auto parsed = Expr::parse(value.text);
  CG_ASSERT(parsed || parsed.error().kind == ErrorKind::user);
}

void read(const SourceOutline& outline, const SourceFunction& function, const std::string& text) {
  static const TensorInfo kTensor{"x", TensorRole::input, DType::f16, {8, 64}};
  HostContext context{
      .outline = outline, .file = "a.cu", .tensor = [](const std::string&) { return &kTensor; }};
  LauncherQuery query{.function = &function, .outputs = {"out"}};
  for (const LauncherParameterText& p : launcher_parameters(outline, function)) {
    HostValue value = plan_value("dim(x,0)");
    if (p.is_tensor) value.kind = HostValue::Kind::tensor;
    if (p.is_pointer) value.kind = HostValue::Kind::pointer;
    if (p.is_tensor || p.is_pointer) value.tensor = "x";
    query.parameters[p.name] = value;
  }
  const auto launch = read_launcher(context, query);
  CG_ASSERT(launch || !launch.error().where.empty());
  if (!launch) return;
  check_number(launch->grid);
  check_number(launch->block);
  for (const HostValue& one : launch->arguments) check_number(one);
  const auto device = device_source(text, outline, *launch, "a.cu");
  CG_ASSERT(device || !device.error().where.empty());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  const SourceOutline outline = outline_of(text);
  int read_functions = 0;
  for (const SourceFunction& f : outline.functions)
    if (f.body != 0 && ++read_functions <= 4) read(outline, f, text);
  return 0;
}
