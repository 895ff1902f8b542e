// SPDX-License-Identifier: Apache-2.0
#include "base/hash.h"

#include <openssl/evp.h>
#include <sys/random.h>

#include <array>
#include <charconv>
#include <cstdint>
#include <cstring>

#include "base/result.h"

namespace cutegen {

std::string to_hex(std::span<const std::byte> bytes) {
  static constexpr char digits[] = "0123456789abcdef";
  std::string out;
  out.reserve(2 * bytes.size());
  for (std::byte b : bytes) {
    out += digits[std::to_integer<unsigned>(b) >> 4];
    out += digits[std::to_integer<unsigned>(b) & 15];
  }
  return out;
}

std::string to_hex(std::string_view bytes) {
  return to_hex(std::as_bytes(std::span(bytes)));
}

std::optional<std::string> from_hex(std::string_view text) {
  std::string out(text.size() / 2, '\0');
  if (text.size() % 2) return std::nullopt;
  for (size_t i = 0; i < out.size(); ++i) {
    const char* begin = &text[2 * i];
    unsigned char value = 0;
    auto [end, error] = std::from_chars(begin, begin + 2, value, 16);
    if (error != std::errc() || end != begin + 2) return std::nullopt;
    out[i] = char(value);
  }
  return out;
}

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
  return to_hex(std::as_bytes(std::span(digest)));
}

std::string sha256(std::string_view bytes) {
  std::array<unsigned char, 32> digest{};
  unsigned size = 0;
  CG_ASSERT(EVP_Digest(bytes.data(), bytes.size(), digest.data(), &size, EVP_sha256(), nullptr) ==
            1);
  return to_hex(std::as_bytes(std::span(digest)));
}

void random_bytes(std::span<std::byte> out) {
  while (!out.empty()) {
    ssize_t n = getrandom(out.data(), out.size(), 0);
    CG_ASSERT(n > 0);
    out = out.subspan(size_t(n));
  }
}

std::string random_id() {
  std::array<unsigned char, 16> bytes{};
  random_bytes(std::as_writable_bytes(std::span(bytes)));
  return to_hex(std::as_bytes(std::span(bytes)));
}

uint64_t secret_seed() {
  uint64_t seed = 0;
  random_bytes(std::as_writable_bytes(std::span(&seed, 1)));
  return seed;
}

}  // namespace cutegen
