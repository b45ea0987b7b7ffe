// The verbs of a service through a connection that is cut: whichever byte was the last, nobody owns
// twice, nobody gets a wrong answer, and nothing stays in doubt once it is sent again with the same
// token.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "idem/service.hpp"
#include "idem/testing/cut_proxy.hpp"

namespace idem::testing {

enum class CutVerb : std::uint8_t { claim, complete, renew, fail, release };
inline constexpr std::array kCutVerbs{CutVerb::claim, CutVerb::complete, CutVerb::renew,
                                      CutVerb::fail, CutVerb::release};
[[nodiscard]] const char* to_string(CutVerb verb);

// Bytes from one cut to the next: IDEM_CUT_STRIDE=N, or `nightly` with IDEM_NIGHTLY=1, or `sample`.
[[nodiscard]] std::uint64_t cut_stride(std::uint64_t sample, std::uint64_t nightly);

class CutTrial {
 public:
  // `cut` goes through the proxy, `whole` does not; both to the same records. Each call of `cut`
  // may take `call_limit`, then it is repeated.
  CutTrial(CutProxy& proxy, StorePtr cut, StorePtr whole, Micros call_limit)
      : proxy_(proxy), call_limit_(call_limit), cut_(std::move(cut)), whole_(std::move(whole)) {}

  // Cuts the verb behind every `stride`th byte of its request and of its reply, in each way there
  // is. Fails the test where it did not end right; prints the counts behind `name`.
  void cut_all(CutVerb verb, std::uint64_t stride, const std::string& name);
  [[nodiscard]] int cuts() const { return cuts_; }

 private:
  // What a verb came to.
  enum class End : std::uint8_t { right, wrong, second_owner, unresolved };

  template <class Call>
  auto resolved(Call call);
  bool cut_at(CutVerb verb, const Cut& cut);
  void let_go();
  Lease claim_whole(const Request& request);
  End perform(CutVerb verb);
  End claim(const Request& request);
  End complete(const Request& request);
  End renew(const Request& request);
  End fail(const Request& request);
  End release(const Request& request);
  [[nodiscard]] int ended(End end) const { return ends_[static_cast<std::size_t>(end)]; }

  CutProxy& proxy_;
  const Micros call_limit_;
  IdempotencyService cut_, whole_;
  int number_ = 0, cuts_ = 0, resent_ = 0;
  std::array<int, 4> ends_{};
};

}  // namespace idem::testing
