// The suite over every variant of every backend of this build.
#include "idem/conformance.hpp"
#include "idem/open.hpp"

IDEM_CONFORMANCE(Backends, backend_subjects(backends()));
