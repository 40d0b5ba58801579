# Finds a Ruby >= 3.4 that can build extensions, or builds one from Debian's
# source package into the cache. Sets RUBY.

RUBY_BUILD_PACKAGES="gcc make libc6-dev xz-utils dpkg-dev libssl-dev libyaml-dev zlib1g-dev libffi-dev libgmp-dev"
# Bundled gems that the project has no use for and that take long to build.
RUBY_UNUSED_GEMS='rbs|typeprof|repl_type_completor|nkf|syslog|debug'

setup_ruby() { find_ruby || build_ruby; }

# fitting_ruby CANDIDATE: prints the path of the Ruby behind it (a version
# manager's shim names another file) if it fits.
fitting_ruby() {
  [ -x "$1" ] && env -u RUBYOPT -u RUBYLIB "$1" -rrbconfig -e '
    exit 1 if RUBY_ENGINE != "ruby" || (RUBY_VERSION.split(".").map(&:to_i) <=> [3, 4]) < 0
    exit 1 unless File.exist?(File.join(RbConfig::CONFIG["rubyhdrdir"], "ruby.h"))
    puts RbConfig.ruby' 2>/dev/null
}

ruby_candidates() {
  local directory
  [ -z "${RPERF_RUBY:-}" ] || echo "$RPERF_RUBY"
  type -ap ruby || true
  for directory in "$USER_HOME/.rbenv/versions" "$USER_HOME/.local/share/mise/installs/ruby" \
    "$USER_HOME/.asdf/installs/ruby" "$USER_HOME/.rubies" /opt/rubies "$CACHE"; do
    # The newest of each first; *.partial is a build that was cut short.
    find "$directory" -maxdepth 1 -mindepth 1 ! -name '*.partial' 2>/dev/null | sort -rV | sed 's|$|/bin/ruby|' || true
  done
  # That of the last set-up, which may have had another cache.
  [ -z "$RECORDED_RUBY" ] || echo "$RECORDED_RUBY"
}

find_ruby() {
  local candidate
  if [ -n "${RPERF_RUBY:-}" ] && [ -z "$(fitting_ruby "$RPERF_RUBY")" ]; then
    die "RPERF_RUBY=$RPERF_RUBY is no Ruby >= 3.4 with its headers"
  fi
  while read -r candidate; do
    RUBY=$(fitting_ruby "$candidate") || continue
    [ -z "$RUBY" ] || return 0
  done < <(ruby_candidates)
  return 1
}

build_ruby() {
  local work="$CACHE/build.$$" version prefix
  is_debian || die "needs Ruby >= 3.4 with its headers in PATH (or RPERF_RUBY=/path/to/ruby); install one with your system's packages, rbenv, mise or asdf"
  check_rust # YJIT is built with it
  say "no Ruby >= 3.4 found, neither in PATH nor of a version manager nor in $CACHE"
  say "building one there, once; this takes 5 to 10 minutes (log: $LOG; RPERF_RUBY=/path/to/ruby chooses another)"
  # shellcheck disable=SC2086
  install_system_packages $RUBY_BUILD_PACKAGES
  private_apt || die "can't read Debian's package lists: check the network, or install Ruby >= 3.4 by hand and put it in PATH"
  # A build that was killed may have left processes: never reuse its directory.
  rm -rf "$CACHE"/build.* "$CACHE"/ruby-*.partial
  mkdir -p "$work/src"
  cd "$work" || exit 1
  say "fetching Ruby's source"
  version=$(telling "fetching it" download_source ruby3.4) ||
    die "no source package of Ruby 3.4 could be fetched: check the network, or install Ruby >= 3.4 by hand and put it in PATH"
  version=${version%%-*}
  prefix="$CACHE/ruby-$version"
  tar xf ruby3.4_*.orig.tar.xz -C src --strip-components=1 || die "can't unpack Ruby's source; see $LOG"
  cd src || exit 1
  drop_unused_ruby_parts
  step "configuring Ruby $version" ./configure -q --prefix="$prefix.partial" --enable-shared --enable-yjit \
    --disable-install-doc --disable-install-static-library --enable-load-relative debugflags= || exit 1
  step "compiling Ruby $version" make -j"$(getconf _NPROCESSORS_ONLN)" V=0 || exit 1
  step "installing Ruby $version into $prefix" make install-nodoc V=0 || exit 1
  # The rename makes it visible only when it is whole; --enable-load-relative allows it.
  rm -rf "$prefix"
  mv "$prefix.partial" "$prefix" || exit 1
  cd "$ROOT" || exit 1
  rm -rf "$work"
  RUBY=$(fitting_ruby "$prefix/bin/ruby") || die "the Ruby built in $prefix doesn't work; see $LOG"
}

drop_unused_ruby_parts() {
  local gem
  rm -rf ext/-test- spec/ruby/optional/capi/ext
  for gem in ${RUBY_UNUSED_GEMS//|/ }; do
    rm -rf .bundle/gems/"$gem"-[0-9]* .bundle/specifications/"$gem"-[0-9]*
  done
  sed -i -E "/^($RUBY_UNUSED_GEMS) /d" gems/bundled_gems
}
