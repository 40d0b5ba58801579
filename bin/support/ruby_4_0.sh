# Ruby 4.0, for bin/test: the specs and examples run on it after the Ruby that
# the set-up found. No Debian package has it; a folder "shared" beside the
# checkout may have an archive of one, which is unpacked into the cache.
#
# RPERF_RUBY_4_0 names a Ruby or another folder with such an archive.

# In it, the extension is built for the other Ruby, and this checkout's is left alone.
COPY_4_0="$ROOT/tmp/ruby-4.0"

# find_ruby_4_0: sets RUBY_4_0; if it is empty, WITHOUT_4_0 says why (or nothing,
# where a second run has no point).
find_ruby_4_0() {
  local given="${RPERF_RUBY_4_0:-$ROOT/../shared/ruby-4.0}"
  RUBY_4_0='' WITHOUT_4_0=''
  [ -z "${RPERF_RUBY:-}" ] && ! at_least_4_0 "$RUBY" || return 0
  if [ -n "${RPERF_RUBY_4_0:-}" ] && [ ! -d "$given" ]; then
    RUBY_4_0=$(fitting_ruby "$given") && at_least_4_0 "$RUBY_4_0" ||
      die "RPERF_RUBY_4_0=$given is no Ruby >= 4.0 with its headers"
    return
  fi
  unpacked_ruby_4_0 "$given"
}

at_least_4_0() { "$1" -e 'exit RUBY_VERSION.to_i >= 4'; }

unpacked_ruby_4_0() {
  local name archive folder
  name="ruby-4.0*-$(uname -m)-$(uname -s | tr '[:upper:]' '[:lower:]').tar.xz"
  archive=$(find "$1" -maxdepth 1 -name "$name" 2>/dev/null | sort -V | tail -n 1) || true
  if [ -z "$archive" ]; then
    [ -z "${RPERF_RUBY_4_0:-}" ] || die "RPERF_RUBY_4_0=$1 has no $name in it"
    WITHOUT_4_0="../shared/ruby-4.0 has no $name; RPERF_RUBY_4_0=/path/to/ruby names another"
    return
  fi
  # One level lower than the Rubies that the set-up looks for. An archive of the
  # same name may have changed.
  folder=$(basename "$archive" .tar.xz)-$(cksum <"$archive" | awk '{ print $1 }')
  folder="$CACHE/ruby-4.0/$folder"
  [ -d "$folder" ] || with_lock "$CACHE" unpack_ruby_4_0 "$archive" "$folder" || exit 1
  RUBY_4_0=$(fitting_ruby "$folder/bin/ruby") || die "the Ruby in $folder doesn't work"
}

# unpack_ruby_4_0 ARCHIVE FOLDER: renamed into place, so that FOLDER is whole or absent.
unpack_ruby_4_0() {
  local new="$2.partial"
  [ ! -d "$2" ] || return 0
  have xz || install_system_packages xz-utils
  rm -rf "$new"
  mkdir -p "$new"
  step "unpacking $1" tar -xJf "$1" -C "$new" --strip-components=1 || exit 1
  # It was built elsewhere; the packages that a build needs bring its libraries.
  # shellcheck disable=SC2086
  loads_its_libraries "$new/bin/ruby" || install_system_packages $RUBY_BUILD_PACKAGES
  loads_its_libraries "$new/bin/ruby" || die "the Ruby in $1 can't load its libraries on this system"
  mv "$new" "$2"
}

loads_its_libraries() { env -u RUBYOPT -u RUBYLIB "$1" -rfiddle -ropenssl -rpsych -rzlib -e 1 2>>"$LOG"; }

# copy_for_4_0: this checkout's files as they are now, beside what was built
# there from earlier ones. It is renamed into place.
copy_for_4_0() {
  local new="$COPY_4_0.new" extension="${EXTENSION#"$ROOT"/}" file
  rm -rf "$new"
  mkdir -p "$new"
  tar -C "$ROOT" --exclude=./.git --exclude=./target --exclude=./tmp --exclude=./pkg \
    --exclude="./$extension" --exclude=./Gemfile.lock -cf - . | tar -C "$new" -xf - || return 1
  for file in tmp "$extension"; do
    [ ! -e "$COPY_4_0/$file" ] || mv "$COPY_4_0/$file" "$new/$file" || return 1
  done
  rm -rf "$COPY_4_0"
  mv "$new" "$COPY_4_0"
}

# on_ruby_4_0 CMD...: in the copy.
on_ruby_4_0() {
  cd "$COPY_4_0" &&
    RPERF_RUBY="$RUBY_4_0" CARGO_TARGET_DIR="${CARGO_TARGET_DIR:-$ROOT/target}/ruby-4.0" bin/env "$@"
}

# Specs of commands, files and pages are the same on every Ruby: `--long` alone runs them twice.
rspec_on_ruby_4_0() {
  if [ "$LONG" = yes ]; then
    on_ruby_4_0 rspec
  else
    on_ruby_4_0 rspec --tag '~vm:false'
  fi
}
