# cross_copy.sh CMD...: runs CMD, as bin/env does, in a checkout whose extension was built elsewhere for
# the Ruby that RPERF_RUBY names. Started by cross_specs.sh.
set -euo pipefail
ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
# shellcheck source=bin/support/setup.sh
. "$ROOT/bin/support/setup.sh"
setup ruby gems
ruby_identity >"$EXTENSION_RUBY"
cd "$ROOT"
exec bin/env "$@"
