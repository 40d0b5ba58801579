# Finds a Ruby >= 3.4 that can build extensions, or builds one from Debian's
# source package into the cache. Sets RUBY.

RUBY_BUILD_PACKAGES="gcc make libc6-dev xz-utils dpkg-dev libssl-dev libyaml-dev zlib1g-dev libffi-dev libgmp-dev"
# Bundled gems that the project has no use for and that take long to build.
RUBY_UNUSED_GEMS='rbs|typeprof|repl_type_completor|nkf|syslog|debug'

ruby_fits() {
  [ -x "$1" ] && "$1" -rrbconfig -e '
    exit 1 if (RUBY_VERSION.split(".").map(&:to_i) <=> [3, 4]) < 0 || RUBY_ENGINE != "ruby"
    exit File.exist?(File.join(RbConfig::CONFIG["rubyhdrdir"], "ruby.h"))' >/dev/null 2>&1
}

ruby_candidates() {
  [ -z "${RPERF_RUBY:-}" ] || echo "$RPERF_RUBY"
  type -ap ruby
  ls -d "$HOME"/.rbenv/versions/*/bin/ruby "$HOME"/.local/share/mise/installs/ruby/*/bin/ruby \
    "$HOME"/.asdf/installs/ruby/*/bin/ruby "$HOME"/.rubies/*/bin/ruby /opt/rubies/*/bin/ruby 2>/dev/null | sort -rV
  ls -d "$CACHE"/ruby-*/bin/ruby 2>/dev/null | sort -rV
}

find_ruby() {
  local candidate
  while read -r candidate; do
    if ruby_fits "$candidate"; then
      RUBY=$candidate
      return 0
    fi
  done < <(ruby_candidates)
  return 1
}

build_ruby() {
  local work="$CACHE/build" version prefix
  is_debian || die "needs Ruby >= 3.4 with its headers in PATH (or RPERF_RUBY=/path/to/ruby); install one with your system's packages, rbenv, mise or asdf"
  have rustc || die "needs Rust (rustc and cargo in PATH); see https://rustup.rs"
  say "no Ruby >= 3.4 found: building one, once (about 5 to 10 minutes; log: $LOG)"
  # shellcheck disable=SC2086
  install_system_packages $RUBY_BUILD_PACKAGES
  private_apt || die "can't read Debian's package lists; install Ruby >= 3.4 by hand and put it in PATH"
  rm -rf "$work"
  mkdir -p "$work/src"
  cd "$work" || exit 1
  say "fetching Ruby's source"
  version=$(download_source ruby3.4) ||
    die "no source package of Ruby 3.4 could be fetched; install Ruby >= 3.4 by hand and put it in PATH"
  version=${version%%-*}
  prefix="$CACHE/ruby-$version"
  tar xf ruby3.4_*.orig.tar.xz -C src --strip-components=1 || die "can't unpack Ruby's source"
  cd src || exit 1
  drop_unused_ruby_parts
  step "configuring Ruby $version" ./configure -q --prefix="$prefix.partial" --enable-shared --enable-yjit \
    --disable-install-doc --disable-install-static-library --enable-load-relative debugflags= || exit 1
  step "compiling Ruby $version" make -j"$(getconf _NPROCESSORS_ONLN)" V=0 || exit 1
  step "installing Ruby $version into $prefix" make install-nodoc V=0 || exit 1
  # The rename makes it visible only when it is whole; --enable-load-relative allows it.
  mv "$prefix.partial" "$prefix"
  cd "$ROOT" || exit 1
  rm -rf "$work"
  ruby_fits "$prefix/bin/ruby" || die "the Ruby built in $prefix doesn't work; see $LOG"
  RUBY="$prefix/bin/ruby"
}

drop_unused_ruby_parts() {
  local gem
  rm -rf ext/-test- spec/ruby/optional/capi/ext
  for gem in ${RUBY_UNUSED_GEMS//|/ }; do
    rm -rf .bundle/gems/"$gem"-[0-9]* .bundle/specifications/"$gem"-[0-9]*
  done
  sed -i -E "/^($RUBY_UNUSED_GEMS) /d" gems/bundled_gems
}
