// SPDX-License-Identifier: Apache-2.0
// Moves the bytes of bulk copies into shared memory and out of it.
//
// Contract: the copy has passed its checks and is in `cta.bulk`. put_rows() reads `from_shared`,
// the shared memory of the CTA that started the copy, if the copy's source is shared memory.
//
// Example: put_rows(cta, copy, nullptr);
#pragma once

#include "ptx/cta/cta_state.h"

namespace cutegen::ptx {

// Writes the bytes of a load to shared memory.
void put_rows(CtaState& cta, const BulkCopy& c, const std::byte* from_shared);
// Reads the bytes of a store from shared memory, except bytes outside the tensor.
void take_rows(const CtaState& cta, BulkCopy& c);
// Writes the bytes in BulkCopy::held to global memory, or reduces them into it.
void write_rows(const CtaState& cta, const BulkCopy& c);

}  // namespace cutegen::ptx
