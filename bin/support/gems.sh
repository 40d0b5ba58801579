# The gems that the specs need: through Bundler where it reaches its source,
# else from Debian's packages, unpacked into the cache.
# Sets GEM_ROOT: the folder of Debian's packages, or "bundler".

GEM_DEBS="ruby-rb-sys/trixie rake-compiler/trixie ruby-rspec/trixie ruby-rspec-core/trixie
  ruby-rspec-expectations/trixie ruby-rspec-mocks/trixie ruby-rspec-support/trixie ruby-diff-lcs/trixie"
RUBOCOP_DEBS="rubocop/trixie ruby-rubocop-ast/trixie ruby-whitequark-parser/trixie ruby-ast/trixie
  ruby-rainbow/trixie ruby-regexp-parser/trixie ruby-unicode-display-width/trixie ruby-progressbar/trixie
  ruby-parallel/trixie"
# A Rack app is a workload of the benchmarks; the middleware is tried with Sinatra too.
RACK_DEBS="ruby-rack/trixie ruby-rackup/trixie ruby-webrick/trixie ruby-sinatra/trixie
  ruby-rack-protection/trixie ruby-rack-session/trixie ruby-mustermann/trixie ruby-tilt/trixie"

# Checkouts with different lists each have a folder of their own.
debian_gems_folder() {
  local sum
  sum=$(printf '%s' "$GEM_DEBS$RUBOCOP_DEBS$RACK_DEBS" | cksum)
  printf '%s' "$CACHE/debian-gems-${sum%% *}"
}

setup_gems() {
  local root
  root=$(debian_gems_folder)
  if [ -f "$root/complete" ]; then
    GEM_ROOT=$root
  elif bundle_gems; then
    GEM_ROOT=bundler
  elif debian_gems "$root"; then
    GEM_ROOT=$root
  else
    die "the gems can't be fetched: check the network, or run 'bundle install' where RubyGems is reachable"
  fi
}

bundle() {
  BUNDLE_GEMFILE="$ROOT/Gemfile" BUNDLE_PATH="$CACHE/bundle" BUNDLE_SILENCE_ROOT_WARNING=1 \
    "$RUBY" "${RUBY%/*}/bundle" "$@"
}

bundle_gems() {
  say "fetching the gems with Bundler"
  printf '\n== bundle install\n' >>"$LOG"
  BUNDLE_RETRY=0 BUNDLE_TIMEOUT=10 bundle install --quiet >>"$LOG" 2>&1 </dev/null
}

# debian_gems ROOT: fetched beside it and renamed, so that ROOT is whole or absent.
debian_gems() {
  local new="$1.partial"
  is_debian || return 1
  say "Bundler can't reach its source: taking the gems from Debian's packages"
  private_apt || return 1
  rm -rf "$new"
  # shellcheck disable=SC2086
  step "fetching the gems" unpack_debs "$new" $GEM_DEBS || return 1
  # shellcheck disable=SC2086
  step "fetching RuboCop" unpack_debs "$new" $RUBOCOP_DEBS ||
    say "  no RuboCop: bin/test will say so and go on"
  # shellcheck disable=SC2086
  step "fetching Rack" unpack_debs "$new" $RACK_DEBS ||
    say "  no Rack: what needs it will say so and go on"
  # Debian patches this library, which is in no gem folder, to read its table
  # from /usr/share or, failing that, from a folder "data" beside lib/ruby.
  mkdir -p "$new/usr/lib/ruby"
  ln -sfn ../../share/ruby-unicode-display-width "$new/usr/lib/ruby/data"
  touch "$new/complete"
  rm -rf "$1"
  mv "$new" "$1"
}

# use_gems: the environment in which Ruby finds the gems.
use_gems() {
  if [ "$GEM_ROOT" = bundler ]; then
    export BUNDLE_GEMFILE="$ROOT/Gemfile" BUNDLE_PATH="$CACHE/bundle" BUNDLE_SILENCE_ROOT_WARNING=1
  else
    export GEM_PATH="$GEM_ROOT/usr/share/rubygems-integration/all:$GEM_DEFAULT_DIR"
  fi
}

# write_gem_commands FOLDER: rspec and rubocop (if there) as commands, wherever
# they come from. Debian's own would start the system's Ruby.
write_gem_commands() {
  local name
  mkdir -p "$1"
  for name in rspec rubocop; do
    rm -f "$1/$name"
    [ "$GEM_ROOT" = bundler ] || [ -f "$GEM_ROOT/usr/bin/$name" ] || continue
    {
      echo '#!/usr/bin/env bash'
      if [ "$GEM_ROOT" = bundler ]; then
        printf 'exec %q -S bundle exec %s "$@"\n' "$RUBY" "$name"
      else
        printf 'export GEM_PATH=%q\n' "$GEM_ROOT/usr/share/rubygems-integration/all:$GEM_DEFAULT_DIR"
        # RuboCop's unicode/display_width is a Debian package but no gem.
        # shellcheck disable=SC2016
        printf 'export RUBYLIB=%q${RUBYLIB:+:$RUBYLIB}\n' "$GEM_ROOT/usr/lib/ruby/vendor_ruby"
        printf 'exec %q %q "$@"\n' "$RUBY" "$GEM_ROOT/usr/bin/$name"
      fi
    } >"$1/$name"
    chmod +x "$1/$name"
  done
}
