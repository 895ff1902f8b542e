// SPDX-License-Identifier: Apache-2.0
// The table of arithmetic forms. A form is an opcode with a type, such as "add.f32". The table has
// the handlers and operand types of each form.
//
// Contract: the form "add.f32" is for statements without rounding mode, ftz and saturation. The
// variant "add.f32+" obeys rounding mode, ftz and saturation. A signature has one letter for the
// destination, then one letter for each source: h, w, d for integers of 16, 32, 64 bits; H for
// 16-bit floats; f for f32; F for f64; p for predicates.
//
// Example: if (const Form* f = forms().find("mul.wide.s32")) inst.full = f->full;
#pragma once

#include <string>
#include <string_view>
#include <unordered_map>

#include "ptx/machine/inst.h"
#include "ptx/ops/registry.h"

namespace cutegen::ptx {

struct Form {
  std::string signature;
  AluFn full = nullptr, masked = nullptr;
  Kind kind = Kind::other;
  uint8_t flops = 0;
};

class Forms final : public Registry {
 public:
  void add(const char* base, const char* type, const char* signature, AluFn full, AluFn masked,
           Kind kind, int flops) override;
  void add_matrix(const char* shape, const char* types, const MatrixForm& form) override;
  const Form* find(std::string_view name) const;
  // Finds the form of an mma by shape and types: "m16n8k16.f32.f16.f16.f32".
  const MatrixForm* find_matrix(std::string_view name) const;
  const std::unordered_map<std::string, MatrixForm>& matrices() const { return matrices_; }
  const std::unordered_map<std::string, Form>& all() const { return forms_; }
  std::string_view instruction_set() const { return isa_; }
  AddressFn addresses = nullptr;
  WgmmaFn (*wgmma)(WgmmaType a, WgmmaType b, WgmmaSum d) = nullptr;

 private:
  friend Forms make_forms(std::string_view isa);
  std::string isa_;
  std::unordered_map<std::string, Form> forms_;
  std::unordered_map<std::string, MatrixForm> matrices_;
};

// Returns the table of the handlers that the build compiled for one x86-64 level: "base", "v3" or
// "v4".
Forms make_forms(std::string_view isa);
// Returns the highest x86-64 level that the host supports.
std::string_view best_instruction_set();
const Forms& forms();

}  // namespace cutegen::ptx
