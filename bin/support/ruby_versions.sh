# Other Rubies, for bin/test: specs and examples run on them after the Ruby that
# the set-up found. No Debian package has them; a directory "shared" beside the
# checkout may have an archive of each, which is unpacked into the cache.
#
# RPERF_RUBY_4_0 names a Ruby 4.0, the directory that it is installed in, or another
# directory with such an archive.

# The versions that bin/test runs on, and gems are made for.
OTHER_RUBIES="3.4 4.0 4.1"

# is_unreleased RUBY: such a Ruby has no patch level yet, and may have known
# failures: see bin/support/known_failures.rb.
is_unreleased() { env -u RUBYOPT -u RUBYLIB "$1" -e 'exit RUBY_PATCHLEVEL < 0'; }

# version_variable PREFIX VERSION: the name of an environment variable, as RPERF_RUBY_4_0.
version_variable() { echo "$1_${2//./_}"; }

# find_other_ruby VERSION: sets OTHER_RUBY; if it is empty, WITHOUT says why (or
# nothing, where a second run has no point).
find_other_ruby() {
  local variable given
  variable=$(version_variable RPERF_RUBY "$1")
  given="${!variable:-$ROOT/../shared/ruby-$1}"
  OTHER_RUBY='' WITHOUT=''
  [ -z "${RPERF_RUBY:-}" ] && ! is_version "$RUBY" "$1" || return 0
  [ -z "${!variable:-}" ] || [ ! -x "$given/bin/ruby" ] || given="$given/bin/ruby"
  if [ -n "${!variable:-}" ] && [ ! -d "$given" ]; then
    OTHER_RUBY=$(fitting_ruby "$given") && is_version "$OTHER_RUBY" "$1" ||
      die "$variable=$given is no Ruby $1 with its headers"
    return
  fi
  find_archived_ruby "$1" "$variable" "$given"
}

# find_native_ruby VERSION: sets NATIVE_RUBY to the set-up's Ruby or another, or leaves it empty, and WITHOUT says why.
find_native_ruby() {
  NATIVE_RUBY=$RUBY
  ! is_version "$RUBY" "$1" || return 0
  # Where RPERF_RUBY is set, it looks for no others.
  RPERF_RUBY='' find_other_ruby "$1"
  NATIVE_RUBY=$OTHER_RUBY
}

is_version() { "$1" -e 'exit RUBY_VERSION.start_with?("#{ARGV[0]}.")' "$2"; }

# find_archived_ruby VERSION VARIABLE DIRECTORY: unpacks the archive that DIRECTORY has.
find_archived_ruby() {
  local name archive directory
  name="ruby-$1*-$(uname -m)-$(uname -s | tr '[:upper:]' '[:lower:]').tar.xz"
  archive=$(find "$3" -maxdepth 1 -name "$name" 2>/dev/null | sort -V | tail -n 1) || true
  if [ -z "$archive" ]; then
    [ -z "${!2:-}" ] || die "$2=$3 has no $name in it"
    WITHOUT="../shared/ruby-$1 has no $name; $2=/path/to/ruby names another"
    return
  fi
  # One level lower than the Rubies that the set-up looks for. An archive of the
  # same name may have changed.
  directory=$(basename "$archive" .tar.xz)-$(cksum <"$archive" | awk '{ print $1 }')
  directory="$CACHE/ruby-$1/$directory"
  if [ ! -d "$directory" ] && ! with_lock "$CACHE" unpack_ruby "$archive" "$directory"; then
    WITHOUT="the Ruby in $archive can't be unpacked, or can't load its libraries on this system (log: $LOG)"
    return
  fi
  OTHER_RUBY=$(fitting_ruby "$directory/bin/ruby") || WITHOUT="the Ruby in $directory doesn't work"
}

# unpack_ruby ARCHIVE DIRECTORY: renamed into place, so that DIRECTORY is whole or absent.
unpack_ruby() {
  local new="$2.partial"
  [ ! -d "$2" ] || return 0
  have xz || install_system_packages xz-utils
  rm -rf "$new"
  mkdir -p "$new"
  step "unpacking $1" tar -xJf "$1" -C "$new" --strip-components=1 || return 1
  # It was built elsewhere; the packages that a build needs bring its libraries.
  # shellcheck disable=SC2086
  loads_its_libraries "$new/bin/ruby" || install_system_packages $RUBY_BUILD_PACKAGES
  loads_its_libraries "$new/bin/ruby" || return 1
  mv "$new" "$2"
}

