#include "subjects.hpp"

#include "idem/open.hpp"
#include "idem/testing/reference_store.hpp"

namespace idem::linearizability {

std::vector<conformance::Subject> subjects() {
  auto all = conformance::backend_subjects(backends());
  all.insert(all.begin(), {"reference", [](Clock& clock) {
                             return result<Fixture>(Fixture{
                                 "", nullptr, std::make_shared<testing::ReferenceStore>(clock)});
                           }});
  return all;
}

}  // namespace idem::linearizability
