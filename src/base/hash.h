// SPDX-License-Identifier: Apache-2.0
// Content hashes (SHA-256) for the ids that cutegen keeps on disk (program_id, build_id, blobs).
//
// Contract: lower-case hex, 64 characters. Hasher::field prefixes each field with its length, so
// ("ab","c") and ("a","bc") differ. Example: auto id = Hasher{}.field("plan").field(text).hex();
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace cutegen {

std::string sha256(std::string_view bytes);
std::string to_hex(std::span<const std::byte> bytes);  // lower case
std::string to_hex(std::string_view bytes);
// nullopt unless the whole text is hex.
std::optional<std::string> from_hex(std::string_view text);

class Hasher {
 public:
  Hasher();
  ~Hasher();
  Hasher(Hasher&&) noexcept;
  Hasher& field(std::string_view bytes);  // length-prefixed
  std::string hex();                      // finishes the hash

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// A random 128-bit id, 32 hex digits, from the kernel's CSPRNG.
std::string random_id();
// Fills `out` from the kernel's CSPRNG. Secret seeds come from here.
void random_bytes(std::span<std::byte> out);

// An unpredictable seed.
uint64_t secret_seed();

}  // namespace cutegen