loads_its_libraries() { env -u RUBYOPT -u RUBYLIB "$1" -rfiddle -ropenssl -rpsych -rzlib -e 1 2>>"$LOG"; }

# copy_for VERSION: the directory in which the extension is built for that Ruby;
# this checkout's is left alone.
copy_for() { echo "$ROOT/tmp/ruby-$1"; }

# make_copy VERSION: this checkout's files as they are now, beside what was built
# there from earlier ones. It is renamed into place.
make_copy() {
  local copy new extension="${EXTENSION#"$ROOT"/}" file
  copy=$(copy_for "$1") new="$copy.new"
  rm -rf "$new"
  mkdir -p "$new"
  tar -C "$ROOT" --exclude=./.git --exclude=./target --exclude=./tmp --exclude=./pkg --exclude=./viewer/node_modules \
    --exclude="./$extension" --exclude=./Gemfile.lock -cf - . | tar -C "$new" -xf - || return 1
  for file in tmp "$extension"; do
    [ ! -e "$copy/$file" ] || mv "$copy/$file" "$new/$file" || return 1
  done
  rm -rf "$copy"
  mv "$new" "$copy"
}

# on_ruby VERSION CMD...: in its copy. Needs OTHER_RUBY. All of them share a target
# directory, in which only what depends on Ruby is built for each.
on_ruby() {
  local version=$1
  shift
  (
    cd "$(copy_for "$version")" &&
      export EXTENSION_SOURCES="$ROOT" EXTENSION_PROFILE=further RPERF_RUBY="$OTHER_RUBY" &&
      CARGO_TARGET_DIR="${CARGO_TARGET_DIR:-$ROOT/target}/further" bin/env "$@"
  )
}

# specs_on_ruby VERSION: specs of commands, files and pages are the same on every
# Ruby. `--long` alone runs them on each.
specs_on_ruby() {
  if [ "$LONG" = yes ]; then
    on_ruby "$1" ruby bin/support/specs.rb
  else
    on_ruby "$1" ruby bin/support/specs.rb --vm
  fi
}

# check_other_ruby VERSION: all checks on it, or a line that says why there are none.
check_other_ruby() {
  local title source
  title="Ruby $1"
  find_other_ruby "$1"
  if [ -z "$OTHER_RUBY" ]; then
    [ -z "$WITHOUT" ] || printf '\nnot tested on %s: %s\n' "$title" "$WITHOUT"
    return 0
  fi
  if is_unreleased "$OTHER_RUBY"; then
    title="$title-dev"
    check "$title" compare_with_known_failures "$1"
  else
    check "copy for $title" make_copy "$1"
    check "RSpec on $title" specs_on_ruby "$1"
    check "examples on $title" on_ruby "$1" bash -c ". bin/support/checks.sh && run_examples"
  fi
  source=$(version_variable RPERF_RUBY_SOURCE "$1")
  if [ "$LONG" = yes ] && [ -n "${!source:-}" ]; then
    check "$title's test of its hooks" on_ruby "$1" ruby bin/support/ruby_tests/trace_func.rb "${!source}"
  fi
}

# compare_with_known_failures VERSION: what fails on a Ruby that isn't released is
# on a list, and only a change of what fails is a failure here.
compare_with_known_failures() {
  local results status=0
  # Known failures would be among them.
  unset RPERF_FAILURES
  results="$(copy_for "$1")/tmp/results.tsv"
  make_copy "$1" || return 1
  rm -f "$results"
  on_ruby "$1" true || status=$?
  if [ "$status" -eq 0 ]; then
    # Their results are compared below, if they have run to their end.
    specs_on_ruby "$1" || [ -f "$results" ] || return 1
    on_ruby "$1" bash -c ". bin/support/checks.sh && run_examples tmp/results.tsv" || true
  elif [ "$status" -eq "$EXTENSION_UNBUILT" ]; then
    printf 'failed\text/rperf\t\n' >"$results"
  else
    return 1
  fi
  "$RUBY" bin/support/known_failures.rb "spec/known_failures/$1-dev.yml" "$results"
}
