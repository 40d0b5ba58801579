# The gems that the specs need: through Bundler where it reaches its source,
# else from Debian's packages, unpacked into the cache. Optional ones that can't
# be had are named, and the set-up goes on.
# Sets GEM_ROOT: the directory of Debian's packages, or "bundler"; and GEMS_WITHOUT:
# the groups of the Gemfile that Bundler could not install.

GEM_DEBS="ruby-rb-sys/trixie rake-compiler/trixie ruby-rspec/trixie ruby-rspec-core/trixie
  ruby-rspec-expectations/trixie ruby-rspec-mocks/trixie ruby-rspec-support/trixie ruby-diff-lcs/trixie"
RUBOCOP_DEBS="rubocop/trixie ruby-rubocop-ast/trixie ruby-whitequark-parser/trixie ruby-ast/trixie
  ruby-rainbow/trixie ruby-regexp-parser/trixie ruby-unicode-display-width/trixie ruby-progressbar/trixie
  ruby-parallel/trixie"
# A Rack app is a workload of the benchmarks; the middleware is tried with all of these.
RACK_DEBS="ruby-rack/trixie ruby-rackup/trixie ruby-webrick/trixie ruby-sinatra/trixie
  ruby-rack-protection/trixie ruby-rack-session/trixie ruby-mustermann/trixie ruby-tilt/trixie"
PUMA_DEBS="puma/trixie ruby-nio4r/trixie"
# What else they need comes with Ruby.
ACTIVE_JOB_DEBS="ruby-activejob/trixie ruby-activesupport/trixie ruby-globalid/trixie ruby-i18n/trixie
  ruby-tzinfo/trixie ruby-concurrent/trixie ruby-connection-pool/trixie"
# For an app without pages: see trim_rails.
RAILS_DEBS="ruby-railties/trixie ruby-actionpack/trixie ruby-actionview/trixie ruby-activesupport/trixie
  ruby-zeitwerk/trixie ruby-thor/trixie ruby-builder/trixie ruby-erubi/trixie ruby-useragent/trixie
  ruby-rack-test/trixie ruby-rack/trixie ruby-rack-session/trixie ruby-rackup/trixie ruby-i18n/trixie
  ruby-tzinfo/trixie ruby-concurrent/trixie ruby-connection-pool/trixie ruby-activerecord/trixie
  ruby-activemodel/trixie"
# Workloads of the benchmarks; what else they need comes with Ruby.
TEMPLATES_DEBS="ruby-kramdown/trixie ruby-rouge/trixie ruby-liquid/trixie"
SIDEKIQ_DEBS="ruby-sidekiq/trixie ruby-redis-client/trixie ruby-connection-pool/trixie ruby-concurrent/trixie"
# Down to the C library, because the system's may be older.
REDIS_DEBS="redis-server/trixie redis-tools/trixie libjemalloc2/trixie liblzf1/trixie libssl3t64/trixie
  libsystemd0/trixie libatomic1/trixie libstdc++6/trixie libgcc-s1/trixie libcap2/trixie libzstd1/trixie
  zlib1g/trixie libc6/trixie"
OPTIONAL_DEBS="$RUBOCOP_DEBS $RACK_DEBS $PUMA_DEBS $TEMPLATES_DEBS $ACTIVE_JOB_DEBS $RAILS_DEBS $SIDEKIQ_DEBS
  $REDIS_DEBS"
# In the Gemfile these groups are optional.
OPTIONAL_GROUPS="rack puma templates active_job rails sidekiq"

# Checkouts with different lists each have a directory of their own.
debian_gems_directory() {
  local sum
  sum=$(printf '%s' "$GEM_DEBS $OPTIONAL_DEBS" | cksum)
  printf '%s' "$CACHE/debian-gems-${sum%% *}"
}

setup_gems() {
  local root
  root=$(debian_gems_directory)
  GEMS_WITHOUT=''
  if [ -f "$root/complete" ]; then
    GEM_ROOT=$root
  elif bundle_gems; then
    GEM_ROOT=bundler
  elif debian_gems "$root"; then
    GEM_ROOT=$root
  else
    die "the gems can't be fetched: check the network, or run 'bundle install' where RubyGems is reachable"
  fi
  if [ "$GEM_ROOT" = bundler ]; then
    have redis-server || have valkey-server || missing "redis-server in PATH"
  else
    build_puma "$GEM_ROOT"
  fi
}

missing() { say "  no $1: what needs it will say so and go on"; }

