// The Idempotency-Key header for any HTTP server, framework-neutral: what to do with a request
// before its handler runs, and with the handler's response afterwards. docs/http.md is the manual;
// http_beast.hpp and http_httplib.hpp wrap handlers of two frameworks with it.
//
//   idem::http::Decision decision = guard.begin(request);
//   Pass     no key, and none is needed: run the handler, send its response
//   Answer   send this response; the handler does not run
//   Proceed  run the handler, then finish(exchange, response)
//
// While the handler runs the guard renews the claim at a third of its lease.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "idem/http_policy.hpp"
#include "idem/service.hpp"

namespace idem::http {

struct HeaderView {
  std::string_view name, value;
};

struct Header {
  std::string name, value;
  friend bool operator==(const Header&, const Header&) = default;
};

struct Response {
  unsigned status = 200;
  std::vector<Header> headers;
  std::string body;
  friend bool operator==(const Response&, const Response&) = default;
};

// Borrows everything until the call returns.
struct RequestView {
  std::string_view method;
  std::string_view target;  // path and query as they stood in the request line
  std::span<const HeaderView> headers;
  std::string_view body;
  // Who asks: the authenticated principal, as the application knows it. Never a header's word.
  std::string_view tenant;
  std::string_view biz_type;  // the route's scope: the same key on two scopes are two records
  std::optional<KeyUse> key;  // default: Policy::key
};

// Borrows everything until the call returns.
struct ResponseView {
  unsigned status = 200;
  std::span<const HeaderView> headers;
  std::string_view body;
  bool whole = true;  // false: only a part of the body is here; it is not kept
};

// Why the guard answers instead of the handler.
enum class Reason : std::uint8_t {
  replayed,
  already_done,  // 204: policy return_original_result = false
  failed,        // failed before, for good
  key_missing,
  key_malformed,
  key_too_long,
  key_reused,
  in_progress,
  retry_later,
  in_doubt,
  attempts_exhausted,
  store_unavailable,
  result_corrupt,  // what is stored is not a response; nothing of it is sent
  bad_scope,       // 500: the application's tenant or biz_type breaks the rules of check_key
};
[[nodiscard]] std::string_view to_string(Reason reason) noexcept;

class Unreported;

// The right to run the handler, and the duty to report its response: finish, fail or release.
// Move-only. Destroyed without a report it stays processing and lapses with its lease.
class Exchange {
 public:
  Exchange(Exchange&&) noexcept;
  Exchange& operator=(Exchange&&) noexcept;
  ~Exchange();

  [[nodiscard]] const Request& request() const;
  [[nodiscard]] std::uint64_t fence() const;  // pass it downstream
  [[nodiscard]] std::uint32_t attempt() const;
  [[nodiscard]] ClaimKind kind() const;

