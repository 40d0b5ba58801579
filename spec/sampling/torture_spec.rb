# frozen_string_literal: true

require "json"
require_relative "../support/compilers"

# Everything at once, at the highest frequency: the program goes on, its profiles are valid, their time adds up, and
# memory stays bounded. 20 seconds for all variants together, in one session each. With RPERF_LONG=1 (bin/test --long)
# ten minutes for each variant, in sessions that follow each other.
RSpec.describe "a program that does everything at once", vm: true, alone: true do
  sessions = Commands::LONG ? 3 : 1
  variants = {
    "interpreted, wall mode" => [["--disable-yjit"], { mode: :wall, measure: :blame }],
    "interpreted, cpu mode, capture: :safepoint" => [["--disable-yjit"], { mode: :cpu, capture: :safepoint }],
    "under YJIT, wall mode" => [["--yjit"], { mode: :wall, measure: :blame }],
    "under YJIT with little room for code, cpu mode" =>
      [["--yjit", "--yjit-mem-size=4", "--yjit-code-gc"], { mode: :cpu }],
    "with YJIT enabled on the way, wall mode" => [["--disable-yjit"], { mode: :wall, compiler: :YJIT }],
    "with YJIT enabled on the way, cpu mode, without the timer's signal" =>
      [["--disable-yjit"], { mode: :cpu, compiler: :YJIT, signal: false }],
    # Ruby 3.4 may crash with Ractors beside any hook on allocations (docs/internals/ractors.md).
    "interpreted, with the objects that stay" =>
      [["--disable-yjit"], { mode: :wall, measure: %i[heap blame], ractors: false }],
    "under YJIT, with each object" => [["--yjit"], { mode: :wall, measure: :alloc, ractors: false }]
  }
  if Compilers::FLAGS.key?("ZJIT")
    variants.merge!(
      "under ZJIT, wall mode" => [["--zjit"], { mode: :wall, measure: :blame }],
      "with ZJIT enabled on the way, cpu mode" => [["--disable-yjit"], { mode: :cpu, compiler: :ZJIT }]
    )
  end
  seconds = Commands::LONG ? 600.0 : 20.0 / variants.size

  def torture(flags, seconds, sessions, options)
    command = [ruby, *flags, "-W0", "-I#{Commands::ROOT}/lib", File.join(__dir__, "../torture", "program.rb")]
    # Each session ends once its threads have ended what they are at, which takes a busy machine long.
    limit = Commands::TIME_LIMIT + (2 * seconds)
    outcome = run(*command, seconds.to_s, sessions.to_s, JSON.generate(options), limit:)
    expect([outcome.status, outcome.stderr]).to match([be_success, ""])
    JSON.parse(outcome.stdout, symbolize_names: true)
  end

  def expect_sound_profile(session, said, mode)
    data = read_profile(path_to("#{session}.pb.gz"))
    expect(data).to include(mode:, frequency: 10_000, duration_ns: said[:duration])
    expect(weight_of(data, "Work.redefine")).to be > 0
    expect(data[:samples].size).to be > 50
  end

  variants.each do |name, (flags, options)|
    it "has sound profiles #{name}" do
      results = torture(flags, seconds, sessions, { frequency: 10_000, **options })
      expect(results.size).to eq(sessions)
      results.each_with_index do |said, session|
        duration = said[:duration]
        exact = options[:mode] == :wall
        allowed = (duration * 0.01) + 1e6
        expect(said).to include(main: be_between(exact ? duration - allowed : 1, duration + allowed), dropped: 0)
        expect_sound_profile(session, said, options[:mode])
      end
      # To the end, whatever faults there were.
      takes_stacks = options[:signal].nil? && options[:capture] != :safepoint
      expect(results.last[:stacks]).to(takes_stacks ? be_positive : eq(0))
      # The program itself takes its time to reach all of its memory.
      expect(results.last[:growth]).to be < 30_000
    end
  end
end
