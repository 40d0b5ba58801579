# frozen_string_literal: true

require_relative "../stderr"

module Rperf
  # A limit of the calls of ops that a block of a test may make, such as queries.
  class OpLimit
    # Names that the message of a failure has.
    MOST_NAMES = 10
    private_constant :MOST_NAMES

    # @param most [Integer] calls that are allowed
    # @param kind [Symbol, String, nil] the kind of ops, such as `:sql`; nil: all
    def initialize(most, kind)
      unless most.is_a?(Integer) && !most.negative?
        raise ArgumentError, "most: must be a number of calls, not #{most.inspect}"
      end

      @most = most
      @kind = kind
    end

    # @return [Boolean, nil] whether the block keeps to the limit; nil if that can't be told, because the suite runs in
    #   a session without ops: it must not fail for that
    def kept?(&)
      if (obstacle = OpCalls.obstacle)
        OpLimit.complain(obstacle)
        yield
        return
      end
      @calls = Rperf.op_calls(kind: @kind, &)
      count <= @most
    end

    # Once.
    def self.complain(obstacle)
      return if @complained

      @complained = true
      Stderr.write("rperf: limits of ops aren't checked: #{obstacle}\n")
    end

    # @return [String] what the block should have done
    def to_s = "make at most #{@most} #{noun}"

    # @return [String] how many calls the block has made, of which ops
    def message(to = "to")
      lines = @calls.first(MOST_NAMES).map { |name, calls| "#{calls.to_s.rjust(8)}  #{name}" }
      further = @calls.size - lines.size
      lines << "          and #{further} more" if further.positive?
      ["expected the block #{to} #{self}, but it made #{count}:", *lines].join("\n")
    end

    private

    def noun
      one = @most == 1
      case @kind
      when :sql then one ? "query" : "queries"
      when nil then one ? "op" : "ops"
      else "#{one ? "op" : "ops"} of the kind #{@kind}"
      end
    end

    def count = @calls.sum { |_, calls| calls }
  end
  private_constant :OpLimit
end
