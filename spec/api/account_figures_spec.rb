# frozen_string_literal: true

# How near the figures of an account come to the program's own clocks, and to the number of objects that it makes.
RSpec.describe "The figures of an account", vm: true do
  # From Ruby 4.0 on the VM counts objects in portions.
  tolerance = RUBY_VERSION < "4.0" ? 5 : 1_024

  # Computes for 20 ms, sleeps for 30, waits for another thread that computes for 40, and makes 10,000 objects. On a
  # busy machine a thread may have no CPU between its own clock and the VM's: so there are several tries.
  states = <<~RUBY
    def now = Process.clock_gettime(Process::CLOCK_MONOTONIC, :nanosecond)

    def compute(ms)
      deadline = now + (ms * 1_000_000)
      nil while now < deadline
    end

    def attempt
      go = Queue.new
      begun = ended = busy = asleep = made = nil
      hog = Thread.new do
        go.pop
        begun = now
        compute(40)
        ended = now
      end
      Thread.pass until hog.stop?
      account = Rperf.account do
        since = now
        compute(20)
        busy = now - since
        since = now
        sleep(0.03)
        asleep = now - since
        go << true
        # Nobody takes the GVL from the other thread: its time slice has 100 ms.
        Thread.pass
        since = now
        10_000.times { Object.new }
        made = now - since
      end
      hog.join
      { account: account.to_h, own: { running_ns: busy + made, blocked_ns: asleep, gvl_wait_ns: ended - begun } }
    end

    # The first call makes some objects of its own.
    attempt
    puts Array.new(10) { attempt }.to_json
  RUBY

  # The account's times beside those of the program's clocks. A collection counts as running there.
  def pairs(attempt)
    account, own = attempt.values_at(:account, :own)
    { running: [account[:running_ns] + account[:gc_ns], own[:running_ns]],
      blocked: [account[:blocked_ns], own[:blocked_ns]], gvl_wait: [account[:gvl_wait_ns], own[:gvl_wait_ns]] }
  end

  def worst(attempt) = pairs(attempt).values.map { |account, own| (account - own).abs - (0.02 * own) }.max

  Compilers::FLAGS.merge("no compiler" => "--disable-yjit").each do |name, option|
    it "are those of its own clocks, state by state, and all objects, with #{name}", alone: true do
      attempts = told(states, option, symbolize_names: true)
      pairs(attempts.min_by { |it| worst(it) }).each do |state, (account, own)|
        expect(account).to be_within((0.02 * own) + 300_000).of(own), state.to_s
      end
      expect(attempts.map { |it| it[:account][:allocated_objects] }).to all(be_within(tolerance).of(10_000))
      expect(attempts.map { |it| it[:account][:suspended_ns] }).to all(eq(0))
    end
  end

  it "have the objects of its own thread alone, where two threads make some at once" do
    pairs = told(<<~RUBY)
      # In 200 turns, as each gives the GVL to the other one after so many objects.
      def make(objects) = 200.times { (objects / 200).times { Object.new }; Thread.pass }

      def both
        ready = Queue.new
        go = Queue.new
        threads = [20_000, 5_000].map do |objects|
          Thread.new do
            ready << true
            go.pop
            Rperf.account { make(objects) }
          end
        end
        2.times { ready.pop }
        2.times { go << true }
        threads.map(&:value).map { |account| [account.allocated_objects, account.hand_overs] }
      end

      both
      puts Array.new(5) { both }.to_json
    RUBY
    pairs.each do |(many, many_turns), (few, few_turns)|
      expect(many).to be_within(tolerance).of(20_000)
      expect(few).to be_within(tolerance).of(5_000)
      expect([many_turns, few_turns]).to all(be >= 100)
    end
  end
end
