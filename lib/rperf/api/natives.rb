# frozen_string_literal: true

module Rperf
  # The native profiles behind the Hashes and files that the API takes. A Hash that the API gave remembers its native
  # profile, which knows more (lines, names of threads), for as long as nothing in it was changed.
  module Natives
    # Names under which the samples are found.
    SAMPLES = %i[samples aggregated_samples raw_samples].freeze
    private_constant :SAMPLES

    class << self
      # @return [NativeProfile] the one that the Hash was made from, or a new one
      def of(data)
        unless Argument.a?(data, Hash)
          raise ArgumentError, "data: must be the Hash that Rperf.stop returned, not #{Argument.shown(data)}"
        end

        origin = Origin.of(data)
        return NativeProfile.from_h(data) unless origin&.profile
        return origin.profile if origin.untouched?(data)

        NativeProfile.from_h(changed_samples_first(data, origin.content))
      end

      # @param value [Hash, String, Pathname] a profile, or the file it is in
      # @return [NativeProfile]
      def of_any(name, value)
        return of(value) if Argument.a?(value, Hash)

        path = Options.path(name, value)
        NativeProfile.load(path)
      end

      # See {Rperf.diff}.
      def diff(base, target, sort: :self, normalize: :none, limit: nil, tests: false, **filters)
        order = [Questions.sort(sort), Questions.scaling(normalize)]
        limit = Questions.limit(limit)
        return diff_tests(base, target, order, limit, **filters) if Argument.one_of(:tests, tests, [true, false])

        NativeProfile.diff(runs(:base, base), runs(:target, target), *order, limit, Questions.filters(**filters))
      end

      # See {Rperf.save}.
      def save(path, data, format: nil, lines: false, full_path: false, trim_path: nil)
        path = Options.path(:path, path)
        format = Options.format(format)
        lines = Argument.one_of(:lines, lines, [true, false])
        full_path = Argument.one_of(:full_path, full_path, [true, false])
        trim_path = directories(:trim_path, trim_path)
        profile = of(data)
        profile.write(path, format, lines:, full_path:, trim_path:)
        nil
      end

      private

      # @return [Array<String>] for a directory, several of them, or nil
      def directories(name, value)
        values = Argument.a?(value, Array) ? value : [value].compact
        values.map { |it| Options.path(name, it) }
      end

      # The samples have two keys. If one holds a new array, that one counts.
      def changed_samples_first(data, original)
        changed = SAMPLES.find { |key| data.key?(key) && !LazyValues.kept?(data, key, original[key]) }
        changed ? data.reject { |key, _| SAMPLES.include?(key) && key != changed } : data
      end

      # What else is chosen of samples means nothing for tests.
      def diff_tests(base, target, order, limit, value: nil, **filters)
        chosen = [*(:sort if order.first != "self"), *(:normalize if order.last != "none"), *filters.keys]
        raise ArgumentError, "#{chosen.first}: has no meaning for tests" unless chosen.empty?

        NativeProfile.diff_tests(runs(:base, base), runs(:target, target), Questions.test_value(value), limit)
      end

      def runs(name, side)
        side = [side] unless Argument.a?(side, Array)
        raise ArgumentError, "#{name}: there must be one profile at least" if side.empty?

        side.map { |profile| of_any(name, profile) }
      end
    end
  end
  private_constant :Natives
end
