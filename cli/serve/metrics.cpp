#include "metrics.hpp"

namespace idem::serve {
namespace {

constexpr std::array<std::string_view, 4> kTold{"executed", "passed", "answered", "refused"};
constexpr std::array<std::string_view, 5> kEnds{"answered", "not_sent", "cut", "timed_out",
                                                "too_large"};
constexpr std::array<std::string_view, 2> kLateEnds{"released", "given_up"};

void family(std::string& text, std::string_view name, std::string_view type,
            std::string_view help) {
  text.append("# HELP ").append(name).append(" ").append(help);
  text.append("\n# TYPE ").append(name).append(" ").append(type).append("\n");
}

void sample(std::string& text, std::string_view name, std::string_view label,
            std::string_view value, std::uint64_t number) {
  text.append(name);
  if (!label.empty()) text.append("{").append(label).append("=\"").append(value).append("\"}");
  text.append(" ").append(std::to_string(number)).append("\n");
}

}  // namespace

std::string Metrics::text(const http::Guard& guard) const {
  const Counters service = guard.service().counters();
  std::string text;
  family(text, "idem_serve_requests_total", "counter", "Requests by what the client was told");
  for (std::size_t i = 0; i < kTold.size(); ++i) {
    sample(text, "idem_serve_requests_total", "told", kTold[i], told_[i]);
  }
  family(text, "idem_serve_answers_total", "counter", "Answers given instead of the upstream's");
  for (std::size_t i = 0; i < reasons_.size(); ++i) {
    sample(text, "idem_serve_answers_total", "reason", to_string(static_cast<http::Reason>(i)),
           reasons_[i]);
  }
  family(text, "idem_serve_upstream_total", "counter", "Requests to the upstream by their end");
  for (std::size_t i = 0; i < kEnds.size(); ++i) {
    sample(text, "idem_serve_upstream_total", "end", kEnds[i], upstream_[i]);
  }
  family(text, "idem_serve_upstream_reused_total", "counter", "Upstream connections used again");
  sample(text, "idem_serve_upstream_reused_total", "", "", reused_);
  family(text, "idem_serve_waited_total", "counter", "Duplicates that waited for the first result");
  sample(text, "idem_serve_waited_total", "", "", waited_);
  family(text, "idem_serve_late_claims_total", "counter",
         "Claims of requests that were not forwarded, found in the store later");
  for (std::size_t i = 0; i < kLateEnds.size(); ++i) {
    sample(text, "idem_serve_late_claims_total", "end", kLateEnds[i], late_[i]);
  }
  family(text, "idem_serve_late_claims", "gauge", "Claims that are looked for now");
  sample(text, "idem_serve_late_claims", "", "", late_claims_);
  family(text, "idem_serve_unreported_results", "gauge",
         "First results that the store has not confirmed yet");
  sample(text, "idem_serve_unreported_results", "", "", guard.unreported());
  family(text, "idem_serve_connections", "gauge", "Client connections now");
  sample(text, "idem_serve_connections", "", "", static_cast<std::uint64_t>(connections_.load()));
  family(text, "idem_service_total", "counter", "What the verbs answered");
  for (std::size_t i = 0; i < static_cast<std::size_t>(Counter::kCount); ++i) {
    const auto counter = static_cast<Counter>(i);
    sample(text, "idem_service_total", "event", to_string(counter), service[counter]);
  }
  return text;
}

}  // namespace idem::serve
