// Boost.MySQL's compiled part: the one place where it is compiled.
#include <boost/mysql/src.hpp>
