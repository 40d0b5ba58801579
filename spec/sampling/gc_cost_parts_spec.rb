# frozen_string_literal: true

require "json"

# What collections cost where a session isn't alone, or doesn't count all the time. Its sums are exact there, too: those
# of the collections that the profile tells.
RSpec.describe "gc_cost", vm: true do
  work = <<~'RUBY'
    require "json"
    Warning[:experimental] = false

    class Maker
      def in_section(n) = n.times { Object.new }
      def other(n) = n.times { Object.new }
      def outside(n) = n.times { Object.new }
      def kept(n) = Array.new(n) { |i| [i] }
    end
    MAKER = Maker.new

    def costs(profile) = profile.top(value: "gc_cost", limit: nil).to_h { |row| [row[:name], row[:self]] }

    # What the sites have, and what all collections took.
    def sums(profile) = [costs(profile).values.sum, (profile.gc&.fetch(:causes) || []).sum { |row| row[:wall_ns] }]

    # Of the sites of this method, in ns.
    def of(profile, method) = costs(profile).sum { |name, ns| name.end_with?("Maker##{method}") ? ns : 0 }

    # Makes and keeps objects, as all collections have something to do then, in steps.
    def churn(objects, kept = [])
      objects.times { |i| kept[i % 20_000] = [i] }
      objects
    end

    def value_of(ractor) = ractor.respond_to?(:value) ? ractor.value : ractor.take
    def start(**, &) = Rperf.start(mode: :wall, measure: %i[heap gc_cost], **, &)
  RUBY

  define_method(:told_of) { |program, *options, **run| told("#{work}\n#{program}", *options, **run) }

  def expect_exact(parts)
    parts.each { |costs, collections| expect(costs).to eq(collections) }
    expect(parts.sum(&:first)).to be > 0
  end

  [%i[gc_cost], %i[heap gc_cost]].each do |measure|
    it "is exact beside Ractors that allocate, with #{measure.join(" and ")}" do
      parts = told_of(<<~RUBY)
        start(measure: #{measure.inspect})
        # Two make objects all the time.
        ractors = Array.new(2) { Ractor.new { churn(600_000) } }
        parts = Array.new(40) do
          churn(10_000)
          Rperf.snapshot(clear: true)
        end
        ractors.each { value_of(it) }
        parts << Rperf.snapshot(clear: true)
        churn(200_000)
        parts << Rperf.stop
        Rperf.merge(*parts).save("r.pb.gz")
        puts parts.map { sums(it) }.to_json
      RUBY
      expect_exact(parts)
      notes = PprofMessage.read(path_to("r.pb.gz")).comments
      expect(notes).to include(/\Aobjects that other Ractors made are not counted/)
      # Ruby 4.0 alone tells of their collections.
      left_out = notes.grep(/their garbage collections count as running time/)
      expect(left_out.empty?).to be(RUBY_VERSION.start_with?("4.0."))
    end
  end

  it "is exact in a session that goes on beside forks, and in the children's own" do
    parts, methods = told_of(<<~RUBY)
      reader, writer = IO.pipe
      profile = start do
        30.times do
          # Each is forked at another moment of a collection.
          churn(7_001)
          pid = fork do
            MAKER.outside(20_000)
            own = start { MAKER.other(60_000); churn(40_000) }
            writer.puts [sums(own), %w[in_section outside other].map { |name| of(own, name) }].to_json
          end
          MAKER.in_section(20_000)
          Process.wait(pid)
          abort "the child has failed: \#{$?}" unless $?.success?
        end
      end
      writer.close
      children = reader.each_line.map { |line| JSON.parse(line) }
      puts [[sums(profile), *children.map(&:first)],
            [%w[in_section outside other].map { |name| of(profile, name) },
             children.map(&:last).transpose.map(&:sum)]].to_json
    RUBY
    expect(parts.size).to eq(31)
    expect_exact(parts)
    (in_section, outside, other), children = methods
    expect([in_section.positive?, outside, other]).to eq([true, 0, 0])
    expect([children[0], children[1], children[2].positive?]).to eq([0, 0, true])
  end

  it "adds up in the one profile of a program and its forked children" do
    write_file("forks.rb", <<~RUBY)
      #{work}
      churn(50_000)
      3.times { Process.wait(fork { churn(100_000); MAKER.other(200_000) }) }
      churn(100_000)
    RUBY
    outcome = rperf("record", "-m", "wall", "--measure", "heap,gc_cost", "-o", "f.pb.gz", ruby, "forks.rb")
    expect(outcome.status).to be_success, outcome.stderr
    profile = Rperf.load(path_to("f.pb.gz"))
    costs = profile.top(value: "gc_cost", limit: nil).to_h { |row| [row[:name], row[:self]] }
    expect(costs.values.sum).to eq(profile.gc.fetch(:causes).sum { |row| row[:wall_ns] })
    expect(costs.fetch("block in Maker#other")).to be > 0
  end

  it "is that of the collections in sections, and of what these have made" do
    parts, methods = told_of(<<~RUBY)
      start(defer: true)
      parts = Array.new(10) do |i|
        60.times do
          # Sections begin and end in the middle of collections.
          Rperf.profile(part: i.to_s) { churn(1_501); MAKER.in_section(3_000) }
          MAKER.outside(4_001)
        end
        i == 9 ? Rperf.stop : Rperf.snapshot(clear: true)
      end
      puts [parts.map { sums(it) }, %w[in_section outside].map { |name| parts.sum { of(it, name) } }].to_json
    RUBY
    expect_exact(parts)
    expect([methods[0].positive?, methods[1]]).to eq([true, 0])
  end

  { "between sections" => ["defer: true", "", "Rperf.profile { %s }"],
    "in a pause" => ["", "Rperf.pause", "Rperf.resume; %s; Rperf.pause"] }.each do |where, (options, before, section)|
    it "has a site only in collections of its objects, and not in those after one #{where}" do
      one, other, sums = told_of(<<~RUBY)
        start(#{options})
        #{before}
        40.times do
          GC.start
          GC.disable
          #{format(section, "MAKER.in_section(30_000)")}
          GC.enable
          # Takes all of these, while nothing counts.
          GC.start
          #{format(section, "MAKER.other(200_000)")}
        end
        profile = Rperf.stop
        puts [of(profile, :in_section), of(profile, :other), sums(profile)].to_json
      RUBY
      expect_exact([sums])
      expect(other).to be > 0
      expect(one).to be < other / 100.0
    end
  end

  it "grows from snapshot to snapshot, at each site, while threads go on" do
    parts, costs = told_of(<<~RUBY)
      start
      # They have the GVL for a moment only, as each snapshot waits for them.
      threads = Array.new(2) { Thread.new { churn(5_000) && sleep(0.001) until $done } }
      profiles = Array.new(12) do
        MAKER.in_section(30_000)
        Rperf.snapshot
      end
      $done = true
      threads.each(&:join)
      profiles << Rperf.stop
      puts [profiles.map { sums(it) }, profiles.map { costs(it) }].to_json
    RUBY
    expect_exact(parts)
    costs.each_cons(2) do |before, after|
      before.each { |site, ns| expect(after.fetch(site)).to be >= ns, site }
    end
    expect(costs.last.fetch("block in Maker#in_section")).to be > 0
  end
end
