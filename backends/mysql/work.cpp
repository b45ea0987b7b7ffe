#include "work.hpp"

namespace idem::mysql {

Fault not_applied(Fault fault) {
  fault.kind = Fault::Kind::refused;
  if (fault.error.code == errc::unknown) fault.error.code = errc::unavailable;
  return fault;
}

Fault no_meta_row() {
  return {Fault::Kind::refused, false, false,
          fail(errc::cannot_open, "the meta table has lost its row: open the store again")};
}

bool fits(const Work& work, const Draft& draft, Answer& answer) {
  if (draft.result.size() <= work.result_bytes_max) return true;
  answer_failed(
      answer, fail(errc::too_large, "the result is over " + std::to_string(work.result_bytes_max) +
                                        " bytes, the most this server takes"));
  return false;
}

std::vector<Effect> effects(Session& session, Exchange& exchange, std::size_t first,
                            std::size_t count, std::string_view what) {
  std::vector<Effect> all(count);
  for (std::size_t i = 0; i < count; ++i) {
    all[i].fault = exchange.fault(first + i, what);
    const Fault::Kind kind = all[i].fault.kind;
    const bool undone =
        kind == Fault::Kind::again || (kind == Fault::Kind::waited && session.rolls_back_on_wait());
    for (std::size_t j = 0; undone && j < i; ++j) {
      if (all[j].took == Took::yes) all[j].took = Took::again;
    }
    if (kind == Fault::Kind::none) {
      all[i].took = Took::yes;
    } else if (kind != Fault::Kind::again) {
      all[i].took = Took::no;
    }
  }
  return all;
}

}  // namespace idem::mysql
