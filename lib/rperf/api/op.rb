# frozen_string_literal: true

require_relative "../argument"
require_relative "../builtin"

# Ops: work that has a name while it lasts, such as a query or a request to another server.
module Rperf
  class << self
    # Gives the work of the block a name, if the session measures ops (`measure: :ops`): samples have it as
    # the leaf of their stacks, and {Profile#ops} has the exact sums of all calls. An op belongs to its
    # fiber. One inside another is the leaf meanwhile. Of the kind `render`, whose text is a path, samples
    # have the op around it, and of `perform` none: their methods say more.
    #
    # Does nothing but check its arguments and run the block in all other sessions, without one, and outside of the main
    # Ractor.
    #
    # @param name [String, Symbol] must tell few ops apart, up to 4,000: no ids or values. Of statements of SQL
    #   (`kind: :sql`) the values are left out.
    # @param kind [Symbol, String] such as `:sql`, `:http`, `:redis`; stands in front of the name
    # @return the block's value
    # @raise [ArgumentError] if the name or the kind is something else, also where no session runs
    # @example
    #   Rperf.op("exchange rates", kind: :grpc) { client.rates(date) }
    def op(name, kind: :op)
      OpName.check(name, kind)
      return yield unless Native.main_ractor? && Native.ops?

      undo = []
      begin
        Native.begin_op(undo, kind, OpName.text(name))
        yield
      ensure
        # One call of C: no interrupt can come before it has done its work.
        Native.end_op(undo)
      end
    end

    # Counts the calls of ops that end while the block runs, on all threads. If no session runs, it has one of its own
    # meanwhile. For tests: in RSpec `expect { }.to make_at_most(10).queries` and in Minitest `assert_at_most(10) { }`
    # call it.
    #
    # @param kind [Symbol, String, nil] such as `:sql`, `:http`, `:redis`; nil: all
    # @return [Hash{String => Integer}] calls by the op's name, as in {Profile#ops}, most first
    # @raise [ArgumentError] without a block, and for another kind
    # @raise [Rperf::Error] if the session that runs doesn't measure ops, if none can begin, if the block ends it, and
    #   in a handler of a signal
    # @example
    #   Rperf.op_calls(kind: :sql) { Order.recent.each(&:customer) }
    #   # => {"[SQL] SELECT * FROM customers WHERE id = ?" => 40, "[SQL] SELECT * FROM orders LIMIT ?" => 1}
    def op_calls(kind: nil, &block)
      raise ArgumentError, "Rperf.op_calls needs a block" unless block

      OpName.check_kind(kind) unless kind.nil?
      OpCalls.count(kind&.to_s, &block)
    end
  end

  # Names and kinds of ops, as programs give them. What is wrong is so without a session, too: a program must not fail
  # as it is measured alone.
  module OpName
    class << self
      def check(name, kind)
        check_kind(kind)
        case name
        when String, Symbol then nil
        else Argument.reject(:name, name, "a String or a Symbol")
        end
      end

      def check_kind(kind)
        case kind
        when Symbol, String then return if kind.match?(/\S/)
        end
        Argument.reject(:kind, kind, "a Symbol or a String, not an empty one")
      end

      def text(name)
        case name
        when Symbol then Builtin::SYMBOL_NAME.bind_call(name)
        else name
        end
      end
    end
  end
  private_constant :OpName

  # The calls of ops while a block runs. Blocks of several threads, as of tests that run in parallel, share the session
  # that the first one begins and the last one ends.
  module OpCalls
    @lock = Thread::Mutex.new
    @users = 0

    class << self
      # @return [String, nil] why calls can't be counted now
      def obstacle
        "the session that runs doesn't measure ops (measure: :ops, --measure ops)" if Rperf.running? && !Native.ops?
      end

      # See {Rperf.op_calls}.
      def count(kind)
        entered = false
        begin
          uninterrupted { entered = enter }
          session, before = calls(kind)
          yield
          ended, after = calls(kind)
          raise Error, "the session has ended before its ops could be counted" unless session == ended

          difference(before, after)
        ensure
          uninterrupted { leave } if entered
        end
      end

      private

      def uninterrupted(&) = Thread.handle_interrupt(Object => :never, &)

      # Begins a session unless one measures ops. Returns whether the block is a user of such a one.
      def enter
        take_lock
        begin
          return (@users += 1).positive? if @users.positive? && Session.running.equal?(@session)
          return false if Native.ops?
          raise Error, obstacle if obstacle

          Rperf.start(mode: :wall, frequency: 1, measure: :ops)
          @session = Session.running
          @users = 1
          true
        ensure
          @lock.unlock
        end
      end

      def take_lock
        @lock.lock
      rescue ThreadError
        raise Error, "ops can't be counted in a handler of a signal"
      end

      # The program may have ended it, and begun one of its own.
      def leave
        @lock.synchronize do
          @users -= 1
          next if @users.positive?

          Rperf.stop if @session && Session.running.equal?(@session)
          @session = nil
        end
      end

      # @return [Array] the number of the session, and the calls since it began
      def calls(kind)
        session = Native.samples
        calls = Native.op_calls(kind) or raise Error, "the session has ended before its ops could be counted"
        [session, calls.each_slice(2).to_h]
      end

      def difference(before, after)
        calls = after.to_h { |name, count| [name, count - before.fetch(name, 0)] }
        calls.select { |_, count| count.positive? }.sort_by { |name, count| [-count, name] }.to_h
      end
    end
  end
  private_constant :OpCalls
end
