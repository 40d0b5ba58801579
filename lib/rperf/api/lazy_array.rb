# frozen_string_literal: true

module Rperf
  # An Array that is made when something is asked of it, such as the samples of a profile. It converts itself to that
  # Array, and answers to all methods of one.
  class LazyArray
    include Enumerable

    # @yieldreturn [Array]
    def initialize(&make)
      @make = make
    end

    # @return [Array] the same one each time
    def to_a
      # To make it takes a while. Another thread may have done it meanwhile.
      @array || @make.call.then { |made| @array ||= made }
    end
    alias to_ary to_a

    (Array.public_instance_methods(false) - %i[to_a to_ary]).each do |name|
      define_method(name) { |*arguments, **keywords, &block| to_a.public_send(name, *arguments, **keywords, &block) }
    end

    # Whether `object` is that Array.
    def made?(object) = !@array.nil? && @array.equal?(object)

    # The extension of the json gem reads the values of a Hash past the methods of the Hash.
    def to_json(*) = to_a.to_json(*)

    # So does Marshal. What it reads back is an Array.
    def _dump(_depth) = Marshal.dump(to_a)
    # It is a part of what is being loaded anyway.
    def self._load(text) = Marshal.load(text) # rubocop:disable Security/MarshalLoad
  end
  private_constant :LazyArray
end
