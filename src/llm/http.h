// SPDX-License-Identifier: Apache-2.0
// Http: sends POST requests to a model server and receives whole or streamed answers.
//
// Contract: post() returns everything that it received, even if the answer broke off;
// HttpOutcome::error then says why. The function post() passes a body of type text/event-stream to
// `on_stream` piece by piece, and stores any other body in HttpOutcome::body. When on_stream
// returns true, the answer is complete, and post() waits only a moment for further bytes. Each call
// has limits for the sizes of headers and body, for the time without a byte, and for the total
// time. A call also ends if its Context is cancelled or times out. Http follows no redirects, keeps
// no cookies and reuses connections. Several threads may use one Http.
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
  Nanoseconds idle = std::chrono::minutes(5);    // longest time without a byte from the server
  Nanoseconds total = std::chrono::minutes(60);  // the longest total time of the call
  size_t max_bytes = size_t{64} << 20;           // the largest size of the answer
};

using Headers = std::map<std::string, std::string>;  // header names are in lower case

struct HttpOutcome {
  int status = 0;  // the HTTP status; 0 if the server did not answer
  Headers headers;
  std::string body;
  bool streamed = false;  // true if post() called on_stream
  // Empty if the answer is complete. If the Context ended the call, the error's kind is `timeout`
  // or `cancelled`, otherwise `world`.
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
  class Lane;  // a libcurl handle with its connection
  std::unique_ptr<Lane> take();
  void give(std::unique_ptr<Lane> lane);
  std::mutex mutex_;
  std::vector<std::unique_ptr<Lane>> free_;
};

// Returns whether a URL's host is this machine.
bool is_local_url(const std::string& url);
// Accepts URLs of the form http(s)://host[:port][/path], without user, query and fragment. For a
// URL of another form, check_url() returns a user error with the reason.
Result<void> check_url(const std::string& url);

}  // namespace cutegen::llm
