// SPDX-License-Identifier: Apache-2.0
// Http: one POST to a model's server, its answer whole or streamed.
//
// Contract: post() returns what came even if it broke off; `error` says how it ended. A body of the
// type text/event-stream goes to `on_stream` in pieces, any other is kept in `body`. on_stream
// returns true when it has seen the end; the rest is waited for a moment only. Sizes of headers and
// body, silence and the Context's time bound every call. No redirect is followed, no cookie kept.
// Connections are used again. Safe for several threads.
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
  Nanoseconds total = std::chrono::minutes(60);  // the longest answer, however steadily it drips
  size_t max_bytes = size_t{64} << 20;           // of the answer
};

using Headers = std::map<std::string, std::string>;  // names in lower case

struct HttpOutcome {
  int status = 0;  // 0: no answer came
  Headers headers;
  std::string body;
  bool streamed = false;  // bytes went to on_stream
  // Without one the answer is whole. `timeout` and `cancelled` are the Context's, else `world`.
  std::optional<Error> error;
};

class Http {
 public:
  using OnStream = std::function<Result<bool>(std::string_view)>;
  Http();
  ~Http();
  Http(const Http&) = delete;
  Http& operator=(const Http&) = delete;
  [[nodiscard]] HttpOutcome post(const Context& ctx, const HttpRequest& request,
                                 const OnStream& on_stream);

 private:
  class Lane;  // a connection and what drives it
  [[nodiscard]] std::unique_ptr<Lane> take();
  void give(std::unique_ptr<Lane> lane);
  std::mutex mutex_;
  std::vector<std::unique_ptr<Lane>> free_;
};

// Whether a URL's host is this machine.
[[nodiscard]] bool is_local_url(const std::string& url);
// http(s)://host[:port][/path] without user, query and fragment, or a user error that says why not.
[[nodiscard]] Result<void> check_url(const std::string& url);

}  // namespace cutegen::llm