bundle_gems() {
  local group kept
  say "fetching the gems with Bundler"
  bundle_install && return
  # A gem that can't be had, or built, must not cost the others.
  GEMS_WITHOUT=" $OPTIONAL_GROUPS "
  bundle_install || { GEMS_WITHOUT='' && return 1; }
  for group in $OPTIONAL_GROUPS; do
    kept=$GEMS_WITHOUT
    GEMS_WITHOUT=${kept/ $group / }
    bundle_install || { missing "$group" && GEMS_WITHOUT=$kept; }
  done
}

bundle_install() {
  printf '\n== bundle install, without: %s\n' "$GEMS_WITHOUT" >>"$LOG"
  (
    use_bundler
    BUNDLE_RETRY=0 BUNDLE_TIMEOUT=10 telling "fetching them" quietly "$RUBY" "${RUBY%/*}/bundle" install --quiet
  )
}

# debian_gems ROOT: fetched beside it and renamed, so that ROOT is whole or absent.
debian_gems() {
  local new="$1.partial"
  has_debian_suites || return 1
  say "Bundler can't reach its source: taking the gems from Debian's packages"
  private_apt || return 1
  rm -rf "$new"
  # All at once is much quicker, but takes nothing if one of them can't be had.
  # shellcheck disable=SC2086
  if step "fetching the gems and Redis" unpack_debs "$new" $GEM_DEBS $OPTIONAL_DEBS; then
    trim_rails "$new"
    step "fetching Puma's source" place_puma "$new" || no_puma "$new"
  else
    debian_gems_by_group "$new" || return 1
  fi
  # Debian patches this library, which is in no gem directory, to read its table
  # from /usr/share or, failing that, from a directory "data" beside lib/ruby.
  mkdir -p "$new/usr/lib/ruby"
  ln -sfn ../../share/ruby-unicode-display-width "$new/usr/lib/ruby/data"
  touch "$new/complete"
  rm -rf "$1"
  mv "$new" "$1"
}

# shellcheck disable=SC2086
debian_gems_by_group() {
  say "taking them group by group"
  rm -rf "$1"
  step "fetching the gems that everything needs" unpack_debs "$1" $GEM_DEBS || return 1
  step "fetching RuboCop" unpack_debs "$1" $RUBOCOP_DEBS || missing RuboCop
  step "fetching Rack" unpack_debs "$1" $RACK_DEBS || missing Rack
  step "fetching kramdown, Rouge and Liquid" unpack_debs "$1" $TEMPLATES_DEBS || missing "kramdown, Rouge and Liquid"
  step "fetching Active Job" unpack_debs "$1" $ACTIVE_JOB_DEBS || missing "Active Job"
  { step "fetching Rails" unpack_debs "$1" $RAILS_DEBS && trim_rails "$1"; } || missing Rails
  step "fetching Sidekiq" unpack_debs "$1" $SIDEKIQ_DEBS || missing Sidekiq
  step "fetching Redis" unpack_debs "$1" $REDIS_DEBS || missing Redis
  { step "fetching Puma" unpack_debs "$1" $PUMA_DEBS && step "fetching Puma's source" place_puma "$1"; } || no_puma "$1"
}

# trim_rails ROOT: for pages and for tests Rails needs Nokogiri, whose extension
# Debian builds for another Ruby. An app without pages works without.
trim_rails() {
  sed -i -E '/%q<(nokogiri|rails-dom-testing|rails-html-sanitizer)>/d' \
    "$1"/usr/share/rubygems-integration/all/specifications/action{pack,view}-*.gemspec
}

