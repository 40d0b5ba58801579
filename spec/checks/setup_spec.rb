# frozen_string_literal: true

require "etc"
require "fileutils"

# bin/support/*.sh, which set up what a checkout needs, in a project of the example's own. Nothing is built.
RSpec.describe "the set-up of a checkout" do
  support = File.join(Commands::ROOT, "bin/support")
  build = "missing_packages() { echo \"$*\"; }\ninstall_system_packages() { exit 7; }\n" \
          "is_debian() { :; }\nhas_debian_suites() { :; }\nrust_obstacle() { :; }\n"

  # Whatever else this machine has: only what lies in the example's directory is a candidate.
  def alone
    "eval \"all_$(declare -f ruby_candidates)\"\n" \
      "ruby_candidates() { all_ruby_candidates | grep \"^#{directory}\" || true; }\n"
  end

  before do
    FileUtils.mkdir_p(path_to("project/bin/support"))
    FileUtils.cp(Dir["#{support}/*.sh"], path_to("project/bin/support"))
    FileUtils.mkdir_p([path_to("project/tmp"), path_to("home")])
  end

  # Runs the lines where the set-up has been loaded, as bin/rperf loads it. No Ruby is in PATH.
  def set_up(lines, env = {})
    head = "set -euo pipefail\nROOT=#{path_to("project").shellescape}\n. \"$ROOT/bin/support/setup.sh\"\n"
    clean = { "PATH" => "/usr/bin:/bin", "HOME" => path_to("home") }
    others = %w[XDG_CACHE_HOME XDG_DATA_HOME RBENV_ROOT ASDF_DATA_DIR MISE_DATA_DIR]
    clean.merge!(others.to_h { |variable| [variable, nil] })
    run("bash", "-c", head + lines, env: clean.merge(env))
  end

  it "has its cache in the user's directory, also where HOME is unset or empty" do
    expect(set_up('echo "$CACHE"').stdout).to eq("#{path_to("home")}/.cache/rperf\n")
    own = File.join(Etc.getpwuid.dir, ".cache/rperf")
    [nil, ""].each { |home| expect(set_up('echo "$CACHE"', "HOME" => home).stdout).to eq("#{own}\n") }
  end

  it "finds the Ruby of the last set-up where HOME is another one, and builds none" do
    first = set_up("setup ruby; echo \"$RUBY\"", "RPERF_RUBY" => ruby)
    expect([first.stdout, first.stderr]).to eq(["#{ruby}\n", ""])
    FileUtils.mkdir_p(path_to("other"))
    second = set_up("#{build}setup ruby; echo \"$RUBY\"; ruby_candidates | tail -n 1", "HOME" => path_to("other"))
    expect([second.stderr, second.stdout.lines(chomp: true).last]).to eq(["", ruby])
  end

  it "says before it builds a Ruby where it has looked, how long that takes, and what else there is" do
    outcome = set_up("#{build}find_ruby() { return 1; }\nsetup ruby")
    expect(outcome.status.exitstatus).to eq(1)
    expect(outcome.stdout).to be_empty
    expect(outcome.stderr.lines).to match(
      [/no Ruby >= 3.4 found, neither in PATH nor .* nor in #{Regexp.escape(path_to("home"))}/,
       /once; this takes 5 to 10 minutes \(log: .*; RPERF_RUBY=.* chooses another\)/]
    )
  end

  # A Ruby as the set-up asks it: of a version, with headers or without.
  def install_ruby(path, headers: true)
    FileUtils.mkdir_p(File.dirname(path_to(path)))
    write_file(path, headers ? "#!/bin/sh\nexec '#{ruby}' \"$@\"\n" : "#!/bin/sh\nexit 4\n")
    File.chmod(0o755, path_to(path))
  end

  # Where the version managers keep theirs, below HOME or where a variable says.
  { "rbenv" => ["home/.rbenv/versions/3.4.1/bin/ruby"], "asdf" => ["home/.asdf/installs/ruby/3.4.1/bin/ruby"],
    "mise" => ["home/.local/share/mise/installs/ruby/3.4.1/bin/ruby"], "chruby" => ["home/.rubies/ruby-3.4.1/bin/ruby"],
    "rvm" => ["home/.rvm/rubies/ruby-3.4.1/bin/ruby"], "rbenv elsewhere" => ["a/versions/3.4.1/bin/ruby", "RBENV_ROOT"],
    "asdf elsewhere" => ["a/installs/ruby/3.4.1/bin/ruby", "ASDF_DATA_DIR"],
    "mise elsewhere" => ["a/installs/ruby/3.4.1/bin/ruby", "MISE_DATA_DIR"],
    "the cache" => ["home/.cache/rperf/ruby-3.4.1/bin/ruby"] }.each do |name, (path, variable)|
    it "finds a Ruby of #{name}, the newest first" do
      install_ruby(path)
      install_ruby(path.sub("3.4.1", "3.4.10"))
      env = variable ? { variable => path_to("a") } : {}
      found = set_up("ruby_candidates", env.merge("PATH" => "/usr/bin:/bin")).stdout.lines(chomp: true)
      ours = found.select { |line| line.start_with?(directory) }
      expect(ours.first(2)).to eq([path_to(path.sub("3.4.1", "3.4.10")), path_to(path)])
      expect(set_up("#{build}#{alone}setup ruby; echo \"$RUBY\"", env).stdout).to eq("#{ruby}\n")
    end
  end

  it "finds a Ruby by the name that a distribution gives it in PATH, and one of ruby-install" do
    %w[ruby3.4 ruby4.0 rubyx ruby34].each { |name| install_ruby("bin/#{name}") }
    path = { "PATH" => "#{path_to("none")}:#{path_to("bin")}:/usr/bin:/bin" }
    found = set_up("ruby_candidates", path).stdout.lines(chomp: true)
    ours = found.select { |line| line.start_with?(directory) }.map { |line| File.basename(line) }
    expect(ours).to eq(%w[ruby4.0 ruby3.4])
    expect(set_up("#{build}setup ruby; echo \"$RUBY\"", path).stdout).to eq("#{ruby}\n")
    expect(set_up("ruby_directories").stdout).to include("\n/opt/rubies\n")
  end

  it "names the package with the headers of a Ruby that lacks them" do
    install_ruby("bin/ruby3.4", headers: false)
    outcome = set_up("#{build}#{alone}setup ruby", "PATH" => "#{path_to("bin")}:/usr/bin:/bin")
    expect(outcome.stderr.lines(chomp: true)).to include(
      "rperf setup: #{path_to("bin/ruby3.4")} would do, but its headers are missing; to have them: " \
      "sudo apt-get install ruby3.4-dev"
    )
  end

  describe "without root" do
    # Of Debian's packages, those named are installed.
    def without_root(installed, more = "")
      set_up(<<~SH)
        is_debian() { :; }
        may_install() { return 1; }
        have_libclang() { return 1; }
        find_ruby() { return 1; }
        rust_obstacle() { :; }
        dpkg-query() { case " #{installed} " in *" ${!#} "*) echo 'install ok installed' ;; esac; }
        with_lock() { shift; "$@"; }
        build_ruby() { echo "builds it"; exit 9; }
        #{more}
        setup ruby extension
      SH
    end

    it "names all packages that are missing in one line, with the command" do
      outcome = without_root("gcc make xz-utils")
      expect([outcome.status.exitstatus, outcome.stdout]).to eq([1, ""])
      expect(outcome.stderr.lines(chomp: true).last)
        .to eq("rperf setup: needs root once; run: sudo apt-get install libc6-dev dpkg-dev libssl-dev libyaml-dev " \
               "zlib1g-dev libffi-dev libgmp-dev libclang-dev")
    end

    it "names a missing Rust in the same line" do
      outcome = without_root("gcc", "RUBY_BUILD_PACKAGES='gcc make'\nrust_obstacle() { echo 'needs Rust'; }")
      expect(outcome.stderr.lines(chomp: true).last)
        .to eq("rperf setup: needs Rust; and needs root once: sudo apt-get install make libclang-dev")
    end

    it "goes on where none is missing" do
      outcome = without_root("gcc make", "RUBY_BUILD_PACKAGES='gcc make'\nhave_libclang() { :; }")
      expect([outcome.status.exitstatus, outcome.stdout]).to eq([9, "builds it\n"])
    end
  end

  it "is content with a quick build for bin/rperf only, and only where nothing better is built" do
    profiles = "build_profile; QUICK_BUILD=yes; build_profile; EXTENSION_PROFILE=further; build_profile"
    expect(set_up(profiles).stdout).to eq("checkout\nquick\nfurther\n")
    FileUtils.mkdir_p(path_to("project/target/checkout"))
    expect(set_up(profiles).stdout).to eq("checkout\ncheckout\nfurther\n")
    built = <<~SH
      mkdir -p "${COMMAND%/*}" "$ROOT"/{crates,ext,docs/guide}
      touch "$ROOT"/Cargo.{toml,lock} "$COMMAND" "$EXTENSION" "$QUICKLY_BUILT"
      RUBY=#{ruby.shellescape}; ruby_identity >"$EXTENSION_RUBY"
      (QUICK_BUILD=yes; is_built && echo built); is_built || echo stale; rm "$QUICKLY_BUILT"; is_built && echo built
    SH
    expect(set_up(built).stdout).to eq("built\nstale\nbuilt\n")
  end

  it "says of a step that takes long that it goes on, and waits for nothing when it has ended" do
    steps = "TELL_EVERY=1 LOG=$PWD/log\nstep 'taking a nap' sleep 2.5\nTELL_EVERY=50\nstep 'failing' false || echo $?"
    began = now
    outcome = set_up(steps)
    expect(now - began).to be < 40
    expect(outcome.stdout).to eq("1\n")
    lines = outcome.stderr.lines(chomp: true).grep_v(/\A(== .*)?\z/)
    expect(lines.first).to eq("rperf setup: taking a nap")
    expect(lines.grep(/still/)).to all(match(%r{\Arperf setup:   still taking a nap \(\d s so far; log: .*/log\)\z}))
    expect(lines.grep(/still/).size).to be_between(1, 20)
    expect(lines.last(2)).to match(["rperf setup: failing", /\Arperf setup:   failed; /])
  end

  # What the function says of a system that these make of this one.
  def expect_refusals(system, here, said)
    load = ". \"$ROOT/bin/support/cross.sh\"; . \"$ROOT/bin/support/#{system}.sh\""
    said.each do |obstacle, line|
      outcome = set_up("#{load}\n#{here}#{obstacle}\n#{system}_refused")
      expect([outcome.stdout, outcome.stderr]).to match([line, ""])
    end
  end

  it "says in one line why arm64 can't be emulated" do
    said = {
      "uname() { echo Linux aarch64; }" => /\Aemulates arm64 on Linux on x86-64 only, and this is Linux aarch64\n\z/,
      "has_debian_suites() { return 1; }" => /\Atakes libraries for arm64 from Debian's packages, .*\n\z/,
      "unshare() { return 1; }" => /\Aneeds user namespaces, .*\n\z/,
      "unshare() { [[ $* != *binfmt* ]]; }" => /\Aneeds binfmt_misc in user namespaces: Linux 6\.7 .*\n\z/,
      'CROSS="/a:cache"' => %r{\Acan't work in a cache whose path has a blank, a colon or a comma: /a:cache\n\z},
      ":" => ""
    }
    expect_refusals("arm64", "uname() { echo Linux x86_64; }\nhas_debian_suites() { :; }\nunshare() { :; }\n", said)
  end

  it "says in one line why nothing is built for musl" do
    said = {
      "uname() { echo Darwin arm64; }" => /\Abuilds for musl on Linux on x86-64 only, and this is Darwin arm64\n\z/,
      "has_debian_suites() { return 1; }" => /\Atakes musl from Debian's packages, .*\n\z/,
      'CROSS="/a cache"' => %r{\Acan't build in a cache whose path has a blank: /a cache\n\z},
      ":" => ""
    }
    expect_refusals("musl", "uname() { echo Linux x86_64; }\nhas_debian_suites() { :; }\n", said)
  end

  it "takes Debian's suites for Debian alone, and not for what is based on it" do
    answers = { "ID=debian\nNAME=x\n" => "yes", "ID=\"debian\"\n" => "yes", "ID=ubuntu\nID_LIKE=debian\n" => "no" }
    answers.each do |text, answer|
      write_file("os-release", text)
      outcome = set_up(<<~SH)
        is_debian() { :; }
        OS_RELEASE=#{path_to("os-release")}
        if has_debian_suites; then echo yes; else echo no; fi
      SH
      expect([outcome.stdout, outcome.stderr]).to eq(["#{answer}\n", ""])
    end
  end

  describe "a Ruby for another system" do
    def find_cross_ruby(version)
      set_up(<<~SH)
        . "$ROOT/bin/support/cross.sh"; . "$ROOT/bin/support/cross_ruby.sh"
        CROSS=#{path_to("cross")}
        if find_cross_ruby arm64 #{version}; then echo "$CROSS_RUBY"; else echo "none, and not '$CROSS_RUBY'"; fi
      SH
    end

    it "is the newest of its version in the cache, and never the system's" do
      FileUtils.mkdir_p(path_to("cross"))
      expect(find_cross_ruby("3.4").stdout).to eq("none, and not ''\n")
      %w[3.4.5-arm64 3.4.10-arm64 3.4.11-musl 4.0.4-arm64].each do |name|
        FileUtils.mkdir_p(path_to("cross/ruby-#{name}/bin"))
        File.write(path_to("cross/ruby-#{name}/bin/ruby"), "", perm: 0o755)
      end
      expect(find_cross_ruby("3.4").stdout).to eq("#{path_to("cross/ruby-3.4.10-arm64/bin/ruby")}\n")
    end

    it "that can't be built is a check that has failed" do
      File.write(path_to("project/bin/support/other.sh"), "other_refused() { :; }\nsetup_other() { :; }\n")
      outcome = set_up(<<~SH)
        for part in cross cross_ruby ruby_versions checks cross_specs; do . "$ROOT/bin/support/$part.sh"; done
        find_other_ruby() { OTHER_RUBY='' WITHOUT="none, as RPERF_RUBY is '$RPERF_RUBY'"; }
        is_version() { return 1; }
        setup() { :; }; load_stamp() { :; }; check_needs() { :; }; check_rust() { :; }
        RUBY=/no/ruby RPERF_RUBY=/no/ruby
        test_on other
        printf '%s\n' "${CHECKS_FAILED[@]}"
      SH
      expect([outcome.stderr, outcome.status.exitstatus]).to eq(["", 0])
      expect(outcome.stdout.scan(/there is none: none, as RPERF_RUBY is ''$/).size).to eq(2)
      expect(outcome.stdout.lines(chomp: true).last(2)).to eq(["Ruby 3.4 for other", "Ruby 4.0 for other"])
    end
  end
end
