# frozen_string_literal: true

# Root may have the variables of another user, as after `su` without `-`: what that user can exchange is not used. The
# user namespace of an emulated run has one user.
RSpec.describe "The directory of a session", vm: true, if: Process.euid.zero? do
  other = 12_345
  # Beside the directories of these examples, which are in /tmp, too.
  elsewhere = "/tmp/rperf-#{Process.euid}/"

  # @param before [Array<String>] a command that has `rperf` run
  def session_of(before: [], **env)
    command = rperf_command("record", "-o", path_to("p.pb.gz"), "--", ruby, "-e", 'puts ENV.fetch("RPERF_SESSION")')
    outcome = run(*before, *command, env: env.transform_keys(&:to_s))
    expect([outcome.status, outcome.stderr]).to match([be_success, /\Arperf: wrote/])
    outcome.stdout.chomp
  end

  def directory_of(owner, mode)
    path = path_to("of_another")
    Dir.mkdir(path)
    File.chown(owner, owner, path)
    File.chmod(mode, path)
    path
  end

  %i[XDG_RUNTIME_DIR TMPDIR].each do |variable|
    it "isn't in a directory of another user that #{variable} names", emulated: false do
      path = directory_of(other, 0o700)
      safe = File.realpath(path_to("."))
      next_place = variable == :TMPDIR ? elsewhere : "#{safe}/rperf-"
      expect(session_of(TMPDIR: safe, variable => path)).to start_with(next_place)
    end

    it "isn't below a directory of another user, which could be exchanged (#{variable})", emulated: false do
      path = directory_of(other, 0o755)
      Dir.mkdir(File.join(path, "inner"), 0o700)
      expect(session_of(TMPDIR: "/tmp", variable => File.join(path, "inner"))).to start_with(elsewhere)
    end
  end

  it "isn't in a temporary directory in which others can exchange it, if there is another" do
    path = directory_of(0, 0o777)
    expect(session_of(TMPDIR: path)).to start_with(elsewhere)
  end

  [[0, 0o777], [0, 0o770]].each do |owner, mode|
    it "isn't in an XDG_RUNTIME_DIR in which others can exchange it, if there is another (#{mode.to_s(8)})" do
      path = directory_of(owner, mode)
      expect(session_of(XDG_RUNTIME_DIR: path, TMPDIR: "/tmp")).to start_with(elsewhere)
    end
  end

  it "isn't in such an XDG_RUNTIME_DIR either where TMPDIR names nothing" do
    path = directory_of(0, 0o777)
    expect(session_of(XDG_RUNTIME_DIR: path, TMPDIR: path_to("none"))).to start_with(elsewhere)
  end

  # As a volume of a pod is that is empty at first, where the container has no other place.
  it "is in such a directory if there is no other" do
    path = directory_of(0, 0o777)
    # Those for all can't be written to, but this one can.
    mounts = [*%w[/tmp /var/tmp].map { |place| "mount --rbind #{place} #{place} && mount -o remount,bind,ro #{place}" },
              'mount --bind "$PWD" "$PWD" && mount -o remount,bind,rw "$PWD" && cd "$PWD"']
    before = ["unshare", "--mount", "--propagation", "private", *Faults.shell(mounts.join(" && "))]
    usable = run(*before, "true")
    skip "needs the right to mount: #{usable.stderr}" unless usable.status.success?

    env = { XDG_RUNTIME_DIR: path, TMPDIR: path_to("none") }
    expect(session_of(before:, **env)).to start_with(File.realpath(path))
  end

  it "is that of a port, which other containers look for there" do
    path = directory_of(0, 0o777)
    env = { "XDG_RUNTIME_DIR" => path }
    outcome = run(ruby, "-I#{Commands::ROOT}/lib", "-rrperf", "-e", "puts Rperf.listen", env:)
    expect(outcome.stdout).to start_with("#{File.realpath(path)}/rperf-0/")
  end

  # Where others could exchange the session's directory after all, its files are looked at as they are opened.
  exchanges = {
    "link" => "File.rename(path, beside); File.symlink(beside, path)",
    "second name of a file" => "File.rename(path, beside); File.link(beside, path)",
    "pipe" => "File.rename(path, beside); File.mkfifo(path, 0o600)",
    "file of another user" => "File.rename(path, beside); File.write(path, File.read(beside)); File.chown(1, 1, path)"
  }

  # What a program says, and two that it starts once it has done `change` to the settings.
  def told_after(change)
    script = write_file("script.rb", <<~RUBY)
      path = File.join(ENV.fetch("RPERF_SESSION"), "settings")
      beside = #{path_to("beside").inspect}
      #{change}
      2.times { system(#{ruby.inspect}, "-e", "p defined?(Rperf) && Rperf.running?", exception: true) }
    RUBY
    outcome = rperf("record", "-o", path_to("p.pb.gz"), "--", ruby, script)
    [outcome.stdout.lines(chomp: true).uniq - %w[nil false], outcome.messages.grep_v(/\Arperf: wrote/)]
  end

  {
    "a link" => [exchanges["link"], Errno::ELOOP.new.message],
    "a second name" => [exchanges["second name of a file"], "is another file"],
    "a pipe" => [exchanges["pipe"], "is another file"],
    "another user's" => [exchanges["file of another user"], "is another file"],
    "empty" => ["File.truncate(path, 0)", "holds none"],
    "something else" => ["File.write(path, 'x')", "holds none"]
  }.each do |what, (change, reason)|
    it "says once that a program isn't profiled whose settings are #{what}", emulated: what != "another user's" do
      said = /\Arperf: its session's settings can't be read \(.*#{reason}\); running without profiling\n\z/
      expect(told_after(change)).to match([[], [said]])
    end
  end

  it "is that of a session which is over if it has no settings, which nobody is told" do
    ["File.delete(path)", "require 'fileutils'; FileUtils.rm_r(File.dirname(path))"].each do |change|
      running, messages = told_after(change)
      expect(running).to eq([])
      expect(messages.grep(/settings|running without/)).to eq([])
    end
  end

  exchanges.each do |what, exchange|
    it "says and hears nothing by a #{what} in the place of its own", emulated: what != "file of another user" do
      script = write_file("script.rb", <<~RUBY)
        child = [#{ruby.inspect}, "-e", "p defined?(Rperf) && Rperf.running?"]
        path = File.join(ENV.fetch("RPERF_SESSION"), ARGV[0])
        beside = ARGV[1]
        #{exchange}
        before = File.size?(path)
        system(*child)
        puts File.size(beside), before == File.size?(path)
      RUBY
      sizes = %w[settings status].map do |name|
        beside = path_to("beside-#{name}")
        outcome = rperf("record", "-o", path_to("p.pb.gz"), "--", ruby, script, name, beside)
        running, size, is_untouched = outcome.stdout.lines(chomp: true)
        expect(is_untouched).to eq("true")
        expect(running).to eq("nil").or eq("false") if name == "settings"
        File.size(beside) - size.to_i
      end
      expect(sizes).to eq([0, 0])
    end
  end

  it "is in a directory of root's" do
    path = directory_of(0, 0o700)
    expect(session_of(XDG_RUNTIME_DIR: path)).to start_with(File.realpath(path))
  end

  it "is no place for a port if another user owns a directory above it", emulated: false do
    path = directory_of(other, 0o755)
    inner = File.join(path, "inner").tap { |directory| Dir.mkdir(directory, 0o700) }
    code = "puts 'runs'"
    outcome = run(ruby, "-I#{Commands::ROOT}/lib", "-rrperf", "-e", code, env: { "RPERF_LISTEN" => inner })
    expect(outcome.stdout).to eq("runs\n")
    expect(outcome.stderr).to include("others may change what is in #{path}")
  end
end
