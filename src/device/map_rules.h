// SPDX-License-Identifier: Apache-2.0
// Checks the rules that a tensor map (a TMA descriptor) must satisfy on every device.
//
// Contract: if the map breaks a rule, checked_map() returns a user error that names the field. For
// a valid map, it returns the simulator's form, `ptx::TensorMap` (ptx/ops/tensor_map.h).
//
// Example: CG_TRY(ptx::TensorMap map, checked_map(fields, address, "step gemm"));
#pragma once

#include "device/map_fields.h"
#include "ptx/ops/tensor_map.h"

namespace cutegen::device {

Result<ptx::TensorMap> checked_map(const MapFields& fields, uint64_t address,
                                   const std::string& where);

}  // namespace cutegen::device
