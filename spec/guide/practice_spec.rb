# frozen_string_literal: true

# Programs as users write them, from the documentation; methods of the user's own stand above them.
RSpec.describe "Practical programs with the Ruby API, as documented" do
  include Guide

  # 30 ms of the thread's CPU.
  compute = <<~RUBY
    def compute
      limit = Process.clock_gettime(Process::CLOCK_THREAD_CPUTIME_ID) + 0.03
      nil while Process.clock_gettime(Process::CLOCK_THREAD_CPUTIME_ID) < limit
    end
  RUBY

  # Tables of a report in the example's directory.
  def tables(file)
    report = File.read(path_to(file))
    %w[Flat Cumulative].map { |title| table(report, title).transform_values(&:first) }
  end

  it "profile what a web request does" do
    output = output_of(<<~RUBY)
      #{compute}
      module User
        def self.where(active:) = active && self
        def self.limit(number) = sleep(0.05) && [:user] * number
      end

      require "rperf"

      class ApplicationController
        def serialize_user(user) = (@computed ||= compute || true) && user.to_s
        def render(json:) = puts(json.size, json.uniq)

        def profile_action
          data = Rperf.start(mode: :wall) do
            users = User.where(active: true).limit(100)
            result = users.map { |u| serialize_user(u) }
            render json: result
          end

          Rperf.save("request_profile.txt", data)
        end
      end

      ApplicationController.new.profile_action
    RUBY
    expect(output).to eq("100\nuser\n")
    flat, all = tables("request_profile.txt")
    expect(flat["[GVL blocked] (<GVL>)"]).to be_between(40, 2000)
    expect(all).to include(
      "User.limit (example.rb)" => be_between(40, 2000),
      "ApplicationController#serialize_user (example.rb)" => be_between(20, 2000)
    )
  end

  it "compare CPU time and wall time" do
    output_of(<<~RUBY)
      require "rperf"

      def compute_something = 6000.times { |i| i * i }

      def workload
        100.times do
          compute_something
          sleep(0.001)
        end
      end

      cpu_data = Rperf.start(mode: :cpu) { workload }
      Rperf.save("cpu.txt", cpu_data)

      wall_data = Rperf.start(mode: :wall) { workload }
      Rperf.save("wall.txt", wall_data)
    RUBY
    reports = %w[cpu.txt wall.txt].map { |file| File.read(path_to(file)) }
    expect(reports).to match([/\ATotal: .* \(cpu\)\n/, /\ATotal: .* \(wall\)\n/])
    _, cpu = tables("cpu.txt")
    wall_flat, wall = tables("wall.txt")
    expect(cpu["Object#compute_something (example.rb)"]).to be > 5
    expect(cpu.keys.grep(/GVL/)).to be_empty
    expect(wall_flat["[GVL blocked] (<GVL>)"]).to be_between(80, 4000)
    expect(wall["Kernel#sleep (<C method>)"]).to be >= wall_flat["[GVL blocked] (<GVL>)"]
    expect(wall["Object#compute_something (example.rb)"]).to be > 5
  end

  it "find the hottest functions in the sums" do
    output = output_of(<<~RUBY)
      #{compute}
      def cool = #{200_000 / Commands::SLOWNESS}.times { |i| i * i }
      def workload = cool && 3.times { compute }

      require "rperf"

      data = Rperf.start(mode: :cpu) { workload }

      flat = Hash.new(0)
      data[:aggregated_samples].each do |frames, weight, thread_seq|
        leaf_label = frames.first&.last
        flat[leaf_label] += weight
      end

      top = flat.sort_by { |_, w| -w }.first(5)
      top.each do |label, weight_ns|
        puts "\#{label}: \#{weight_ns / 1_000_000.0}ms"
      end
    RUBY
    rows = output.lines.map { |line| line.match(/\A(.+): ([\d.]+(?:e-\d+)?)ms\n\z/).captures }
    expect(rows.size).to be_between(2, 5)
    times = rows.map { |_, ms| ms.to_f }
    expect(times).to eq(times.sort.reverse)
    expect(times.sum).to be_between(80, 1000)
    # The method that reads the clock may be a row of its own.
    expect(rows.first.first).to eq("Object#compute").or eq("Process.clock_gettime")
  end

  it "go through samples one by one" do
    output = output_of(<<~RUBY)
      #{compute}
      def workload = Thread.new { compute }.join && compute

      require "rperf"

      data = Rperf.start(mode: :cpu, aggregate: false) { workload }

      data[:raw_samples].each do |frames, weight, thread_seq|
        puts "thread=\#{thread_seq} weight=\#{weight}ns depth=\#{frames.size}"
      end
    RUBY
    rows = output.lines.map { |line| line.match(/\Athread=(\d+) weight=(\d+)ns depth=(\d+)\n\z/).captures.map(&:to_i) }
    expect(rows.size).to be_between(15, 1000)
    expect(rows.group_by(&:first).transform_values(&:size).values.max(2)).to all(be >= 5)
    expect(rows.sum { |_, ns,| ns }).to be_between(55_000_000, 500_000_000)
    expect(rows.map(&:last)).to all(be_between(1, 30))
  end

  it "make collapsed stacks for flame graphs" do
    output_of(<<~RUBY)
      #{compute}
      def workload = compute

      require "rperf"

      data = Rperf.start(mode: :cpu) { workload }
      Rperf.save("profile.collapsed", data)
    RUBY
    stacks = collapsed(File.read(path_to("profile.collapsed")))
    expect(stacks.map(&:first)).to eq(stacks.map(&:first).uniq).and all(start_with("<main>")).and all(all(match(/./)))
    working = stacks.select { |frames,| frames.include?("Object#workload") }
    expect(working.sum(&:last)).to be_between(20_000_000, 500_000_000)
  end
end
