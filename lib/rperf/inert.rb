# frozen_string_literal: true

require_relative "errors"

# The API of a program that can't be profiled but must run: methods that only profile do nothing, and methods that
# give or take profiles raise the reason. Any Ruby may load this file: no syntax newer than Ruby 2.5.
module Rperf
  class << self
    # Why nothing can be profiled here.
    attr_writer :obstacle
    private :obstacle=

    # @raise [Rperf::Error] always
    def start(**_options)
      raise Error, "nothing can be profiled here: #{@obstacle}"
    end

    # @raise [Rperf::Error] always
    def trace(**_options)
      start
    end

    # @raise [Rperf::Error] always
    def save(*_arguments, **_options)
      raise Error, "no profile can be written here: #{@obstacle}"
    end

    # @raise [Rperf::Error] always
    def load(*_arguments)
      raise Error, "no profile can be read here: #{@obstacle}"
    end

    # @raise [Rperf::Error] always
    def merge(*_arguments)
      raise Error, "no profiles can be merged here: #{@obstacle}"
    end

    # @raise [Rperf::Error] always
    def diff(*_arguments, **_options)
      raise Error, "no profiles can be compared here: #{@obstacle}"
    end

    # @return [nil]
    def stop(**_options)
      nil
    end

    # @return [nil]
    def snapshot(**_options)
      nil
    end

    # @return [nil]
    def listen(*_arguments, **_options)
      nil
    end

    # @return [nil]
    def push(**_options)
      nil
    end

    # @return [nil]
    # @raise [ArgumentError] without a block
    def account(*_names)
      raise ArgumentError, "Rperf.account needs a block" unless block_given?

      yield nil
      nil
    end

    # @return [nil]
    # @raise [ArgumentError] without a block
    def on_account
      raise ArgumentError, "Rperf.on_account needs a block" unless block_given?
    end

    # @return [Hash] empty
    def accounts
      {}
    end

    # @return [false]
    def running?
      false
    end

    # @return the block's value; without a block {}
    def label(**_labels)
      block_given? ? yield : {}
    end

    # @return the block's value; without a block false
    def pause
      block_given? ? yield : false
    end

    # @return [false]
    def resume
      false
    end

    # @return the block's value
    def op(_name, **_options)
      yield
    end

    # @raise [Rperf::Error] always
    def op_calls(**_options)
      raise Error, "no ops can be counted here: #{@obstacle}"
    end

    # @return [Hash] empty
    def labels
      {}
    end

    # @return the block's value
    # @raise [ArgumentError] without a block
    def profile(**_labels)
      raise ArgumentError, "Rperf.profile needs a block" unless block_given?

      yield
    end
  end
end
