// SPDX-License-Identifier: Apache-2.0
// Content hashes (SHA-256) for the ids that cutegen keeps on disk (program_id, build_id, blobs).
//
// Contract: a hash is text of 64 lower-case hex digits. Hasher::field hashes a field's length
// before the field, so the hashes of ("ab","c") and ("a","bc") differ.
//
// Example: auto id = Hasher{}.field("plan").field(text).hex();
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
// Returns nullopt unless the whole text consists of hex digits.
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

// Returns a random 128-bit id as 32 hex digits, from the operating system's CSPRNG.
std::string random_id();
// Fills `out` with random bytes from the operating system's CSPRNG.
void random_bytes(std::span<std::byte> out);

// Returns a random seed that programs cannot predict.
uint64_t secret_seed();

}  // namespace cutegen
