// The verbs one by one: claim, run, complete; and every answer that a duplicate may get.
#include <iostream>
#include <string>

#include "idem/open.hpp"
#include "idem/service.hpp"

using namespace std::chrono_literals;

// [overloaded]
template <class... Fs>
struct Overloaded : Fs... {
  using Fs::operator()...;
};
template <class... Fs>
Overloaded(Fs...) -> Overloaded<Fs...>;
// [/overloaded]

// [claim]
std::string answer(idem::IdempotencyService& service, const idem::Request& request) {
  idem::CallOptions options;
  options.policy.lease = 30s;
  auto outcome = service.claim(request, options);
  if (!outcome) return "not known: " + outcome.error().message;  // never run the business now
  return std::visit(
      Overloaded{
          [&](idem::Claimed& won) -> std::string {
            // The fence grows with every attempt: pass it to whatever can check it.
            const std::string result = "paid under fence " + std::to_string(won.lease.fence());
            auto done = service.complete(won.lease, result);
            if (!done) return "in doubt: complete again, never fail";
            return std::holds_alternative<idem::Completed>(*done) ? result : "somebody took over";
          },
          [](const idem::Replay& first) { return first.result; },
          [](const idem::InProgress& busy) {
            return "come back in " + std::to_string(busy.retry_after.count()) + " us";
          },
          [](const idem::Mismatch&) { return std::string("this key was another request's"); },
          [](const idem::Backoff&) { return std::string("failed, not to be tried yet"); },
          [](const idem::Failed& failed) { return "failed: " + failed.reason; },
          [](const idem::Exhausted&) { return std::string("tried too often"); },
          [](const idem::InDoubt&) { return std::string("a person must decide"); },
          [](const idem::AlreadyDone&) { return std::string("done before"); },
      },
      *outcome);
}
// [/claim]

int main() {
  idem::IdempotencyService service(idem::open("memory:").value());
  const idem::Request request{idem::Key("acme", "pay", "ORD-9"),
                              idem::Fingerprint::of_bytes("100 CNY")};
  const std::string first = answer(service, request);
  const std::string second = answer(service, request);
  std::cout << first << '\n' << second << '\n';
  return first == second ? 0 : 1;
}
