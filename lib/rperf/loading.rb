# frozen_string_literal: true

# Profiles from files, and several of them.
module Rperf
  class << self
    # Reads a pprof file: of rperf's, or of any other tool.
    #
    # @param path [String, Pathname] the file
    # @return [Profile] the profile as {Rperf.stop} gives it
    # @raise [Rperf::Error] if it can't be read or is no profile
    def load(path)
      Result.from_profile(NativeProfile.load(Options.path(:path, path)))
    end

    # Adds profiles up.
    #
    # @param profiles [Array<Hash, String, Pathname>] profiles, or the files they are in
    # @return [Profile]
    # @raise [Rperf::Error] if one can't be read, or has other values than the first one
    def merge(*profiles)
      raise ArgumentError, "profiles: there must be one at least" if profiles.empty?

      natives = profiles.map { |profile| native_profile(:profiles, profile) }
      Result.from_profile(NativeProfile.merge(natives))
    end

    # The changes between two profiles, or groups of them, told from noise by the rule of docs/guide/comparing.md. Takes
    # the filters of {Profile}, too.
    #
    # @param base [Profile, Hash, String, Pathname, Array] the profile to compare with, or its file; several are runs
    #   of one program
    # @param target [Profile, Hash, String, Pathname, Array] what is compared with it
    # @param sort [Symbol] :flat: by what methods take themselves; :cum: with what they call
    # @param normalize [Symbol, String] how runs are scaled: :none, :total, :duration or "label:KEY"
    # @param limit [Integer, nil] rows at most; nil: all
    # @return [Hash] `:total` and `:rows`, which have `:delta` (target less base) and `:change`: "more", "less",
    #   "noise", or "unknown" if the profiles can't tell
    # @raise [Rperf::Error] if one can't be read, or they can't be compared
    def diff(base, target, sort: :flat, normalize: :none, limit: nil, **filters)
      options = [Questions.sort(sort), Questions.scaling(normalize), Questions.limit(limit),
                 Questions.filters(**filters)]
      NativeProfile.diff(runs(:base, base), runs(:target, target), *options)
    end

    private

    def native_profile(name, value)
      return Result.profile(value) if Options.a?(value, Hash)

      path = Options.path(name, value)
      NativeProfile.load(path)
    end

    def runs(name, side)
      side = [side] unless Options.a?(side, Array)
      raise ArgumentError, "#{name}: there must be one profile at least" if side.empty?

      side.map { |profile| native_profile(name, profile) }
    end
  end
end
