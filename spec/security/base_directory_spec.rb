# frozen_string_literal: true

# Root may have the variables of another user, as after `su` without `-`: what that user can exchange is not used.
RSpec.describe "The directory of a session", vm: true, if: Process.euid.zero? do
  other = 12_345
  # Beside the directories of these examples, which are in /tmp, too.
  elsewhere = "/tmp/rperf-#{Process.euid}/"

  def session_of(**env)
    code = 'puts ENV.fetch("RPERF_SESSION")'
    outcome = rperf("record", "-o", path_to("p.pb.gz"), "--", ruby, "-e", code, env: env.transform_keys(&:to_s))
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
    it "isn't in a directory of another user that #{variable} names" do
      path = directory_of(other, 0o700)
      safe = File.realpath(path_to("."))
      next_place = variable == :TMPDIR ? elsewhere : "#{safe}/rperf-"
      expect(session_of(TMPDIR: safe, variable => path)).to start_with(next_place)
    end

    it "isn't below a directory of another user, which could be exchanged (#{variable})" do
      path = directory_of(other, 0o755)
      Dir.mkdir(File.join(path, "inner"), 0o700)
      expect(session_of(TMPDIR: "/tmp", variable => File.join(path, "inner"))).to start_with(elsewhere)
    end
  end

  it "isn't in a temporary directory in which others can exchange it, if there is another" do
    path = directory_of(0, 0o777)
    expect(session_of(TMPDIR: path)).to start_with(elsewhere)
  end

  # As a volume of a pod is that is empty at first.
  it "is in such a directory if that is XDG_RUNTIME_DIR" do
    path = directory_of(0, 0o777)
    expect(session_of(XDG_RUNTIME_DIR: path)).to start_with(File.realpath(path))
  end

  it "is in a directory of root's" do
    path = directory_of(0, 0o700)
    expect(session_of(XDG_RUNTIME_DIR: path)).to start_with(File.realpath(path))
  end

  it "is no place for a port if another user owns a directory above it" do
    path = directory_of(other, 0o755)
    inner = File.join(path, "inner").tap { |directory| Dir.mkdir(directory, 0o700) }
    code = "puts 'runs'"
    outcome = run(ruby, "-I#{Commands::ROOT}/lib", "-rrperf", "-e", code, env: { "RPERF_LISTEN" => inner })
    expect(outcome.stdout).to eq("runs\n")
    expect(outcome.stderr).to include("others may change what is in #{path}")
  end
end
