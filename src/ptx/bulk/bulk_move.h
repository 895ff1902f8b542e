// SPDX-License-Identifier: Apache-2.0
// Moves the bytes of copies of the asynchronous proxy into and out of shared memory.
//
// Contract: the copy has passed its checks, and `cta` holds it. If a copy reads shared memory,
// put_rows() reads `from_shared`, the shared memory of the CTA that started the copy.
//
// Example: put_rows(cta, copy, nullptr);
#pragma once

#include "ptx/cta/cta_state.h"

namespace cutegen::ptx {

// Writes the bytes of a load to shared memory.
void put_rows(CtaState& cta, const BulkCopy& c, const std::byte* from_shared);
// Reads the bytes of a store from shared memory, without those outside the tensor.
void take_rows(const CtaState& cta, BulkCopy& c);
// Stores or reduces the bytes that a copy holds.
void write_rows(const CtaState& cta, const BulkCopy& c);

}  // namespace cutegen::ptx
