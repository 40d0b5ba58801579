# frozen_string_literal: true

require_relative "op_limit"

module Rperf
  # Matchers of RSpec, part of each example group.
  module RSpecMatchers
    # @example
    #   expect { get "/orders" }.to make_at_most(10).queries
    class MakeAtMost
      def initialize(most)
        @most = most
      end

      # The limit is one of statements of SQL.
      def queries = of(:sql)

      # The limit is one of ops of this kind, such as `:http`, `:redis` or `:cache`; without one, of all.
      def ops(kind = nil) = of(kind)

      # @return [Boolean] whether the block keeps to the limit, as far as that can be told
      def matches?(block) = kept?(block) != false

      # @return [Boolean] whether the block doesn't, as far as that can be told
      def does_not_match?(block) = kept?(block) != true

      # @return [String] the names of the ops
      def failure_message = @limit.message

      # @return [String] the same of `not_to`
      def failure_message_when_negated = @limit.message("not to")

      # @return [String] for the name of an example
      def description = @limit.to_s

      # It is asked of blocks only.
      def supports_block_expectations? = true

      # It is asked of blocks only.
      def supports_value_expectations? = false

      private

      def kept?(block)
        raise ArgumentError, "say of what: make_at_most(#{@most}).queries, or .ops" unless @limit

        @limit.kept?(&block)
      end

      def of(kind)
        @limit = OpLimit.new(@most, kind)
        self
      end
    end
    private_constant :MakeAtMost

    # A limit for the calls of ops that a block makes: of queries, or of ops of another kind.
    def make_at_most(most)
      matcher = MakeAtMost.new(most)
      # It is loaded after the helper of the specs that requires this file, if at all.
      matcher.extend(::RSpec::Matchers::Composable) if defined?(::RSpec::Matchers::Composable)
      matcher
    end
  end
  private_constant :RSpecMatchers
end
