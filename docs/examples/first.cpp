// README's first ten lines, whole: a payment that is charged once however often it is asked for.
#include <iostream>
#include <string>

#include "idem/open.hpp"
#include "idem/service.hpp"

std::string charge(const std::string& order) { return "charged " + order; }

int main() {
  // [readme]
  auto store = idem::open("sqlite:payments.db").value();
  idem::IdempotencyService service(store);

  const std::string body = R"({"order":"ORD-9","amount":100})";
  const idem::Request request{"pay-ORD-9", idem::Fingerprint::of_bytes(body)};
  auto outcome = service.execute(request, [&](idem::Attempt&) { return charge("ORD-9"); });

  if (const auto* ran = std::get_if<idem::Executed>(&outcome.value())) std::cout << ran->result;
  if (const auto* replay = std::get_if<idem::Replay>(&outcome.value())) std::cout << replay->result;
  // [/readme]
  std::cout << '\n';
}
