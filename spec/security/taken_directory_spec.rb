# frozen_string_literal: true

# In a temporary directory for all users, everybody can make something that is called as ours.
RSpec.describe "The directory of a user whose name another one has", vm: true, if: OtherUser::USER do
  include Ports
  include OtherUser

  usual = "rperf-#{Process.euid}"

  # A temporary directory for all, and in it what another user has made.
  def shared_directory
    path_to("shared").tap do |path|
      Dir.mkdir(path)
      File.chmod(0o1777, path)
    end
  end

  let(:place) { File.realpath(shared_directory) }
  let(:env) { { "TMPDIR" => place } }
  let(:usual_path) { File.join(place, usual) }

  squatters = { "directory" => ->(path) { Dir.mkdir(path, 0o700) }, "file" => ->(path) { File.write(path, "") },
                "link" => ->(path) { File.symlink("/root", path) } }

  squatters.each do |kind, make|
    it "is another one (#{kind})" do
      make.call(usual_path)
      File.lchown(OtherUser::USER, OtherUser::USER, usual_path)
      code = 'puts ENV.fetch("RPERF_SESSION"); loop { break if Process.clock_gettime(Process::CLOCK_MONOTONIC) > 0 }'
      outcome = rperf("record", "-o", path_to("p.pb.gz"), "--", ruby, "-e", code, env:)
      expect([outcome.status, outcome.messages.size, outcome.messages.last])
        .to match([be_success, 1, /\Arperf: wrote/])
      expect(outcome.stdout).to match(%r{\A#{Regexp.escape(usual_path)}-\w{6}/\d+-\d+-0\n\z})
      expect(Dir.children(place)).to eq([usual])
    end
  end

  it "is one for all programs, and is found" do
    Dir.mkdir(usual_path)
    File.chown(OtherUser::USER, OtherUser::USER, usual_path)
    listening("puts Rperf.listen; sleep", env:) do |one|
      listening("puts Rperf.listen; sleep", env:) do |other|
        directories = [one, other].map { |program| File.dirname(program.lines.first) }
        expect(directories.uniq).to match([/\A#{Regexp.escape(usual_path)}-\w{6}\z/])
        expect(File.stat(directories.first).mode & 0o777).to eq(0o700)
        expect(listed(env:).keys).to contain_exactly(one.pid, other.pid)
      end
    end
    # Both were killed.
    expect(listed(env:)).to eq({})
    expect(Dir[File.join(place, "*", "*")]).to eq([])
  end

  it "is none of another user's that is called like that" do
    Dir.mkdir(usual_path)
    trap = "#{usual_path}-aaaaaa"
    Dir.mkdir(trap, 0o700)
    [usual_path, trap].each { |path| File.chown(OtherUser::USER, OtherUser::USER, path) }
    outcome = rperf("record", "-p", "--", ruby, "-e", 'puts ENV.fetch("RPERF_SESSION")', env:)
    expect(outcome.stdout).to start_with("#{usual_path}-")
    expect(outcome.stdout).not_to include(trap)
  end
end
