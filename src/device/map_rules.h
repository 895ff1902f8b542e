// SPDX-License-Identifier: Apache-2.0
// The rules that a tensor map must satisfy on every device, before a driver or simulator sees it.
//
// Contract: a broken rule is a user error that names the field. The result is the map as the
// simulator reads it (ptx/ops/tensor_map.h).
//
// Example: CG_TRY(ptx::TensorMap map, checked_map(fields, address, "step gemm"));
#pragma once

#include "device/map_fields.h"
#include "ptx/ops/tensor_map.h"

namespace cutegen::device {

Result<ptx::TensorMap> checked_map(const MapFields& fields, uint64_t address,
                                   const std::string& where);

}  // namespace cutegen::device
