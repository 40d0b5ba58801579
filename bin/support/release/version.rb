# frozen_string_literal: true

module Release
  # Whether a version may be the next one. RubyGems and Cargo write releases alike, and what comes before one otherwise.
  module Version
    FORM = /\A(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)\z/

    module_function

    # @param current [String] what the files say, which need not be released
    # @param released [Array<String>]
    def check(version, current, released)
      raise Refusal, "'#{version}' is no version: it has three numbers, as 1.2.3" unless FORM.match?(version)

      last = released.grep(FORM).max_by { |name| numbers(name) }
      if last && (numbers(version) <=> numbers(last)) <= 0
        raise Refusal, "#{version} is not newer than #{last}, which is released"
      end
      return unless (numbers(version) <=> numbers(current)).negative?

      raise Refusal, "#{version} is older than #{current}, which lib/rperf/version.rb says"
    end

    def numbers(version) = version.split(".").map(&:to_i)
  end
end
