# frozen_string_literal: true

require "socket"

# `rperf serve --http /path/of/socket`: who can change the directory could take its place.
RSpec.describe "The socket of rperf serve", if: RUBY_PLATFORM.include?("linux") do
  include OtherUser

  # Starts it with this umask, yields when it listens, and ends it; its status.
  def serving(path, umask: 0o022)
    command = rperf_command("serve", "--http", path)
    pid = Process.spawn(clean_environment, *command, chdir: directory, umask:, err: path_to("err"))
    wait_until("server") { File.exist?(path_to("err")) && File.read(path_to("err")).include?("serving") }
    yield
  ensure
    Process.kill(:TERM, pid)
    Process.wait(pid)
  end

  it "is for its user only, with any umask, and goes with it" do
    serving(path_to("x.sock"), umask: 0) { expect(File.stat(path_to("x.sock")).mode & 0o777).to eq(0o600) }
    expect(File.exist?(path_to("x.sock"))).to be(false)
  end

  it "leaves what somebody has put in its place" do
    path = path_to("x.sock")
    serving(path) do
      File.delete(path)
      File.write(path, "a file")
    end
    expect(File.read(path)).to eq("a file")
    File.delete(path)
    other = nil
    serving(path) do
      File.delete(path)
      other = UNIXServer.new(path)
    end
    expect(File.socket?(path)).to be(true)
  ensure
    other&.close
  end

  it "isn't where others can exchange it" do
    place = path_to("open").tap { |path| Dir.mkdir(path) }
    File.chmod(0o777, place)
    outcome = rperf("serve", "--http", File.join(place, "x.sock"))
    expect([outcome.status.exitstatus, outcome.stderr.lines.size, outcome.stderr])
      .to match([1, 1, /others may change what is in #{Regexp.escape(File.realpath(place))}/])
    expect(Dir.children(place)).to eq([])
  end

  it "isn't in or below another user's directory, and takes away no socket of theirs", if: OtherUser::USER do
    place = others_directory
    Dir.mkdir(File.join(place, "inner"))
    [place, File.join(place, "inner")].each do |path|
      outcome = rperf("serve", "--http", File.join(path, "x.sock"))
      expect([outcome.status.exitstatus, outcome.stderr]).to match([1, /others may change what is in/])
    end
    File.chmod(0o1777, directory)
    path = path_to("dead.sock")
    UNIXServer.new(path).close
    File.chown(OtherUser::USER, OtherUser::USER, path)
    expect(rperf("serve", "--http", path).stderr).to include("(Address already in use)")
    expect(File.socket?(path)).to be(true)
  end
end
