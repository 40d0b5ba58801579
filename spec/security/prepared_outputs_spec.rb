# frozen_string_literal: true

# In a directory in which everybody can make files, another user can have made one where a profile is to be.
RSpec.describe "A profile's path where another user has made something", if: OtherUser::USER do
  let(:shared) do
    path_to("shared").tap do |path|
      Dir.mkdir(path)
      File.chmod(0o1777, path)
    end
  end
  let(:precious) { path_to("precious").tap { |path| File.write(path, "ours") } }
  let(:output) { File.join(shared, "rperf.data") }

  def make_file = File.write(output, "theirs").tap { File.chmod(0o666, output) }
  def make_link = File.symlink(precious, output)
  def make_pipe = File.mkfifo(output, 0o666)

  def make_descriptor
    precious
    File.symlink("/dev/stdout", output)
  end

  # What is there, and what a link leads to.
  def found
    status = File.lstat(output)
    content = File.read(status.symlink? ? precious : output) unless status.pipe?
    [status.ftype, status.uid, status.mode & 0o777, content]
  end

  def give_away = File.lchown(OtherUser::USER, OtherUser::USER, output)

  %w[file link pipe descriptor].each do |kind|
    it "is refused before the program runs, and left as it is (#{kind})" do
      send("make_#{kind}")
      give_away
      before = found
      outcome = rperf("record", "-o", output, "--", ruby, "-e", "puts 1")
      expect([outcome.status.exitstatus, outcome.stdout]).to eq([2, ""])
      expect(outcome.messages).to match([/\Arperf: .* must be a file of your own, as everybody can make files in its/])
      by_default = run("sh", "-c", 'cd "$0" && exec "$@"', shared, *rperf_command("record", "--", ruby, "-e", "puts 1"))
      expect([by_default.status.success?, by_default.stdout]).to eq([false, ""])
      expect(found).to eq(before)
    end

    it "isn't written to if it was made meanwhile: the profile is elsewhere (#{kind})" do
      send("make_#{kind}")
      File.rename(output, path_to("prepared"))
      code = "File.rename(#{path_to("prepared").dump}, #{output.dump}); " \
             "File.lchown(#{OtherUser::USER}, #{OtherUser::USER}, #{output.dump})"
      outcome = rperf("record", "-o", output, "--", ruby, "-e", code)
      expect(outcome.messages.last)
        .to match(/\Arperf: can't write the profile to .* \(Permission denied\); it is in (.*\.pb\.gz) \(pprof\)/)
      expect(outcome.stdout).to eq("")
      elsewhere = outcome.messages.last[/it is in (\S+)/, 1]
      expect(File.stat(elsewhere).mode & 0o777).to eq(0o600)
      expect(found.last).to eq({ "file" => "theirs", "link" => "ours", "descriptor" => "ours" }[kind])
    ensure
      File.unlink(elsewhere) if elsewhere
    end
  end

  # Waits until strace holds the program that it has started, for longer than it takes to print a call.
  def wait_until_held(strace)
    states = lambda do
      program = File.read("/proc/#{strace}/task/#{strace}/children").split.first
      Dir["/proc/#{program}/task/*/stat"].map { |path| File.read(path)[/\) (.)/, 1] }
    end
    wait_until("look") do
      5.times.all? { sleep(0.05) && states.call.include?("t") }
    rescue SystemCallError
      false # A thread has ended.
    end
  end

  # strace holds the last look at the path for a while: there is nothing, and then there is.
  %w[file link pipe descriptor].each do |kind|
    it "isn't written to if it comes right after rperf has looked (#{kind})" do
      skip "there is no strace" unless system("strace", "-V", %i[out err] => File::NULL)
      send("make_#{kind}")
      give_away
      File.rename(output, path_to("prepared"))
      code = "profile = Rperf.start { 1000.times(&:to_s) }; $stdout.syswrite('.'); Rperf.save(#{output.dump}, profile)"
      look = RUBY_PLATFORM.include?("musl") ? "lstat" : "statx"
      held = %W[strace -f -qq -P #{output} -e signal=none -e trace=#{look},readlink
                -e inject=#{look}:delay_exit=3000000:when=2 -o #{path_to("calls")}]
      outcome = run(*held, ruby, "-I#{Commands::ROOT}/lib", "-rrperf", "-e", code, limit: 120) do |pid|
        wait_until("first look") { File.exist?(path_to("calls")) && File.read(path_to("calls")).include?("ENOENT") }
        wait_until_held(pid)
        File.rename(path_to("prepared"), output)
      end
      expect(File.readlines(path_to("calls"))).to match([/#{look}.*ENOENT/, /#{look}.*ENOENT/])
      expect([outcome.status.exitstatus, outcome.stderr]).to eq([0, ""])
      expect(found[0..2]).to eq(["file", Process.euid, 0o666 & ~File.umask])
      expect(File.binread(output, 2)).to eq("\x1f\x8b".b)
      expect(File.read(precious)).to eq("ours")
    end
  end

  it "is refused at the end of one's own links, too" do
    make_link
    give_away
    File.symlink(output, path_to("mine"))
    File.symlink("mine", path_to("further"))
    outcome = rperf("record", "-o", path_to("further"), "--", ruby, "-e", "puts 1")
    expect([outcome.status.exitstatus, outcome.stderr]).to match([2, /must be a file of your own/])
    profile = Rperf.start { 1000.times(&:to_s) }
    expect { Rperf.save(path_to("further"), profile) }.to raise_error(Errno::EACCES)
    expect(found.last).to eq("ours")
  end

  it "is written to where it is one's own, or the directory is one's own alone" do
    make_file
    expect(rperf("record", "-o", output, "--", ruby, "-e", "1").status).to be_success
    expect(found[0..2]).to eq(["file", Process.euid, 0o666])
    File.chmod(0o755, shared)
    give_away
    expect(rperf("record", "-o", output, "--", ruby, "-e", "1").status).to be_success
    expect(found[1]).to eq(Process.euid)
  end
end
