// The answers that the guard gives by itself.
#include "problem.hpp"

#include <algorithm>
#include <array>

namespace idem::http {
namespace {

struct Answering {
  Reason reason;
  unsigned status;
  std::string_view code;
  std::string_view title;
  std::string_view detail;
};

constexpr std::array kAnswers{
    Answering{Reason::replayed, 200, "replayed", "Replayed", ""},
    Answering{Reason::already_done, 204, "already_done", "Already done", ""},
    Answering{Reason::failed, 409, "failed", "The first request failed",
              "It failed for good and is not tried again under this key."},
    Answering{Reason::key_missing, 400, "key_missing", "The idempotency key is missing",
              "This operation requires the header that carries an idempotency key."},
    Answering{Reason::key_malformed, 400, "key_malformed", "The idempotency key is malformed", ""},
    Answering{Reason::key_too_long, 400, "key_too_long", "The idempotency key is too long", ""},
    Answering{Reason::key_reused, 422, "key_reused", "The idempotency key was used before",
              "Another request was sent with this key; use a new key for a new request."},
    Answering{Reason::in_progress, 409, "in_progress", "The first request is still running",
              "Send the same request again later to get its result."},
    Answering{Reason::retry_later, 409, "retry_later", "The first request failed",
              "It may be tried again later with the same key."},
    Answering{Reason::in_doubt, 409, "in_doubt", "The first request's end is not known",
              "It may have taken effect and is not repeated until its end is found out."},
    Answering{Reason::attempts_exhausted, 409, "attempts_exhausted", "No attempt is left",
              "The request was tried as often as allowed."},
    Answering{Reason::store_unavailable, 503, "store_unavailable",
              "Idempotency keys cannot be checked now", ""},
    Answering{Reason::result_corrupt, 500, "result_corrupt", "The stored response is damaged",
              "The request was handled before; its response cannot be shown."},
    Answering{Reason::bad_scope, 500, "bad_scope", "The idempotency key cannot be scoped",
              "The application gave a tenant or business type that is not allowed."},
};

const Answering& answering(Reason reason) {
  return *std::find_if(kAnswers.begin(), kAnswers.end(),
                       [&](const Answering& one) { return one.reason == reason; });
}

}  // namespace

std::string_view to_string(Reason reason) noexcept { return answering(reason).code; }

bool is_retryable_status(unsigned status) noexcept {
  return status == 408 || status == 425 || status == 429 || status >= 500;
}

Response problem(unsigned status, std::string_view code, std::string_view title,
                 std::string_view detail) {
  std::string body = R"({"type":"urn:idem:problem:)";
  body.append(code).append(R"(","title":")").append(title);
  body.append(R"(","status":)").append(std::to_string(status));
  if (!detail.empty()) body.append(R"(,"detail":")").append(detail).append("\"");
  body.append(R"(,"code":")").append(code).append("\"}\n");
  return {status,
          {{"Content-Type", "application/problem+json"}, {"Cache-Control", "no-store"}},
          std::move(body)};
}

Answer answer_of(Reason reason, std::string_view detail) {
  const Answering& found = answering(reason);
  return {problem(found.status, found.code, found.title, detail.empty() ? found.detail : detail),
          reason,
          {}};
}

std::string retry_after_seconds(Micros left) {
  using std::chrono::seconds;
  return std::to_string(std::max(seconds(1), std::chrono::ceil<seconds>(left)).count());
}

}  // namespace idem::http
