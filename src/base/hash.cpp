// SPDX-License-Identifier: Apache-2.0
#include "base/hash.h"

#include <openssl/evp.h>
#include <sys/random.h>

#include <array>
#include <cstdint>
#include <cstring>

#include "base/result.h"

namespace cutegen {
namespace {

std::string hex_of(std::span<const unsigned char> bytes) {
  static constexpr char digits[] = "0123456789abcdef";
  std::string out;
  for (unsigned char b : bytes) out += {digits[b >> 4], digits[b & 15]};
  return out;
}

}  // namespace

struct Hasher::State {
  EVP_MD_CTX* ctx = EVP_MD_CTX_new();
  ~State() { EVP_MD_CTX_free(ctx); }
};

Hasher::Hasher() : state_(std::make_unique<State>()) {
  CG_ASSERT(EVP_DigestInit_ex(state_->ctx, EVP_sha256(), nullptr) == 1);
}
Hasher::~Hasher() = default;
Hasher::Hasher(Hasher&&) noexcept = default;

Hasher& Hasher::field(std::string_view bytes) {
  uint64_t size = bytes.size();
  CG_ASSERT(EVP_DigestUpdate(state_->ctx, &size, sizeof size) == 1);
  CG_ASSERT(EVP_DigestUpdate(state_->ctx, bytes.data(), bytes.size()) == 1);
  return *this;
}

std::string Hasher::hex() {
  std::array<unsigned char, 32> digest{};
  unsigned size = 0;
  CG_ASSERT(EVP_DigestFinal_ex(state_->ctx, digest.data(), &size) == 1);
  return hex_of(digest);
}

std::string sha256(std::string_view bytes) {
  std::array<unsigned char, 32> digest{};
  unsigned size = 0;
  CG_ASSERT(EVP_Digest(bytes.data(), bytes.size(), digest.data(), &size, EVP_sha256(), nullptr) ==
            1);
  return hex_of(digest);
}

void random_bytes(std::span<std::byte> out) {
  while (!out.empty()) {
    ssize_t n = getrandom(out.data(), out.size(), 0);
    CG_ASSERT(n > 0);
    out = out.subspan(static_cast<size_t>(n));
  }
}

std::string random_id() {
  std::array<unsigned char, 16> bytes{};
  random_bytes(std::as_writable_bytes(std::span(bytes)));
  return hex_of(bytes);
}

}  // namespace cutegen
