// A key from business facts: three deliveries of one payment notice are one payment.
#include "idem/key.hpp"

#include <iostream>

int main() {
  // [key]
  const std::string key = idem::KeyBuilder("PAY").add("ORD-9").add(3).key();
  // [/key]
  std::cout << key << '\n';
  return key == "PAY|ORD-9|3" ? 0 : 1;
}
