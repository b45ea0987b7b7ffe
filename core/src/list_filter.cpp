#include "idem/list_filter.hpp"

namespace idem {

bool selects(const ListQuery& query, const KeyRef& key, const Record& record, Time now) {
  if (record.expired(now)) return false;
  if (query.status && record.status != *query.status) return false;
  if (query.tenant && key.tenant != *query.tenant) return false;
  if (query.biz_type && key.biz_type != *query.biz_type) return false;
  if (!query.lapsed_for) return true;
  return record.status == Status::processing && now >= record.lease_until &&
         now - record.update_time >= *query.lapsed_for;
}

}  // namespace idem
