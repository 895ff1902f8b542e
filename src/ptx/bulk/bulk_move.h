// SPDX-License-Identifier: Apache-2.0
// Moves the bytes of bulk copies (cp.async.bulk) into and out of shared memory.
//
// Contract: the caller has checked the copy and added it to `cta.bulk`. If the source of the copy
// is shared memory, put_rows() reads the source from `from_shared`, the shared memory of the CTA
// that started the copy.
//
// Example: put_rows(cta, copy, nullptr);
#pragma once

#include "ptx/cta/cta_state.h"

namespace cutegen::ptx {

// Writes the bytes of a load to shared memory.
void put_rows(CtaState& cta, const BulkCopy& c, const std::byte* from_shared);
// Reads the bytes of a store from shared memory, except bytes outside the tensor.
void take_rows(const CtaState& cta, BulkCopy& c);
// Writes the bytes in BulkCopy::held to global memory or, for a reduction, combines these bytes
// with the values in global memory.
void write_rows(const CtaState& cta, const BulkCopy& c);

}  // namespace cutegen::ptx