 private:
  friend class Guard;
  friend class Unreported;
  struct State;
  explicit Exchange(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

struct Pass {};
struct Proceed {
  Exchange exchange;
};
struct Answer {
  Response response;
  Reason reason;
  Micros retry_after{};  // in_progress, retry_later: exact; the header is rounded up
};
using Decision = std::variant<Pass, Proceed, Answer>;
// What a request asks of the store, if anything.
using Reading = std::variant<Pass, Request, Answer>;

// What becomes of a handler's response.
struct Finished {
  std::optional<Response> instead;  // send this, not the handler's: another attempt had taken over
  std::vector<Header> add;          // else: the handler's, and these headers
};

// What becomes of an error of the store.
enum class StoreErrors : std::uint8_t {
  answered,  // begin: a 503; finish: the handler's response is sent all the same
  thrown,    // as Exception. For a guard inside a transaction: that must then not be committed
};

// Share freely between threads. Shares the service.
class Guard {
 public:
  // A policy that check_policy refuses throws Exception: a programming error, found at start.
  Guard(std::shared_ptr<IdempotencyService> service, Policy policy = {},
        StoreErrors errors = StoreErrors::answered);
  // Every Exchange must be gone. Reports once more what the store has not confirmed: one call of
  // the store each, and no further one once the store does not answer.
  ~Guard();
  Guard(const Guard&) = delete;
  Guard& operator=(const Guard&) = delete;

  // read() and claim(); where the service's policy says so (on_duplicate: wait) it waits for a
  // running first request.
  [[nodiscard]] Decision begin(const RequestView& request);

  // Key and fingerprint of a request. Pure: never asks the store.
  [[nodiscard]] Reading read(const RequestView& request) const;

  // One claim that never waits.
  [[nodiscard]] Decision claim(const Request& request, const CallOptions& options = {});

  // What a claim of the service, made elsewhere, means for its request.
  [[nodiscard]] Decision decide(const Request& request, result<ClaimOutcome> claimed);

  // The handler answered. 408, 425, 429 and 5xx are a failure that may be retried and are not kept
  // for replay; everything else becomes the first result. If the store cannot be told, the
  // handler's response is sent all the same (refusing it would make the sender send again), and
  // the result is reported again behind it, for up to ten minutes, until the store answers.
  // A response over max_result_bytes is kept without its body; without its headers, too, where
  // those are over it; its status always.
  [[nodiscard]] Finished finish(Exchange exchange, const ResponseView& response);

  // The handler threw, or is known to have failed: the next request may run at once.
  void fail(Exchange exchange, std::string_view reason);
  // The handler did nothing at all. In a first attempt: as if the request had never come. In a
  // later one: a failure that may be retried at once; what the attempts before did is not forgotten
  // with it, so the request and their number stay.
  void release(Exchange exchange);
  // The handler may have acted, and nobody knows: the record stays processing until its lease ends,
  // then the policy (on_lapsed) decides.
  void hold(Exchange exchange);

  // First results that the store has not confirmed yet (at most 1,024; 64 MiB).
  [[nodiscard]] std::size_t unreported() const;

  [[nodiscard]] IdempotencyService& service() const { return *service_; }
  [[nodiscard]] const Policy& policy() const { return policy_; }

 private:
  // A stored text as a response; `failure`: it is the reason of a failure.
  [[nodiscard]] Answer replay(const Request& request, std::string_view stored, bool failure) const;
  [[nodiscard]] Finished complete(Exchange exchange, const ResponseView& response);
  [[nodiscard]] Finished fail(Exchange::State& state, const ResponseView& response);
  void add_ttl(const Request& request, std::vector<Header>& headers) const;

  std::shared_ptr<IdempotencyService> service_;
  const Policy policy_;
  const StoreErrors errors_;
  std::unique_ptr<Timers> renewals_;
  std::unique_ptr<Unreported> unreported_;  // last: its exchanges use the renewals
};

// --- the parts, each pure --------------------------------------------------------------------

// A key as it stands in a header line: bare (0x21..0x7E) or a quoted structured-field string
// (RFC 8941). Both spellings of a key are the same key. The error is what a 400 says.
struct KeyProblem {
  Reason reason;
  std::string_view detail;
};
[[nodiscard]] std::variant<std::string, KeyProblem> parse_key(std::string_view field, bool strict);

// SHA-256 over method, target and body, domain-separated and length-prefixed.
[[nodiscard]] Fingerprint fingerprint_of(std::string_view method, std::string_view target,
                                         std::string_view body);

// A response as it is stored: a readable text of status, allowed headers, and the body's bytes.
//
//   idem-http/1 201 17 kept
//   content-type: application/json
//   <empty line>
//   {"id":"pay_42"}..
//
// "omitted" instead of "kept": the body was too large and is not there.
struct StoredResponse {
  Response response;
  bool body_kept = true;
  std::uint64_t body_bytes = 0;  // of the first response, also when its body is not kept
};
// Keeps the headers that are allowed, replayable and well-formed; silently leaves out the rest.
// bytes_max: the body is left out if the whole would be larger, and the headers if they alone are;
// what is left takes 64 bytes at most.
[[nodiscard]] std::string encode_response(const ResponseView& response,
                                          std::span<const std::string> allowed_headers,
                                          std::uint64_t bytes_max);
// corrupt: not such a text, or a header in it that must not be replayed.
[[nodiscard]] result<StoredResponse> decode_response(std::string_view stored);
// Whether a stored result claims to be such a text.
[[nodiscard]] bool is_stored_response(std::string_view stored) noexcept;

// A problem+json response (RFC 9457). `detail` is constant text: it is not escaped.
[[nodiscard]] Response problem(unsigned status, std::string_view code, std::string_view title,
                               std::string_view detail);

// Failures that are not a result: 408, 425, 429 and 5xx.
[[nodiscard]] bool is_retryable_status(unsigned status) noexcept;

}  // namespace idem::http
