// SPDX-License-Identifier: Apache-2.0
#include "ptx/decode/forms.h"

namespace cutegen::ptx {

void Forms::add(const char* base, const char* type, const char* signature, AluFn full, AluFn masked,
                Kind kind, int flops) {
  forms_[std::string(base) + "." + type] = Form{.signature = signature,
                                                .full = full,
                                                .masked = masked,
                                                .kind = kind,
                                                .flops = uint8_t(flops)};
}

void Forms::add_matrix(const char* shape, const char* types, const MatrixForm& form) {
  matrices_[std::string(shape) + "." + types] = form;
}

const MatrixForm* Forms::find_matrix(std::string_view name) const {
  auto it = matrices_.find(std::string(name));
  return it == matrices_.end() ? nullptr : &it->second;
}

const Form* Forms::find(std::string_view name) const {
  auto it = forms_.find(std::string(name));
  return it == forms_.end() ? nullptr : &it->second;
}

Forms make_forms(std::string_view isa) {
  Forms f;
  f.isa_ = std::string(isa);
  auto fill = [&](auto... add) { (add(f), ...); };
#define CG_FILL(isa)                                                                        \
  fill(isa::add_integer, isa::add_bits, isa::add_float, isa::add_compare, isa::add_convert, \
       isa::add_half, isa::add_narrow, isa::add_matrix);                                    \
  f.addresses = isa::addresses(), f.wgmma = isa::wgmma
#ifndef CG_PTX_BASE_ONLY
  if (isa == "v4") {
    CG_FILL(v4);
    return f;
  }
  if (isa == "v3") {
    CG_FILL(v3);
    return f;
  }
#endif
  CG_FILL(base);
#undef CG_FILL
  return f;
}

std::string_view best_instruction_set() {
#ifdef CG_PTX_BASE_ONLY  // built for sanitizers
  return "base";
#else
  const bool v3 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
                  __builtin_cpu_supports("bmi2") && __builtin_cpu_supports("lzcnt") &&
                  __builtin_cpu_supports("f16c");
  const bool v4 = v3 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
                  __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512cd");
  return v4 ? "v4" : v3 ? "v3" : "base";
#endif
}

const Forms& forms() {
  static const Forms instance = make_forms(best_instruction_set());
  return instance;
}

}  // namespace cutegen::ptx
