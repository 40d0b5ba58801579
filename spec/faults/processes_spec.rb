# frozen_string_literal: true

# Programs with very many children, which end in all the ways that there are.
RSpec.describe "A profiled program", **Faults::MARKS do
  include Faults

  count = Commands::LONG ? 2000 : 100

  # Each tenth child is another program, which is no Ruby; of the others that are killed nobody has a profile.
  program = <<~'RUBY'
    wait = ->(pid) { Process.wait2(pid).last.then { |it| it.exitstatus || -it.termsig } }
    ways = [
      -> { fork { 1 } },
      -> { fork { exit!(3) } },
      -> { fork { exec("true") } },
      -> { spawn("true") },
      -> { fork { Process.kill(:KILL, Process.pid) } },
      -> { fork { Process.kill(:TERM, Process.pid); Kernel.sleep } },
      -> { fork { fork { exit!(0) }; Process.wait } },
      -> { fork { raise SystemExit } },
      -> { fork { abort } },
      -> { fork { exec("/no/such/program") rescue exit(5) } }
    ]
    statuses = COUNT.times.each_slice(20).flat_map { |slice| slice.map { |it| ways[it % 10].call }.map(&wait) }
    statuses.tally.sort
  RUBY

  it "is as without rperf, and as many processes are named as there were (#{count} children)" do
    lefts = expect_same(program_of(program.sub("COUNT", count.to_s)), is_whole: false, lines: 1..5, limit: 600)
    lefts.each do |left|
      named = left.profile[:label_sets].filter_map { |set| set[:"%pid"] }.uniq.size
      told = left.messages.join
      # The program, and those that are Ruby to their end, or until they become something else.
      expect(told).to match(/samples of \d+ processes/)
      expect([named, told[/samples of (\d+)/, 1].to_i]).to all(be_between(count * 0.5, (count * 1.1) + 1))
    end
  end
end
