// SPDX-License-Identifier: Apache-2.0
// Http: sends a POST to a model's server. The answer comes whole or streamed.
//
// Contract: post() returns what it received, even if the answer broke off; `error` says how it
// ended. A text/event-stream goes to `on_stream` in pieces; any other body is kept in `body`.
// on_stream returns true when it has seen the end; post() then waits only a moment for the rest.
// Every call is limited by header and body sizes, by the longest silence and by the Context. Http
// follows no redirects, keeps no cookies and reuses connections. Thread-safe.
//
// Example: HttpOutcome o = http.post(ctx, {.url = url, .body = text}, {});
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/context.h"

namespace cutegen::llm {

struct HttpRequest {
  std::string url;
  std::vector<std::string> headers;  // "name: value"
  std::string body;
  Nanoseconds idle = std::chrono::minutes(5);    // the longest silence
  Nanoseconds total = std::chrono::minutes(60);  // the longest answer, even if data keeps coming
  size_t max_bytes = size_t{64} << 20;           // limit of the answer
};

using Headers = std::map<std::string, std::string>;  // names in lower case

struct HttpOutcome {
  int status = 0;  // 0: no answer
  Headers headers;
  std::string body;
  bool streamed = false;  // bytes went to on_stream
  // Empty if the answer is complete. `timeout` and `cancelled` come from the Context; all others
  // are `world`.
  std::optional<Error> error;
};

class Http {
 public:
  using OnStream = std::function<Result<bool>(std::string_view)>;
  Http();
  ~Http();
  Http(const Http&) = delete;
  Http& operator=(const Http&) = delete;
  HttpOutcome post(const Context& ctx, const HttpRequest& request, const OnStream& on_stream);

 private:
  class Lane;  // a connection and its driver
  std::unique_ptr<Lane> take();
  void give(std::unique_ptr<Lane> lane);
  std::mutex mutex_;
  std::vector<std::unique_ptr<Lane>> free_;
};

// Whether a URL's host is this machine.
bool is_local_url(const std::string& url);
// Accepts http(s)://host[:port][/path] without user, query and fragment. Any other URL is a user
// error with the reason.
Result<void> check_url(const std::string& url);

}  // namespace cutegen::llm
