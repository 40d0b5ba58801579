# frozen_string_literal: true

require "etc"
require "fileutils"

# bin/support/*.sh, which set up what a checkout needs, in a project of the example's own. Nothing is built.
RSpec.describe "the set-up of a checkout" do
  support = File.join(Commands::ROOT, "bin/support")
  build = "install_system_packages() { exit 7; }\nis_debian() { :; }\ncheck_rust() { :; }\n"

  before do
    FileUtils.mkdir_p(path_to("project/bin/support"))
    FileUtils.cp(Dir["#{support}/*.sh"], path_to("project/bin/support"))
    FileUtils.mkdir_p([path_to("project/tmp"), path_to("home")])
  end

  # Runs the lines where the set-up has been loaded, as bin/rperf loads it. No Ruby is in PATH.
  def set_up(lines, env = {})
    head = "set -euo pipefail\nROOT=#{path_to("project").shellescape}\n. \"$ROOT/bin/support/setup.sh\"\n"
    clean = { "PATH" => "/usr/bin:/bin", "HOME" => path_to("home"), "XDG_CACHE_HOME" => nil }
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

  it "says in one line why arm64 can't be emulated" do
    here = "uname() { echo Linux x86_64; }\nis_debian() { :; }\nunshare() { :; }\n"
    {
      "uname() { echo Linux aarch64; }" => /\Aemulates arm64 on Linux on x86-64 only, and this is Linux aarch64\n\z/,
      "is_debian() { return 1; }" => /\Atakes libraries for arm64 from Debian's packages, .*\n\z/,
      "unshare() { return 1; }" => /\Aneeds user namespaces, .*\n\z/,
      "unshare() { [[ $* != *binfmt* ]]; }" => /\Aneeds binfmt_misc in user namespaces: Linux 6\.7 .*\n\z/,
      ":" => ""
    }.each do |obstacle, said|
      load = '. "$ROOT/bin/support/cross.sh"; . "$ROOT/bin/support/arm64.sh"'
      outcome = set_up("#{load}\n#{here}#{obstacle}\narm64_refused")
      expect([outcome.stdout, outcome.stderr]).to match([said, ""])
    end
  end
end