# place_puma ROOT: Debian builds Puma, and nio4r on which it rests, for another
# Ruby. Their Ruby files are moved to the other gems'. Puma's extension comes
# from its source; nio4r, whose source mirrors lack, has Ruby code to stand in.
place_puma() {
  local gems="$1/usr/share/rubygems-integration/all" debian source="$1/source"
  debian=$(echo "$1"/usr/lib/*/rubygems-integration/*)
  [ -d "$debian/gems" ] || return 1
  mkdir -p "$source" "$gems/extensions"
  (cd "$source" && apt_private apt-get source --download-only --tar-only -q puma/trixie) || return 1
  tar xf "$source"/puma_*.orig.tar.* -C "$debian"/gems/puma-* --strip-components=1 --wildcards '*/ext' || return 1
  sed -i '/ext\/nio4r\/extconf\.rb/d' "$debian"/specifications/nio4r-*.gemspec || return 1
  sed -i 's/^if NIO\.pure?$/if true/' "$debian"/gems/nio4r-*/lib/nio.rb || return 1
  mv "$debian"/gems/* "$gems/gems/" && mv "$debian"/specifications/* "$gems/specifications/" || return 1
  rm -rf "$source" "${debian%/*}"
}

# build_puma ROOT: its extension, where RubyGems looks for this Ruby's.
build_puma() {
  local gems="$1/usr/share/rubygems-integration/all" spec others
  others=$(find "$gems/extensions" -path '*/puma-*/gem.build_complete' 2>/dev/null)
  spec=$(find "$gems/specifications" -name 'puma-*.gemspec')
  [ -n "$spec" ] && "$RUBY" -e 'exit Gem::Specification.load(ARGV[0]).missing_extensions?' "$spec" || return 0
  step "building Puma's extension" env GEM_PATH="$gems:$GEM_DEFAULT_DIR" PUMA_DISABLE_SSL=1 "$RUBY" -e '
    # A copy there would be found by other Rubies too.
    Gem.configuration.install_extension_in_lib = false
    Gem::Specification.load(ARGV[0]).build_extensions
    Gem.refresh
    require "puma"
    require "puma/server"
    require "nio"' "$spec" && return
  # Rubies share the gems: what another one has built stays.
  [ -z "$others" ] || { say "Puma's extension can't be built for $RUBY: specs may fail; see $LOG" && return; }
  no_puma "$1"
}

# no_puma ROOT: RubyGems warns at every start about a gem whose extension is missing.
no_puma() {
  rm -f "$1"/usr/bin/puma* "$1"/usr/share/rubygems-integration/all/specifications/puma-*
  missing Puma
}

# use_gems: the environment in which Ruby finds the gems.
use_gems() {
  if [ "$GEM_ROOT" = bundler ]; then
    use_bundler
  else
    export GEM_PATH="$GEM_ROOT/usr/share/rubygems-integration/all:$GEM_DEFAULT_DIR"
  fi
}

use_bundler() {
  export BUNDLE_GEMFILE="$ROOT/Gemfile" BUNDLE_PATH="$CACHE/bundle" BUNDLE_SILENCE_ROOT_WARNING=1
  [ -z "$GEMS_WITHOUT" ] || export BUNDLE_WITHOUT="$GEMS_WITHOUT"
}

# write_gem_commands DIRECTORY: those that are there as commands, wherever they come
# from. Debian's own would start the system's Ruby.
write_gem_commands() {
  local name
  mkdir -p "$1"
  for name in rspec rubocop rackup puma sidekiq; do
    rm -f "$1/$name"
    if [ "$GEM_ROOT" = bundler ]; then
      bundler_command "$name" >"$1/$name"
    elif [ -f "$GEM_ROOT/usr/bin/$name" ]; then
      debian_command "$name" >"$1/$name"
    else
      continue
    fi
    chmod +x "$1/$name"
  done
  rm -f "$1/redis-server"
  [ -f "$GEM_ROOT/usr/bin/redis-server" ] || return 0
  redis_command >"$1/redis-server"
  chmod +x "$1/redis-server"
}

# The commands bring their environment along: specs start them with one of their own.
bundler_command() {
  echo '#!/usr/bin/env bash'
  (
    use_bundler
    printf 'export BUNDLE_GEMFILE=%q BUNDLE_PATH=%q BUNDLE_SILENCE_ROOT_WARNING=1 BUNDLE_WITHOUT=%q\n' \
      "$BUNDLE_GEMFILE" "$BUNDLE_PATH" "${BUNDLE_WITHOUT:-}"
  )
  printf 'exec %q %q exec %s "$@"\n' "$RUBY" "${RUBY%/*}/bundle" "$1"
}

debian_command() {
  echo '#!/usr/bin/env bash'
  printf 'export GEM_PATH=%q\n' "$GEM_ROOT/usr/share/rubygems-integration/all:$GEM_DEFAULT_DIR"
  # RuboCop's unicode/display_width is a Debian package but no gem.
  # shellcheck disable=SC2016
  [ "$1" != rubocop ] || printf 'export RUBYLIB=%q${RUBYLIB:+:$RUBYLIB}\n' "$GEM_ROOT/usr/lib/ruby/vendor_ruby"
  printf 'exec %q %q "$@"\n' "$RUBY" "$GEM_ROOT/usr/bin/$1"
}

# Started by the dynamic linker of its own C library.
redis_command() {
  local linker
  linker=$(echo "$GEM_ROOT"/usr/lib/*/ld*.so.[0-9])
  echo '#!/usr/bin/env bash'
  printf 'exec %q --library-path %q %q "$@"\n' "$linker" "${linker%/*}" "$GEM_ROOT/usr/bin/redis-server"
}
