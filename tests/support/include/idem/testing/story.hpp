// What a store holds for one key, in one line for the message of a failed expectation:
//
//   EXPECT_THAT(service.claim(request), IsClaimed()) << story(service, request.key);
//
//   k1: processing, attempt 1, lease left 4m30s
//   k1: success, attempt 2, result "ok:100"
#pragma once

#include <string>

#include "idem/testing/describe.hpp"

namespace idem::testing {

[[nodiscard]] inline std::string story(IdempotencyService& service, const Key& key) {
  std::string text = key.biz_type.empty() && key.tenant.empty() ? key.key : describe(key);
  const auto found = service.get(key);
  if (!found) return text + ": " + describe(found.error());
  if (!*found) return text + ": absent";
  const Record& record = (*found)->record;
  text += ": " + std::string(to_string(record.status));
  if (record.status == Status::failed) text += " " + std::string(to_string(record.fail_kind));
  text += ", attempt " + std::to_string(record.attempt);
  switch (record.status) {
    case Status::processing: {
      const Micros left = record.lease_until - (*found)->now;
      return text + (left > Micros(0) ? ", lease left " : ", lease over for ") +
             length(left > Micros(0) ? left : -left);
    }
    case Status::success:
      return text + ", result " + quote(record.result);
    case Status::failed:
      return text + ", reason " + quote(record.result);
  }
  return text;
}

}  // namespace idem::testing
