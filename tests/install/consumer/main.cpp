// The same payment twice, through an installed library.
#include <idem/open.hpp>
#include <idem/service.hpp>
#include <iostream>
#include <string>

int main() {
  idem::IdempotencyService service(idem::open("sqlite:payments.db").value());
  const idem::Request request{"pay-ORD-9", idem::Fingerprint::of_bytes("100")};
  int charged = 0;
  const auto charge = [&](idem::Attempt&) {
    ++charged;
    return std::string("charged ORD-9");
  };
  const auto first = service.execute(request, charge).value();
  const auto second = service.execute(request, charge).value();
  if (const auto* ran = std::get_if<idem::Executed>(&first)) std::cout << ran->result << '\n';
  if (const auto* replay = std::get_if<idem::Replay>(&second)) std::cout << replay->result << '\n';
  return charged == 1 ? 0 : 1;
}
