# Debian's packages: what the system lacks, and a private view of newer suites
# from which Ruby's source and Ruby gems are taken without touching the system.

is_debian() { have apt-get && have dpkg; }

# has_debian_suites: whether packages of Debian's other suites run here. Systems that are based on Debian, such as
# Ubuntu, have apt-get, and other packages.
has_debian_suites() { is_debian && grep -qx 'ID="\{0,1\}debian"\{0,1\}' "$OS_RELEASE"; }

OS_RELEASE=/etc/os-release

# install_system_packages PKG...: those that are missing, with apt-get.
install_system_packages() {
  local missing as_root=(env)
  read -ra missing <<<"$(missing_packages "$@")"
  [ ${#missing[@]} -gt 0 ] || return 0
  may_install || die "needs root once; run: sudo apt-get install ${missing[*]}"
  [ "$(id -u)" -eq 0 ] || as_root=(sudo -n env)
  step "reading the package lists" "${as_root[@]}" apt-get -q update ||
    die "'apt-get update' failed; check the network, then run this again"
  step "installing ${missing[*]}" "${as_root[@]}" DEBIAN_FRONTEND=noninteractive \
    apt-get install -qy --no-install-recommends "${missing[@]}" ||
    die "check the network, or install these by hand, then run this again: ${missing[*]}"
}

# private_apt: lists of newer suites, kept in the cache; `apt_private CMD...`
# then uses them.
private_apt() {
  APT_STATE="$CACHE/apt"
  make_apt_state "$(apt_sources '' trixie unstable experimental)"
}

# private_sources: sources of the newest suite only, whose list takes a second to
# read where those of private_apt take a minute.
private_sources() {
  APT_STATE="$CACHE/apt-sources"
  make_apt_state "$(apt_sources '' experimental | grep '^deb-src')"
}

# apt_sources ARCHITECTURES SUITE...: the lines that name them, for binary and source
# packages. The mirror is the one that the system itself uses; a suite of security
# updates has one of its own.
apt_sources() {
  local mirror suite kind options=signed-by=/usr/share/keyrings/debian-archive-keyring.gpg
  mirror=$(system_mirror)
  [ -n "$mirror" ] || return 1
  [ -z "$1" ] || options="$options arch=$1"
  shift
  for suite in "$@"; do
    for kind in deb deb-src; do
      case $suite in
        *-security) printf '%s [%s] %s-security %s main\n' "$kind" "$options" "${mirror%/}" "$suite" ;;
        *) printf '%s [%s] %s %s main\n' "$kind" "$options" "$mirror" "$suite" ;;
      esac
    done
  done
}

# make_apt_state SOURCES [ARCHITECTURE...]: in $APT_STATE. Two set-ups may want the same.
make_apt_state() {
  has_debian_suites && [ -n "$1" ] || return 1
  with_lock "$APT_STATE" write_apt_state "$@"
}

# write_apt_state SOURCES [ARCHITECTURE...]: lists are read once a day: a day-old one still
# names what can be downloaded.
write_apt_state() {
  local sources=$1 architecture
  shift
  mkdir -p "$APT_STATE/lists/partial" "$APT_STATE/archives/partial"
  printf '%s\n' "$sources" >"$APT_STATE/sources.list"
  cat >"$APT_STATE/apt.conf" <<CONF
Dir::Etc::sourcelist "$APT_STATE/sources.list";
Dir::Etc::sourceparts "/dev/null";
Dir::State::Lists "$APT_STATE/lists";
Dir::Cache "$APT_STATE";
APT::Sandbox::User "$(id -un)";
APT::Update::Error-Mode "any";
Acquire::Languages "none";
Acquire::IndexTargets::deb::DEP-11::DefaultEnabled "false";
CONF
  for architecture in "$@"; do
    printf 'APT::Architectures:: "%s";\n' "$architecture" >>"$APT_STATE/apt.conf"
  done
  [ -z "$(find "$APT_STATE/updated" -mmin -1440 2>/dev/null)" ] || return 0
  say "reading the lists of newer Debian suites"
  telling "reading them" quietly apt_private apt-get -q update || return 1
  touch "$APT_STATE/updated"
}

apt_private() { APT_CONFIG="$APT_STATE/apt.conf" "$@"; }

system_mirror() {
  local file
  for file in /etc/apt/sources.list.d/*.sources; do
    [ -f "$file" ] && awk '$1 == "URIs:" && $2 !~ /security/ { print $2; exit }' "$file" | grep . && return
  done
  awk '$1 == "deb" { for (i = 2; i <= NF; i++) if ($i ~ /^https?:/ && $i !~ /security/) { print $i; exit } }' \
    /etc/apt/sources.list 2>/dev/null
}

# download_source PKG: the newest version whose files can really be fetched,
# into the current directory; prints the version. apt checks the hashes.
download_source() {
  local version
  for version in $(apt_private apt-cache showsrc "$1" 2>>"$LOG" | awk '/^Version:/ { print $2 }' | sort -rVu); do
    if apt_private apt-get source --download-only -q "$1=$version" >>"$LOG" 2>&1; then
      echo "$version"
      return 0
    fi
    rm -f "$1"_*
  done
  return 1
}

# unpack_debs ROOT PKG/SUITE...: downloads the packages and unpacks them below
# ROOT. Nothing is installed.
unpack_debs() {
  local root=$1 debs="$1.debs" deb
  shift
  rm -rf "$debs"
  mkdir -p "$root" "$debs"
  (cd "$debs" && apt_private apt-get download -q "$@") || return 1
  for deb in "$debs"/*.deb; do dpkg-deb -x "$deb" "$root" || return 1; done
  rm -rf "$debs"
}
