# frozen_string_literal: true

require_relative "../errors"
require_relative "../hooks/fork_guard"
require_relative "../stderr"

# Accounts of requests, jobs and blocks.
module Rperf
  # Where the time of a request, a job or a block went. Its states add up to the wall time, to the
  # nanosecond: running, GVL wait, blocked, garbage collection, and suspended, which is the time in which
  # other fibers of the thread had control. It belongs to the fiber that it was opened in.
  #
  # While it is open, it says what has passed so far. All values are nil where they can't be told: in a
  # process that was forked meanwhile, and of a thread that has ended.
  #
  # @see Rperf.account
  class Account
    # The values: times in ns, and two counts.
    VALUES = %i[
      wall_ns running_ns gvl_wait_ns blocked_ns gc_ns suspended_ns cpu_ns gvl_blame_ns allocated_objects hand_overs
    ].freeze
    # The states, as a line of a log names them.
    STATES = { running_ns: "running", gvl_wait_ns: "GVL wait", blocked_ns: "blocked", gc_ns: "GC",
               suspended_ns: "suspended" }.freeze
    # The metrics of the header Server-Timing.
    METRICS = { running_ns: "run", gvl_wait_ns: "gvl", blocked_ns: "blocked", gc_ns: "gc", suspended_ns: "suspended",
                cpu_ns: "cpu", queue_ns: "queue" }.freeze
    private_constant :STATES, :METRICS

    # @!attribute [r] name
    #   @return [String, nil] the endpoint, the job, or what {Rperf.account} was given; frozen

    # @param name [#to_s, nil]
    # @raise [FrozenError] for a frozen account
    def name=(name)
      take_name(name&.to_s)
    end

    # @!attribute [rw] queue_ns
    #   @return [Integer, nil] how long the request had waited before, by its header X-Request-Start
    attr_accessor :queue_ns

    VALUES.each_with_index do |value, index|
      define_method(value) { figures&.at(index) }
    end

    # The ops that have ended in it, such as queries. Each has `:name`, `:calls`, `:wall_ns`, with the ops inside of it,
    # and `:own_ns`, without these; those with the most `:own_ns` come first.
    #
    # @return [Array<Hash>, nil] nil unless a session measured ops (`measure: :ops`) when it was opened, and where its
    #   values can't be told
    def ops = op_rows&.map { |name, calls, wall_ns, own_ns| { name:, calls:, wall_ns:, own_ns: } }

    # @return [Hash{Symbol => Integer, Array, nil}] all values, of one moment
    def to_h = VALUES.zip(figures || []).to_h.merge!(queue_ns:, ops:)

    # @return [String] such as "412.3 ms = 31.0 running + 350.2 GVL wait + 31.1 blocked; 48000 objects; 41 ops"
    def to_s
      values = to_h
      return "unknown" unless values[:wall_ns]

      states = STATES.filter_map { |key, word| "#{ms(values[key])} #{word}" if values[key].positive? }
      further = ["#{ms(values[:wall_ns])} ms = #{states.join(" + ")}"]
      further << "#{values[:allocated_objects]} objects" if values[:allocated_objects]
      further << "#{values[:ops].sum { |op| op[:calls] }} ops" if values[:ops]
      further << "queue #{ms(values[:queue_ns])} ms" if values[:queue_ns]
      further.join("; ")
    end

    # @return [String] the value of the header Server-Timing, in ms
    def server_timing
      values = to_h
      known = METRICS.select { |key, _| values[key]&.positive? }
      known.map { |key, metric| "#{metric};dur=#{ms(values[key])}" }.join(", ")
    end

    # @return [String]
    def inspect = "#<Rperf::Account #{[name, self].compact.join(" ")}>"

    private

    def ms(nanoseconds) = (nanoseconds / 1e6).round(1)
  end

  # What becomes of accounts as they end, and whether middleware opens some.
  module Accounts
    # The mode of {Rperf.start} that opens an account for each request and job, and takes no sample.
    MODE = :account
    # The fiber-local variable that is true while handlers run: accounts that end meanwhile are told to none.
    TELLING = :__rperf_telling__
    # An exception from another thread (Thread#raise, Timeout with a class of its own) isn't the handler's: it waits.
    LATER = { StandardError => :never }.freeze
    private_constant :TELLING, :LATER
    @handlers = []

    class << self
      # Whether requests and jobs get an account.
      # @return [Boolean]
      def on? = Native.accounted?

      # Whether this is the mode of {Rperf.start} for it.
      def mode?(mode) = [MODE, MODE.name].include?(mode)

      # @return [true]
      # @raise [ArgumentError] for further settings
      # @raise [Rperf::Error] if they are on already, and in another Ractor
      def begin(settings = {})
        further = settings.keys - [:mode]
        raise ArgumentError, "mode: :account takes no #{further.first}:, as it takes no samples" unless further.empty?

        check_ractor
        raise Error, "accounts are on already; Rperf.stop(mode: :account) ends them" if on?

        # Forks take the hooks away for a moment.
        ForkGuard.install
        Native.begin_accounts
        true
      end

      # @return [Hash] what was kept
      def end
        check_ractor
        kept = Native.kept_accounts
        Native.end_accounts
        kept
      end

      # Has the block be called with each account that ends.
      def add(handler)
        check_ractor
        @handlers += [handler]
        Native.tell_accounts
      end

      # Runs the block with an account, which it gets. Whatever it names it counts for.
      #
      # @return the block's value
      def run
        opened = []
        ForkGuard.install
        Native.open_account(opened)
        yield opened.first
      ensure
        # One call of C: no interrupt can come before it has done its work.
        Native.close_account(opened)
        ended(opened.first)
      end

      # Has all handlers learn of an account that has ended.
      def tell(account)
        return if @handlers.empty? || Thread.current[TELLING]

        begin
          Thread.current[TELLING] = true
          @handlers.each { |handler| call(handler, account) }
        ensure
          Thread.current[TELLING] = nil
        end
      end

      private

      def check_ractor
        raise Error, "accounts are the main Ractor's: this is another one" unless Native.main_ractor?
      end

      # It counts for its name, and all handlers learn of it.
      def ended(account)
        return unless account&.known?

        Native.keep_account(account) if on?
        tell(account)
      end

      def call(handler, account)
        Thread.handle_interrupt(LATER) do
          handler.call(account.name, account)
        rescue StandardError => e
          complain(e)
        end
      end

      # Once: the same fault in every request would fill the log.
      def complain(error)
        return if @complained

        @complained = true
        Stderr.write("rperf: a block of Rperf.on_account failed: #{error.message} (#{error.class})\n")
      rescue StandardError
        nil # An exception without a message: the work goes on.
      end
    end
  end
  private_constant :Accounts

  class << self
    # Tells where the time of the block went, without a profile: its wall time, split into states, its CPU
    # time, and the objects that it made. Works whether profiling is on or not. The block gets the account,
    # and may ask it what has passed so far.
    #
    # @param name [#to_s, nil] for {Rperf.on_account}, and {Rperf.accounts}
    # @return [Account, nil] nil outside of the main Ractor, where the block just runs
    # @raise [ArgumentError] without a block
    # @example
    #   account = Rperf.account("import") { import }
    #   logger.info(account.to_s)
    def account(name = nil)
      raise ArgumentError, "Rperf.account needs a block" unless block_given?

      unless Native.main_ractor?
        yield
        return
      end
      Accounts.run do |account|
        account.name = name
        yield account
        account
      end
    end

    # Has the block be called with each account that ends: of {Rperf.account}, and of requests and jobs, if
    # `Rperf.start(mode: :account)` was called. It runs where the account ends; accounts that end meanwhile are
    # told to no block. If it fails, the first time is told on stderr, and the program goes on.
    #
    # @yieldparam name [String, nil] the endpoint, the job, or the name given
    # @yieldparam account [Account]
    # @return [nil]
    # @example
    #   Rperf.on_account { |name, account| statsd.timing("gvl.#{name}", account.gvl_wait_ns / 1e6) }
    def on_account(&block)
      raise ArgumentError, "Rperf.on_account needs a block" unless block

      Accounts.add(block)
      nil
    end

    # @return [Hash{String => Hash}] of each name `:count`, and for each value a Hash with its `:sum`, `:p50`,
    #   `:p90`, `:p99` and `:max`, since `Rperf.start(mode: :account)`; quantiles are at most 6 % off. 1,000
    #   names at most; all others are "(other)".
    def accounts = Native.main_ractor? ? Native.kept_accounts : {}
  end
end
