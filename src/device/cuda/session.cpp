// SPDX-License-Identifier: Apache-2.0
#include "device/cuda/session.h"

#include <thread>

namespace cutegen::device::cuda {
namespace {

constexpr auto kSpin = std::chrono::microseconds(500);
// Keeps freed blocks within these limits, for the outputs and scratch of the next program.
constexpr Keeping kKeeping{
    .most_bytes = size_t{8} << 30, .most_block = size_t{2} << 30, .shareable = true};

}  // namespace

Session::Session(const Driver& driver, Found gpu, Handle context)
    : driver_(driver),
      gpu_(std::move(gpu)),
      context_(context),
      memory_(driver, gpu_.device, kKeeping),
      modules_(driver) {}

Session::~Session() {
  if (!enter()) return;
  modules_.clear();
  memory_.drop_kept();
  if (stream_) driver_.stream_destroy(stream_);
  driver_.context_release(gpu_.device);
}

Result<std::unique_ptr<Session>> Session::open(const DeviceName& device) {
  CG_TRY(const Driver* driver, load_driver());
  CG_TRY(Found gpu, find_device(*driver, device));
  Handle context = nullptr;
  CG_CHECK(driver->check(driver->context_retain(&context, gpu.device), "opening " + device.text()));
  std::unique_ptr<Session> session(new Session(*driver, std::move(gpu), context));
  CG_CHECK(session->enter());
  constexpr unsigned kDefault = 0;
  CG_CHECK(driver->check(driver->stream_create(&session->stream_, kDefault), "making a stream"));
  return session;
}

Result<void> Session::enter() const {
  return driver_.check(driver_.context_set(context_), "entering the GPU context");
}

Result<int64_t> Session::free_bytes() const {
  size_t free = 0, total = 0;
  CG_CHECK(driver_.check(driver_.memory_info(&free, &total), "reading the free GPU memory"));
  return int64_t(free);
}

Result<void> Session::load(const std::string& ptx) {
  CG_TRY(auto facts, modules_.load({ptx}, {}));
  (void)facts;
  return {};
}

Result<void> Session::launch(const std::string& kernel, int64_t blocks, int64_t threads,
                             std::vector<void*> arguments) {
  CG_TRY(Handle function, modules_.function(0, kernel));
  LaunchSettings settings{.grid = {unsigned(blocks), 1, 1},
                          .block = {unsigned(threads), 1, 1},
                          .shared_bytes = 0,
                          .stream = stream_};
  return driver_.check(driver_.launch(&settings, function, arguments.data(), nullptr),
                       "launching '" + kernel + "'");
}

Result<void> Session::set(Address at, unsigned char value, size_t bytes) {
  if (bytes == 0) return {};
  return driver_.check(driver_.set8(at, value, bytes, stream_), "filling GPU memory");
}

Result<void> Session::copy(Address to, Address from, size_t bytes) {
  if (bytes == 0) return {};
  return driver_.check(driver_.copy(to, from, bytes, stream_), "copying on the GPU");
}

Result<void> Session::write(Address at, std::span<const std::byte> bytes) {
  if (bytes.empty()) return {};
  return driver_.check(driver_.to_device(at, bytes.data(), bytes.size()), "copying to the GPU");
}

Result<void> Session::read(std::span<std::byte> out, Address at) const {
  if (out.empty()) return {};
  return driver_.check(driver_.to_host(out.data(), at, out.size()), "copying from the GPU");
}

Result<void> Session::wait(const Context& ctx) const {
  const auto start = Clock::now();
  for (;;) {
    const Status s = driver_.stream_query(stream_);
    if (s != kNotReady) return driver_.check(s, "waiting for the GPU");
    CG_CHECK(ctx.check("waiting for the GPU"));
    if (Clock::now() - start > kSpin) std::this_thread::sleep_for(std::chrono::microseconds(50));
  }
}

}  // namespace cutegen::device::cuda
