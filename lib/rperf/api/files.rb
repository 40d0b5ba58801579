# frozen_string_literal: true

require_relative "../session/options"
require_relative "asking"
require_relative "profile"

# Profiles to and from files, and several of them.
module Rperf
  class << self
    # Writes a profile to a file.
    #
    # @param path [String, Pathname] the file
    # @param data [Hash] a {Profile}, or a Hash like it
    # @param format [Symbol, nil] :pprof, :collapsed, :text, :markdown, :json, :html, :dot, :callgrind or :spans; nil:
    #   by the file's extension
    # @param lines [Boolean] whether a text file has a table of the hottest lines
    # @param full_path [Boolean] whether text for people has paths as they were recorded
    # @param trim_path [String, Pathname, Array, nil] directories that are taken off paths in text for people
    # @return [nil]
    # @raise [ArgumentError] for an argument that isn't allowed, a name of what rperf never writes, such as .png, a
    #   time line that the profile hasn't, or a Hash that isn't a profile
    # @raise [SystemCallError] if the file can't be written
    def save(path, data, format: nil, lines: false, full_path: false, trim_path: nil)
      Asking.natives.save(path, data, format:, lines:, full_path:, trim_path:)
    end

    # Reads a pprof file: of rperf's, or of any other tool.
    #
    # @param path [String, Pathname] the file
    # @return [Profile] the profile as {Rperf.stop} gives it
    # @raise [Rperf::Error] if it can't be read or is no profile
    def load(path)
      Profile.from_native(NativeProfile.load(Options.path(:path, path)))
    end

    # Adds profiles up.
    #
    # @param profiles [Array<Hash, String, Pathname>] profiles, or the files they are in
    # @return [Profile]
    # @raise [Rperf::Error] if one can't be read, or has other values than the first one
    def merge(*profiles)
      raise ArgumentError, "profiles: there must be one at least" if profiles.empty?

      natives = profiles.map { |profile| Asking.natives.of_any(:profiles, profile) }
      Profile.from_native(NativeProfile.merge(natives))
    end

    # The changes between two profiles, or groups of them, told from noise by the rule of docs/guide/comparing.md. Takes
    # the filters of {Profile}, too.
    #
    # @param base [Profile, Hash, String, Pathname, Array] the profile to compare with, or its file; several are runs
    #   of one program
    # @param target [Profile, Hash, String, Pathname, Array] what is compared with it
    # @param sort [Symbol] `:self`: by what methods take themselves; `:total`: with what they call
    # @param normalize [Symbol, String] how runs are scaled: :none, :total, :duration, :requests or
    #   "label:KEY"
    # @param limit [Integer, nil] rows at most; nil: all
    # @param tests [Boolean] whether the rows are tests, as those of `rperf diff --tests`: `value:` is then
    #   :wall_without_gc (unless given), :wall, :running, :gvl_wait, :blocked, :gc or :objects, and `sort:`,
    #   `normalize:` and filters have no meaning
    # @return [Hash] `:total` and `:rows`, which have `:delta` (target less base) and `:change`: "slower" or "faster" of
    #   times, "more" or "less" of other values, "noise", or "unknown" if the profiles can't tell
    # @raise [Rperf::Error] if one can't be read, or they can't be compared
    def diff(base, target, sort: :self, normalize: :none, limit: nil, tests: false, **filters)
      Asking.natives.diff(base, target, sort:, normalize:, limit:, tests:, **filters)
    end
  end
end
