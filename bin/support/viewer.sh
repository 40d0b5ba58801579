# The checks of the viewer's page, for bin/test. Run in $ROOT.

# Without Node the page's digests are still checked, by spec/formats/viewer_asset_spec.rb.
check_viewer() {
  if ! have npm || [ "$(node --version | sed 's/^v//; s/[.].*//')" -lt 20 ]; then
    echo "no Node 20 or newer: the viewer is not checked"
    return 0
  fi
  cd viewer && node_packages && npm run --silent check && node build.mjs --check || return 1
  if chromium_ready; then
    RPERF_CHROMIUM="${RPERF_CHROMIUM:-$(command -v chromium)}" npm run --silent test:page
  else
    echo "no Chromium: the page is not tested in a browser"
  fi
}

# bench_viewer: its figures against their targets. Those of a busy machine say
# nothing: so with --long only, or for CI, and with nothing beside it.
bench_viewer() {
  cd viewer && RPERF_CHROMIUM="${RPERF_CHROMIUM:-$(command -v chromium)}" npm run --silent bench
}

bench_viewer_wanted() {
  [ "$LONG" = yes ] || [ -n "${CI:-}" ] || return 1
  have npm && [ -d viewer/node_modules ] && { [ -n "${RPERF_CHROMIUM:-}" ] || have chromium; }
}

# As the lock file says; again only when that has changed.
node_packages() {
  cmp -s package-lock.json node_modules/.lock-installed && return 0
  mkdir -p "$CACHE"
  step "fetching the viewer's Node packages" npm ci --ignore-scripts --no-audit --no-fund &&
    cp package-lock.json node_modules/.lock-installed
}

chromium_ready() {
  [ -z "${RPERF_CHROMIUM:-}" ] && ! have chromium || return 0
  [ "$(id -u)" -eq 0 ] && is_debian && (install_system_packages chromium)
}
