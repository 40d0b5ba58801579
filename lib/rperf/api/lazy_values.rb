# frozen_string_literal: true

require_relative "../argument"
require_relative "lazy_array"

module Rperf
  # For a Hash with values that are {LazyArray}s until something asks for them: all methods of Hash see Arrays. Only
  # code that reads the Hash past its methods (`**`, a merge into another Hash, extensions in C) meets a {LazyArray},
  # which stands in for its Array there.
  module LazyValues
    # Where there are such values.
    KEYS = %i[samples aggregated_samples raw_samples label_sets].freeze
    # These methods need no values.
    WITHOUT_VALUES = %i[
      compare_by_identity compare_by_identity? deconstruct_keys default default= default_proc default_proc= each_key
      empty? has_key? include? key? keys length member? rehash size to_hash
    ].freeze
    # These need the values of the keys that they are given.
    BY_KEY = %i[[] []= delete dig fetch fetch_values slice store values_at].freeze
    READ = Hash.instance_method(:fetch)
    WRITE = Hash.instance_method(:[]=)
    private_constant :KEYS, :WITHOUT_VALUES, :BY_KEY, :READ, :WRITE

    BY_KEY.each do |name|
      define_method(name) do |*arguments, **keywords, &block|
        make_values(KEYS.select { |key| arguments.any? { |it| key.equal?(it) } })
        super(*arguments, **keywords, &block)
      end
    end

    [*(Hash.public_instance_methods(false) - WITHOUT_VALUES - BY_KEY), :freeze, :clone].uniq.each do |name|
      define_method(name) do |*arguments, **keywords, &block|
        make_values(KEYS)
        super(*arguments, **keywords, &block)
      end
    end

    # Whether `hash` holds `value` under `key`, or the Array that it has become.
    def self.kept?(hash, key, value)
      present = READ.bind_call(hash, key, nil)
      present.equal?(value) || (Argument.a?(value, LazyArray) && value.made?(present))
    end

    private

    def make_values(keys)
      keys.each do |key|
        value = READ.bind_call(self, key, nil)
        next if !Argument.a?(value, LazyArray) || frozen?

        array = value.to_a
        # Another thread may have put something else there meanwhile.
        WRITE.bind_call(self, key, array) if READ.bind_call(self, key, nil).equal?(value)
      end
    end
  end
  private_constant :LazyValues
end
