# frozen_string_literal: true

RSpec.describe "rperf attach" do
  include Ports

  WORK = <<~RUBY
    def work = 1000.times { |i| i.to_s * 10 }
    def wait = sleep(0.01)
  RUBY

  # A program that works on one thread and waits on another, after `code`.
  def working(code = "", &)
    listening("#{WORK}Thread.new { loop { wait } }\nputs Rperf.listen\n#{code}\nloop { work }", &)
  end

  def attach(*arguments, **options, &) = rperf("attach", *arguments.map(&:to_s), **options, &)

  def seconds(profile) = profile[:duration_ns] / 1e9

  def methods_of(profile) = profile.top(value: "wall").map { |row| row[:name] }

  def profile_in(name = "x.pb.gz") = Rperf.load(in_folder(name))

  # Runs it in the background; the block is called when the program has a session, and the outcome returned.
  def attach_during(program, *arguments)
    attaching = Thread.new { attach(program.pid, *arguments) }
    wait_until("session") { ask(program.lines.first).last["live"] }
    yield
    attaching.value
  end

  it "profiles all threads of a running program for as long as it is told, and leaves nothing behind" do
    working do |program|
      outcome = attach(program.pid, "--duration", 1, "-o", "x.pb.gz")
      expect(outcome.stderr).to match(/\Arperf: wrote x.pb.gz \([\d,]+ samples, [\d.]+ s\)\n\z/)
      expect(outcome.status.exitstatus).to eq(0)
      profile = profile_in
      expect(seconds(profile)).to be_between(1.0, 3.0)
      expect(profile[:mode]).to eq(:wall)
      # Two threads, and not the one that has answered.
      expect(profile.total(value: "wall")).to be_within(0.01 * 2 * profile[:duration_ns]).of(2 * profile[:duration_ns])
      expect(methods_of(profile)).to include("Object#work", "Object#wait")
      expect(profile[:safepoint_stacks]).to be <= profile[:tick_stacks]
      expect(ask(program.lines.first).last).to include("session" => nil, "live" => false)
      wait_until("end of the helper") { ask(program.lines.first, "/v1/stacks").last["threads"].size == 2 }
    end
  end
end
