# The gems that the build and the specs need: through Bundler where it reaches
# its source, else from Debian's packages, unpacked into the cache.
# Sets GEM_ROOT (empty: Bundler) and RUBOCOP (empty: none that fits).

GEM_DEBS="ruby-rb-sys/trixie rake-compiler/trixie ruby-rspec/trixie ruby-rspec-core/trixie
  ruby-rspec-expectations/trixie ruby-rspec-mocks/trixie ruby-rspec-support/trixie ruby-diff-lcs/trixie"
RUBOCOP_DEBS="rubocop/trixie ruby-rubocop-ast/trixie ruby-whitequark-parser/trixie ruby-ast/trixie
  ruby-rainbow/trixie ruby-regexp-parser/trixie ruby-unicode-display-width/trixie ruby-progressbar/trixie
  ruby-parallel/trixie"

setup_gems() {
  GEM_ROOT=$CACHE/debian-gems
  if [ -f "$GEM_ROOT/complete" ] && [ "$(cat "$GEM_ROOT/complete")" = "$GEM_DEBS$RUBOCOP_DEBS" ]; then
    return 0
  fi
  if bundle_gems; then
    GEM_ROOT=
  else
    debian_gems || die "no gem source can be reached and Debian's packages can't be used; run 'bundle install' where RubyGems is reachable"
  fi
}

bundle_gems() {
  say "looking for gems with Bundler"
  (cd "$ROOT" && BUNDLE_RETRY=0 BUNDLE_TIMEOUT=10 BUNDLE_SILENCE_ROOT_WARNING=1 \
    "$RUBY" -S bundle install --quiet >>"$LOG" 2>&1)
}

debian_gems() {
  say "Bundler can't reach its source: taking the gems from Debian's packages"
  private_apt || return 1
  rm -rf "$GEM_ROOT"
  # shellcheck disable=SC2086
  step "fetching the gems" unpack_debs "$GEM_ROOT" $GEM_DEBS || return 1
  # shellcheck disable=SC2086
  step "fetching RuboCop" unpack_debs "$GEM_ROOT" $RUBOCOP_DEBS ||
    say "  no RuboCop: 'bin/test' will say so and go on"
  printf '%s' "$GEM_DEBS$RUBOCOP_DEBS" >"$GEM_ROOT/complete"
}
