# frozen_string_literal: true

module Release
  # CHANGELOG.md: the heading of what is to be released becomes one with a version and a date.
  module Changelog
    HEADING = /^## Unreleased[ \t]*$/

    module_function

    # The versions that have a heading.
    def released(text) = text.scan(/^## (\d\S*) \(/).flatten

    # @return [String] the text with a heading for the version
    def dated(text, version, date)
      raise Refusal, "CHANGELOG.md needs one heading '## Unreleased'" unless text.scan(HEADING).size == 1
      raise Refusal, "CHANGELOG.md says nothing under '## Unreleased'" if section(text).empty?

      text.sub(HEADING, "## #{version} (#{date})")
    end

    # What stands under the heading, but for headings.
    def section(text) = text.split(HEADING, 2).last.split(/^## /, 2).first.lines.grep_v(/\A(#|\s*\z)/).join
  end
end
