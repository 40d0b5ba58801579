# frozen_string_literal: true

module Rperf
  # Between a native profile and the Hash that users get. The Hash remembers the
  # profile, which knows more (lines, names of threads), for as long as nothing
  # in it was changed.
  module Result
    # Names under which the samples are found.
    SAMPLES = %i[samples aggregated_samples raw_samples].freeze

    # What was made, and from what.
    Origin = Struct.new(:profile, :content) do
      # Whether `data` still holds what was put in.
      def untouched?(data)
        data.size == content.size && content.all? { |key, value| data[key].equal?(value) }
      end

      # The profile itself is nothing that another process could use.
      def marshal_dump = nil
      def marshal_load(_nothing) = nil
    end
    private_constant :SAMPLES, :Origin

    class << self
      # @return [Profile] what {Rperf.stop} returns
      def from_profile(profile)
        content = profile.to_h.freeze
        data = Profile[content]
        data.instance_variable_set(:@rperf_origin, Origin.new(profile, content))
        data
      end

      # @return [NativeProfile] the one that the Hash was made from, or a new one
      def profile(data)
        unless Options.a?(data, Hash)
          raise ArgumentError, "data: must be the Hash that Rperf.stop returned, not #{Options.shown(data)}"
        end

        origin = data.instance_variable_get(:@rperf_origin)
        return NativeProfile.from_h(data) unless origin&.profile
        return origin.profile if origin.untouched?(data)

        NativeProfile.from_h(changed_samples_first(data, origin.content))
      end

      private

      # The samples have two names; who put a new array under one means that one.
      def changed_samples_first(data, original)
        changed = SAMPLES.find { |key| data.key?(key) && !data[key].equal?(original[key]) }
        changed ? data.reject { |key, _| SAMPLES.include?(key) && key != changed } : data
      end
    end
  end
  private_constant :Result
end
