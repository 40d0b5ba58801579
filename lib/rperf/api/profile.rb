# frozen_string_literal: true

require_relative "../argument"
require_relative "../session/options"
require_relative "asking"
require_relative "lazy_values"
require_relative "origin"

module Rperf
  # A profile: the Hash that docs/guide/ruby-api.md describes, which answers questions. The answers are those of
  # `rperf report`, `rperf why` and `rperf diff`: Hashes with the names of docs/guide/json.md as Symbols. As long as
  # nothing in the Hash is changed, they come from the profile itself; afterwards, from the contents of the Hash.
  #
  # All methods take the filters of the command as keywords: `focus:`, `ignore:`, `hide:`, `hide_ops:`, `show:`,
  # `show_from:`, `tagfocus:`, `tagignore:`, `tagroot:`, `tagleaf:`, `thread:`, `pid:`, and `value:`, which chooses the
  # values.
  class Profile < Hash
    include LazyValues

    # @private
    # @return [Profile] what {Rperf.stop} returns
    def self.from_native(profile)
      content = profile.facts.merge(lazy_arrays(profile)).freeze
      Origin.note(self[content], profile, content)
    end

    # Of 100,000 stacks the Arrays have millions of elements, and most programs only save a profile, or ask it
    # questions.
    def self.lazy_arrays(profile)
      arrays = Hash.new { |made, name| made[name] = LazyArray.new { profile.public_send(name) } }
      profile.arrays.transform_values { |name| arrays[name] }
    end
    private_class_method :lazy_arrays

    # What the profile adds up to, by state, and what it lacks.
    #
    # @return [Hash] `:total` is of all, `:left` of what the filters leave
    # @example A method's share of the time
    #   totals = profile.totals(focus: /\AOrder#total\z/)
    #   totals[:left].fdiv(totals[:total])
    def totals(**filters) = native.totals(questions.filters(**filters))

    # The methods with the most.
    #
    # @param limit [Integer, nil] rows at most; nil: all
    # @param sort [Symbol] `:self`: by what they take themselves, without those that take nothing; `:total`: with what
    #   they call
    # @param by [Symbol, String] what the rows are: :function, :class, :file, :dir, :gem, :op, :thread, :state,
    #   "label:KEY", or "gem:c", where methods of C don't count for the gem that calls them
    # @return [Array<Hash>]
    def top(limit: nil, sort: :self, by: :function, **filters)
      native.top(questions.group(by), questions.sort(sort), questions.limit(limit), questions.filters(**filters))
    end

    # All that is known of each method, if the profile counts calls or objects.
    #
    # @param limit [Integer, nil] rows at most; nil: all
    # @param sort [Symbol] `:self`: by what they take themselves; `:total`: with what they call
    # @return [Array<Hash>, nil] the rows of `rperf report --methods`; nil if neither is counted
    def method_rows(limit: nil, sort: :self, **filters)
      rows("methods", limit, sort, **filters)
    end

    # The call tree: each branch is followed by those below it.
    #
    # @param least [Numeric] the least share of a branch, in percent of all
    # @param bottom_up [Boolean] from the methods that take the time to their callers
    # @return [Array<Hash>]
    def tree(least: 0.5, bottom_up: false, **filters)
      Argument.one_of(:bottom_up, bottom_up, [true, false])
      native.tree(questions.least(least), bottom_up, questions.filters(**filters))
    end

    # The methods of a name, each with its callers and callees and the lines of the calls.
    #
    # @param name [String, Regexp] the whole name of a method, or else an expression for names
    # @return [Array<Hash>] empty if there is no such method
    def callers(name, **filters)
      pattern = questions.pattern(:name, name)
      Argument.reject(:name, name, "the name of a method, or an expression for names") if pattern.empty?
      native.callers(pattern, questions.filters(**filters))
    end

    # What the loading of the program's files took.
    #
    # @param limit [Integer, nil] files at most; nil: all
    # @param sort [Symbol] the order of the files: `:self`: by their own time and load; `:total`: with what they load
    # @return [Hash] `:total`, and rows of `:files`, `:gems` and `:initializers`, the largest first
    def boot(limit: nil, sort: :self, **filters)
      rows("boot", limit, sort, **filters)
    end

    # What the tests of a suite took, by exact accounts, if the program has required rperf/rspec or rperf/minitest.
    #
    # @param limit [Integer, nil] rows of each table at most; nil: all
    # @param sort [Symbol] the order of factories: `:self`: by their own time; `:total`: with those that they call
    # @return [Hash, nil] `:total`, and rows of `:examples`, `:files`, `:factories` and `:gems`, the slowest first; nil
    #   if there are no tests
    def tests(limit: nil, sort: :self)
      rows("tests", limit, sort)
    end

    # What ops took, by exact sums of all calls, if they were measured (`measure: :ops`). See {Rperf.op}.
    #
    # @param limit [Integer, nil] rows of each table at most; nil: all
    # @param sort [Symbol] the order of ops: `:self`: by their own time; `:total`: with the ops inside of them
    # @return [Hash, nil] `:total`, the rows of `:ops`, and `:repeats`, which requests call again and again; nil if
    #   there are none
    def ops(limit: nil, sort: :self)
      rows("ops", limit, sort)
    end

    # Why collections of garbage ran, by exact sums of all of them: what those of each cause took, and their pauses.
    #
    # @return [Hash, nil] `:total`, and the rows of `:causes`, those with the most time first; nil if there are none
    def gc = native.gc(questions.filters)

    # What slow requests have that the usual ones don't, if requests were measured (`measure: :requests`). It is what
    # `rperf why` says.
    #
    # @param endpoint [String, Regexp, nil] the name of an endpoint or a job, a part of it, or an expression; nil: all
    # @return [Hash, nil] of all `:endpoints`, `:causes` and `:repeats`; of one its `:means`, `:sites` and so on; nil if
    #   there are no requests. Means are nil of a class of requests that the endpoint has none of
    # @raise [ArgumentError] for what is the name of none, or of several, and for no valid expression
    # @example What slow orders wait for
    #   profile.why("GET /orders")[:means][:gvl_wait_ns][:difference]
    def why(endpoint = nil)
      name = questions.pattern(:endpoint, endpoint) unless nil.equal?(endpoint)
      native.why(name, (Argument.shown(endpoint) if Argument.a?(endpoint, Regexp)), questions.filters)
    end

    # What has changed between this profile and another one.
    #
    # @param target [Profile, String, Pathname, Array] what is compared with this one; several are runs of one program
    # @see Rperf.diff
    def diff(target, **) = Asking.natives.diff(self, target, **)

    # What is left of the profile. With `value:` these are the values that the new one is about. Without a filter it
    # is Hash#filter.
    #
    # @return [Profile]
    def filter(**filters, &)
      return super(&) if filters.empty?
      raise ArgumentError, "filter takes filters or a block, not both" if block_given?

      Profile.from_native(native.filter(questions.filters(**filters)))
    end

    # Writes the profile to a file, as {Rperf.save} does.
    #
    # @param format [Symbol, nil] :pprof, :collapsed, :text, :markdown, :json, :html, :dot, :callgrind or :spans; nil:
    #   by the file's extension
    # @param full_path [Boolean] whether text for people has paths as they were recorded
    # @param trim_path [String, Pathname, Array, nil] directories that are taken off paths in text for people
    # @return [nil]
    def save(path, format: nil, lines: false, full_path: false, trim_path: nil)
      Asking.natives.save(path, self, format:, lines:, full_path:, trim_path:)
    end

    private

    def native = Asking.natives.of(self)
    def questions = Asking.questions

    def rows(question, limit, sort, **filters)
      native.rows(question, questions.sort(sort), questions.limit(limit), questions.filters(**filters))
    end
  end
end
