# frozen_string_literal: true

# The contents of profiles, and how to read them, by the documentation.
RSpec.describe "Results, as the documentation explains them", vm: true, alone: true do
  include Guide

  # Waits, competes for the GVL and collects garbage, each in a method of its own.
  states = <<~RUBY
    def spin(seconds)
      limit = Process.clock_gettime(Process::CLOCK_THREAD_CPUTIME_ID) + seconds
      nil while Process.clock_gettime(Process::CLOCK_THREAD_CPUTIME_ID) < limit
    end

    def block = sleep(0.1)
    def compete = Array.new(2) { Thread.new { spin(0.25) } }.each(&:join)
    def collect = 5.times { GC.start }

    @live = Array.new(200_000) { |n| n.to_s }
    block
    compete
    collect
  RUBY

  # Nanoseconds by the names of the deepest frames.
  def flat(data)
    data[:samples].each_with_object(Hash.new(0)) { |(frames, weight), sums| sums[frames.first.last] += weight }
  end

  it "have time of a function's own, and with all that it calls" do
    output_of(<<~RUBY)
      def compute = (i = 0; i += 1 while i < 12_000_000)
      def format = (i = 0; i += 1 while i < 4_000_000)

      def process
        compute
        format
      end

      def main = process

      require "rperf"
      Rperf.start(output: "profile.txt") { main }
    RUBY
    report = File.read(path_to("profile.txt"))
    flat, all = %w[Flat Cumulative].map { |title| table(report, title).transform_values(&:first) }
    main, process, compute, format = %w[main process compute format].map { |name| "Object##{name} (example.rb)" }
    expect(flat[compute]).to be > flat[format]
    expect(flat.values_at(process, main).compact.sum).to be < 5
    expect(all[process]).to be_within(5).of(all[compute] + all[format])
    expect(all[main]).to be_within(5).of(all[process])
  end

  it "are in nanoseconds, in both modes" do
    used = lambda do
      started = Process.clock_gettime(Process::CLOCK_THREAD_CPUTIME_ID, :nanosecond)
      spin(0.1)
      Process.clock_gettime(Process::CLOCK_THREAD_CPUTIME_ID, :nanosecond) - started
    end
    ns = nil
    cpu = Rperf.start(mode: :cpu) { ns = used.call }
    expect(weight_of(cpu, "spin")).to be_within(20_000_000).of(ns)
    wall = Rperf.start(mode: :wall) { sleep 0.1 }
    expect(weight_of(wall, "sleep")).to be_between(80_000_000, 3_000_000_000)
  end

  it "have all four synthetic frames in wall mode, as leaves below what led there" do
    program = write_file("states.rb", states)
    type("rperf record -m wall -o p.pb.gz ruby '#{program}'")
    data = read_profile(path_to("p.pb.gz"))
    times = flat(data)
    expect(times).to include(
      "[GVL blocked]" => be > 80_000_000, "[GVL wait]" => be > 50_000_000,
      "[GC marking]" => be > 1_000_000, "[GC sweeping]" => be > 0
    )
    under = lambda do |leaf, method|
      rows = data[:samples].select { |frames,| frames.first.last == leaf && frames.any? { |_, name| name == method } }
      rows.sum { |row| row[1] }
    end
    expect(under["[GVL blocked]", "Object#block"]).to be_between(80_000_000, 3_000_000_000)
    expect(under["[GC marking]", "Object#collect"]).to be > 1_000_000
    waiting = data[:samples].select { |frames,| frames.first.last == "[GVL wait]" }
    expect(waiting.sum { |frames, ns| frames.any? { |_, name| name == "Object#spin" } ? ns : 0 }).to be > 20_000_000
    # Never within a stack.
    inner = data[:samples].flat_map { |frames,| frames.drop(1).map(&:last) }
    expect(inner.grep(/\[G/)).to be_empty
  end

  it "have only those of the garbage collector in cpu mode, and no time that was waited" do
    program = write_file("states.rb", states)
    type("rperf record -o p.pb.gz ruby '#{program}'")
    data = read_profile(path_to("p.pb.gz"))
    expect(flat(data).keys.grep(/\A\[G/)).to contain_exactly("[GC marking]", "[GC sweeping]")
    expect(weight_of(data, "Object#block")).to be < 50_000_000
    expect(weight_of(data, "Object#spin")).to be_between(400_000_000, 900_000_000)
  end

  it "show contention for the GVL where threads compete for it" do
    write_file("threaded_app.rb", <<~RUBY)
      def work = (i = 0; i += 1 while i < 6_000_000)
      Array.new(4) { Thread.new { 2.times { work } } }.each(&:join)
    RUBY
    page = type("rperf stat ruby threaded_app.rb").stderr
    expect(page).to include(" Performance stats for 'ruby threaded_app.rb':\n")
    rows = times(page)
    wait, share = rows["[Ruby] GVL wait (contention)"]
    expect(wait).to be > rows["CPU execution"].first
    expect(share).to be_between(25, 90)
    expect(rows.keys).to include("CPU execution", "[Ruby] GVL blocked (I/O, sleep)")
  end

  it "cost less at a lower frequency, and are right all the same" do
    counts = [1000, 100].map do |frequency|
      data = Rperf.start(frequency:) { spin 0.2 }
      expect(weight_of(data, "spin")).to be_within(60_000_000).of(200_000_000)
      data[:sampling_count]
    end
    expect(counts.last).to be < counts.first / 2
  end
end
