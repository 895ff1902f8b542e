// SPDX-License-Identifier: Apache-2.0
#include "llm/http.h"

#include <curl/curl.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "base/text.h"

namespace cutegen::llm {
namespace {

constexpr size_t kMaxHeaderBytes = size_t{64} << 10;
constexpr size_t kMaxHeaders = 200;
constexpr long kConnectSeconds = 15;
constexpr size_t kMostFreeLanes = 32;
constexpr Nanoseconds kExchangePoll = std::chrono::milliseconds(500);
constexpr Nanoseconds kAfterTheEnd = std::chrono::milliseconds(200);

struct SlistFree {
  void operator()(curl_slist* list) const { curl_slist_free_all(list); }
};
using Slist = std::unique_ptr<curl_slist, SlistFree>;

std::string lower(std::string_view text) {
  std::string out(text);
  for (char& c : out)
    if (c >= 'A' && c <= 'Z') c = char(c - 'A' + 'a');
  return out;
}

std::string host_of(const std::string& url) {
  size_t begin = url.find("://");
  begin = begin == std::string::npos ? 0 : begin + 3;
  std::string host = url.substr(begin, url.find_first_of("/?#", begin) - begin);
  if (host.starts_with('[')) return host.substr(0, host.find(']') + 1);
  return lower(host.substr(0, host.find(':')));
}

// An answer that is still arriving.
struct HttpExchange {
  const HttpRequest& request;
  const Http::OnStream& on_stream;
  HttpOutcome out;
  size_t header_bytes = 0, body_bytes = 0;
  Clock::time_point begin = Clock::now(), last_byte = begin;
  std::optional<Clock::time_point> ended;  // when on_stream saw the end

  size_t refuse(Error error) {
    if (!out.error) out.error = std::move(error);
    return 0;  // makes curl stop
  }

  size_t header(std::string_view line) {
    last_byte = Clock::now();
    header_bytes += line.size();
    if (header_bytes > kMaxHeaderBytes || out.headers.size() > kMaxHeaders)
      return refuse({.kind = ErrorKind::world, .message = "the server sent too many headers"});
    if (line.starts_with("HTTP/")) {  // a new answer, after "100 Continue"
      out.headers.clear();
      size_t blank = line.find(' ');
      out.status = blank == std::string_view::npos ? 0 : std::atoi(line.data() + blank + 1);
    } else if (size_t colon = line.find(':'); colon != std::string_view::npos) {
      out.headers[lower(line.substr(0, colon))] = std::string(trim(line.substr(colon + 1)));
    }
    return line.size();
  }

  bool is_stream() const {
    auto type = out.headers.find("content-type");
    return out.status == 200 && on_stream && type != out.headers.end() &&
           lower(type->second).starts_with("text/event-stream");
  }

  size_t body(std::string_view bytes) {
    last_byte = Clock::now();
    body_bytes += bytes.size();
    if (body_bytes > request.max_bytes)
      return refuse({.kind = ErrorKind::world,
                     .message = "the server's answer is larger than " +
                                std::to_string(request.max_bytes) + " bytes"});
    if (!is_stream()) {
      out.body.append(bytes);
      return bytes.size();
    }
    out.streamed = true;
    if (ended) return bytes.size();
    auto done = on_stream(bytes);
    if (!done) return refuse(done.error());
    if (*done) ended = Clock::now();
    return bytes.size();
  }
};

size_t on_header(char* data, size_t size, size_t count, void* exchange) {
  return static_cast<HttpExchange*>(exchange)->header({data, size * count});
}

size_t on_body(char* data, size_t size, size_t count, void* exchange) {
  return static_cast<HttpExchange*>(exchange)->body({data, size * count});
}

}  // namespace

class Http::Lane {
 public:
  Lane() : easy_(curl_easy_init()), multi_(curl_multi_init()) { CG_ASSERT(easy_ && multi_); }
  ~Lane() {
    curl_multi_cleanup(multi_);
    curl_easy_cleanup(easy_);
  }
  Lane(const Lane&) = delete;
  Lane& operator=(const Lane&) = delete;

  HttpOutcome run(const Context& ctx, const HttpRequest& request, const OnStream& on_stream) {
    HttpExchange exchange{.request = request, .on_stream = on_stream};
    Slist headers = prepare(exchange);
    curl_multi_add_handle(multi_, easy_);
    std::stop_callback wake(ctx.stop(), [this] { curl_multi_wakeup(multi_); });
    drive(ctx, exchange);
    curl_multi_remove_handle(multi_, easy_);
    curl_easy_reset(easy_);
    return std::move(exchange.out);
  }

 private:
  Slist prepare(HttpExchange& exchange) {
    const HttpRequest& request = exchange.request;
    curl_slist* list = curl_slist_append(nullptr, "Expect:");  // do not wait for "100 Continue"
    for (const std::string& header : request.headers)
      list = curl_slist_append(list, header.c_str());
    auto set = [this](CURLoption option, auto value) { curl_easy_setopt(easy_, option, value); };
    set(CURLOPT_URL, request.url.c_str());
    set(CURLOPT_PROTOCOLS_STR, "http,https");
    set(CURLOPT_HTTPHEADER, list);
    set(CURLOPT_POSTFIELDSIZE_LARGE, curl_off_t(request.body.size()));
    set(CURLOPT_POSTFIELDS, request.body.c_str());
    set(CURLOPT_WRITEFUNCTION, on_body);
    set(CURLOPT_WRITEDATA, &exchange);
    set(CURLOPT_HEADERFUNCTION, on_header);
    set(CURLOPT_HEADERDATA, &exchange);
    set(CURLOPT_NOSIGNAL, 1L);
    set(CURLOPT_CONNECTTIMEOUT, kConnectSeconds);
    set(CURLOPT_USERAGENT, "cutegen");
    if (is_local_url(request.url)) set(CURLOPT_NOPROXY, "*");
    if (const char* file = std::getenv("SSL_CERT_FILE"); file && *file) set(CURLOPT_CAINFO, file);
    return Slist(list);
  }

  void drive(const Context& ctx, HttpExchange& exchange) {
    int running = 1;
    for (;;) {
      if (curl_multi_perform(multi_, &running) != CURLM_OK) {
        exchange.refuse({.kind = ErrorKind::world, .message = "libcurl failed"});
        return;
      }
      if (running == 0) break;
      auto now = Clock::now();
      if (exchange.ended && now - *exchange.ended > kAfterTheEnd) return;
      if (auto check = ctx.check("waiting for the model's server"); !check) {
        exchange.refuse(check.error());
        return;
      }
      if (now - exchange.last_byte > exchange.request.idle) {
        exchange.refuse(
            {.kind = ErrorKind::world, .message = "the server was silent for too long"});
        return;
      }
      if (now - exchange.begin > exchange.request.total) {
        exchange.refuse({.kind = ErrorKind::world, .message = "the server's answer took too long"});
        return;
      }
      Nanoseconds left = exchange.request.idle - (now - exchange.last_byte);
      auto wait = ctx.remaining(std::min(exchange.ended ? kAfterTheEnd : kExchangePoll, left));
      auto ms = std::chrono::ceil<std::chrono::milliseconds>(wait).count();
      curl_multi_poll(multi_, nullptr, 0, int(ms), nullptr);
    }
    finish(exchange);
  }

  void finish(HttpExchange& exchange) {
    int left = 0;
    while (CURLMsg* message = curl_multi_info_read(multi_, &left)) {
      if (message->msg != CURLMSG_DONE || message->data.result == CURLE_OK || exchange.ended)
        continue;
      exchange.refuse(
          {.kind = ErrorKind::world, .message = curl_easy_strerror(message->data.result)});
    }
  }

  CURL* easy_;
  CURLM* multi_;
};

Http::Http() {
  static const CURLcode ready = curl_global_init(CURL_GLOBAL_DEFAULT);
  CG_ASSERT(ready == CURLE_OK);
}

Http::~Http() = default;

std::unique_ptr<Http::Lane> Http::take() {
  std::lock_guard lock(mutex_);
  if (free_.empty()) return std::make_unique<Lane>();
  auto lane = std::move(free_.back());
  free_.pop_back();
  return lane;
}

void Http::give(std::unique_ptr<Lane> lane) {
  std::lock_guard lock(mutex_);
  if (free_.size() < kMostFreeLanes) free_.push_back(std::move(lane));
}

HttpOutcome Http::post(const Context& ctx, const HttpRequest& request, const OnStream& on_stream) {
  auto lane = take();
  HttpOutcome out = lane->run(ctx, request, on_stream);
  give(std::move(lane));
  return out;
}

bool is_local_url(const std::string& url) {
  std::string host = host_of(url);
  bool loopback =
      host.starts_with("127.") && host.find_first_not_of("0123456789.") == std::string::npos;
  return host == "localhost" || host == "[::1]" || loopback;
}

Result<void> check_url(const std::string& url) {
  const char* remedy = "give it as https://host[:port][/path]";
  if (!url.starts_with("https://") && !url.starts_with("http://"))
    return user_error("the model's address is not an http(s) URL", "--model-url", remedy);
  bool odd = std::any_of(url.begin(), url.end(), [](char c) { return c <= ' ' || c > '~'; });
  if (odd || url.size() > 2048)
    return user_error("the model's address has blanks or odd characters, or is too long",
                      "--model-url", remedy);
  if (url.find_first_of("?#@") != std::string::npos)
    return user_error("the model's address must not contain a user, key or query", "--model-url",
                      "put the key into the provider's environment variable or --model-key-file");
  if (host_of(url).empty())
    return user_error("the model's address does not name a host", "--model-url", remedy);
  return {};
}

}  // namespace cutegen::llm
